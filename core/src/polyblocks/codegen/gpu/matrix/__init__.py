"""Contractions on the matrix units that a warp drives itself."""
