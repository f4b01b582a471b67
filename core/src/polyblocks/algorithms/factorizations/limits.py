"""Sizes up to which algorithms are of use."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

#: The most rows, or columns, of a matrix whose eigenvalues or singular values are computed by
#: rotations: with 12 they take more than three times as long as what LAPACK does to it.
MOST_ROTATED = 8
#: The same, where there are enough matrices for the lanes of a vector: a third of LAPACK's time.
MOST_ROTATED_OF_MANY = 16
#: As many matrices as that are enough.
MANY = 16
#: The most columns that are reflected, by panels on one thread. With 1500 that takes as long
#: as LAPACK on one thread, which uses all there are.
MOST_REFLECTED = 2048
#: The same on a device that leaves a whole matrix to a single thread of many.
MOST_REFLECTED_BY_ONE_OF_MANY = 384
#: The most rows, or columns, of a matrix whose pivots are chosen by a selection among all rows,
#: where there are several matrices.
MOST_SELECTED = 32


def most_rotated(shape: Sequence[int]) -> int:
    """How many rows, or columns, those of these matrices may have whose eigenvalues, or singular
    values, are computed by rotations.

    Args:
        shape: of an array of matrices, [..., m, n].
    """
    many = prod(shape[:-2]) >= MANY and max(shape[-2:]) <= MOST_SELECTED
    return MOST_ROTATED_OF_MANY if many else MOST_ROTATED


def too_large(most: int) -> str:
    """Why a matrix is left to the framework."""
    return (
        f"of matrices with more than {most} rows and columns, for which its library takes less "
        "than a third of the time"
    )
