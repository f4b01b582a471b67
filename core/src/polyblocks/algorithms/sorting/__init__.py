"""Sorting rows by an integer key, and selecting the first elements of sorted rows."""
