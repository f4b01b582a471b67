"""Kernels of matrix units: copies to shared memory, products, and what is done with sums."""
