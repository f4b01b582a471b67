"""Which pass failed, and a file that shows it."""
