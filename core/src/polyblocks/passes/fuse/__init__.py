"""Stage S3: nests that become one."""
