"""Sizes up to which algorithms are of use."""

#: The most rows, or columns, of a matrix whose eigenvalues or singular values are computed by
#: rotations: with 12 they take more than three times as long as what LAPACK does to it.
MOST_ROTATED = 8
#: The most columns that are reflected one after the other: with 512 that takes more than three
#: times as long as by blocks of columns, whose products LAPACK leaves to the BLAS.
MOST_REFLECTED = 384


def too_large(most: int) -> str:
    """Why a matrix is left to the framework."""
    return (
        f"of matrices with more than {most} rows and columns, for which its library takes less "
        "than a third of the time"
    )
