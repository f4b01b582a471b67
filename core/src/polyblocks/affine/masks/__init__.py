"""Masks that are affine conditions: places that they leave out, as bounds of loops."""
