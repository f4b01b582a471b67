"""Passes of stage S4 of this target, one per file."""
