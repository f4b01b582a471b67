"""Lookups in short tables by permutations of registers."""
