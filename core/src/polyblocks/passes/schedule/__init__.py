"""Stage S3: the order of loops, and how reductions run."""
