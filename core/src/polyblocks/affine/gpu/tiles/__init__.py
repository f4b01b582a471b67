"""Kernels whose blocks compute tiles of contractions: by lanes, or by matrix units of warps."""
