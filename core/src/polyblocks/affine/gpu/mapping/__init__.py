"""Kernels whose groups of threads do iterations of their own: loops, buffers and barriers."""
