"""Kernels as ``gpu.func``, from what the mapping decided."""
