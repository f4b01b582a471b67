"""Factorizations for devices with a grid of threads: all of them work on each step."""
