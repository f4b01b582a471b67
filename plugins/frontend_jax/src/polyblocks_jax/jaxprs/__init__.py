"""Jaxprs: evaluated, opened, pruned, and cut into parts."""
