"""Discrete Fourier transforms in O(n log n): mixed radices, in loops that vectorize."""

from polyblocks.algorithms.fourier.transform import Kind, transform

__all__ = ["Kind", "transform"]
