"""Factorizations of matrices, and systems of equations with triangular ones."""
