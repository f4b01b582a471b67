"""Stage S3: how arrays lie in memory, and loops go through it."""
