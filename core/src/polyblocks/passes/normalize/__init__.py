"""Stage S3: nests in the form that the others expect."""
