"""Discrete Fourier transforms in O(n log n): mixed radices, in loops that vectorize."""

from polyblocks.algorithms.fourier.factors import check_length
from polyblocks.algorithms.fourier.transform import Kind, transform

__all__ = ["Kind", "check_length", "transform"]
