"""``polyblocks bisect``: which pass first changed what a program computes."""
