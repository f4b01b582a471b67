"""Zeros that operations put around and between the elements of arrays."""
