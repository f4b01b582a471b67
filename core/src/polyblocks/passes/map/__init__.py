"""Stage S3: vectors, threads, blocks and memory."""
