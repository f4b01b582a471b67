"""Passes of stages S4 and S5 of the CPU target, one per file."""
