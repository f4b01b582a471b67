"""Sizes up to which algorithms are of use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod

#: The most rows, or columns, of a matrix whose eigenvalues or singular values are computed by
#: rotations on a device that leaves a whole matrix to a single thread of many.
MOST_ROTATED = 8
#: The same, where there are enough matrices for the lanes of a vector: a third of LAPACK's time.
MOST_ROTATED_OF_MANY = 16
#: As many matrices as that are enough.
MANY = 16
#: The most rows of a matrix whose eigenvectors are computed, or rows or columns of one whose
#: singular vectors are: for one matrix that takes from 0.9 to 2.2 times as long as LAPACK on one
#: thread, the more the larger it is.
MOST_DIAGONALIZED = 512
#: The most rows, or columns, of a matrix whose eigenvalues or singular values are computed without
#: vectors: with 1024, on one thread, that takes from 0.7 to 1.3 times as long as LAPACK's on one.
MOST_REDUCED = 2048
#: The most columns that are reflected, by panels on one thread. With 1500 that takes as long
#: as LAPACK on one thread, which uses all there are.
MOST_REFLECTED = 2048
#: The same on a device that leaves a whole matrix to a single thread of many.
MOST_REFLECTED_BY_ONE_OF_MANY = 384
#: The most rows, or columns, of a matrix whose pivots are chosen by a selection among all rows,
#: where there are several matrices.
MOST_SELECTED = 32
#: Rows from which on a step of blocks is worth the whole grid of threads of a device that has one;
#: a group of threads has a whole smaller matrix.
BY_GRID = 192

#: Whether programs are compiled for a device that leaves a whole matrix to one thread of many.
_BY_ONE_OF_MANY: ContextVar[bool] = ContextVar("by_one_of_many", default=False)


@contextmanager
def limits_of(*, grid: bool) -> Iterator[None]:
    """Programs that are imported inside are for a device with a grid of threads, or for another."""
    token = _BY_ONE_OF_MANY.set(grid)
    try:
        yield
    finally:
        _BY_ONE_OF_MANY.reset(token)


def by_grid(n: int) -> bool:
    """Whether all threads of a grid work on each step of matrices of ``n`` rows."""
    return _BY_ONE_OF_MANY.get() and n >= BY_GRID


def refused_reflections(shape: Sequence[int]) -> str | None:
    """Why QR, or products of reflections, are left to the framework; None if they are not.

    Args:
        shape: of an array of matrices, [..., m, n].
    """
    most = MOST_REFLECTED_BY_ONE_OF_MANY if _BY_ONE_OF_MANY.get() else MOST_REFLECTED
    return too_large(most) if min(shape[-2:]) > most else None


def refused_decomposition(shape: Sequence[int], *, vectors: bool) -> str | None:
    """Why eigenvalues, or singular values, are left to the framework; None if they are not.

    Args:
        shape: of an array of matrices, [..., m, n].
        vectors: whether their vectors are computed, too.
    """
    least = min(shape[-2:])
    if _BY_ONE_OF_MANY.get():
        many = are_many(prod(shape[:-2]), *shape[-2:])
        most = MOST_ROTATED_OF_MANY if many else MOST_ROTATED
        return too_large(most) if least > most else None
    most = MOST_DIAGONALIZED if vectors else MOST_REDUCED
    return too_large(most) if least > most else None


def are_many(batch: int, m: int, n: int) -> bool:
    """Whether there are enough matrices, and small ones, for the lanes of a vector."""
    return batch >= MANY and max(m, n) <= MOST_SELECTED


def too_large(most: int) -> str:
    """Why a matrix is left to the framework."""
    return (
        f"of matrices with more than {most} rows and columns, for which its library takes less "
        "than a third of the time"
    )
