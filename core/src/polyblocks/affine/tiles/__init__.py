"""Slices of producers, and tiles that several nests share."""
