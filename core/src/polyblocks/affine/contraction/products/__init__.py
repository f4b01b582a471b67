"""Contractions as products of matrices, and who computes them: vectors, lanes or matrix units."""
