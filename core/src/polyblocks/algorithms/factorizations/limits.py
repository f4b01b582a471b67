"""Sizes up to which algorithms are of use."""

#: The most rows, or columns, of a matrix whose eigenvalues or singular values are computed by
#: rotations: with larger ones they take more steps than what libraries do.
MOST_ROTATED = 64
