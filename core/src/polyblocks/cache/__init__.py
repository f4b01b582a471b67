"""Compiled programs on disk: keys, locks, and what the keys cover."""
