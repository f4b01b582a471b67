"""Sizes of matrices that are left to the framework."""

from __future__ import annotations

from typing import Any

from polyblocks.algorithms.factorizations.limits import (
    MOST_DIAGONALIZED,
    MOST_REDUCED,
    limits_of,
    refused_decomposition,
    refused_reflections,
)


def largest(batch: int, **what: Any) -> int:
    """The most rows of square matrices that are not refused."""
    return max(n for n in range(1, 3000) if not refused_decomposition((batch, n, n), **what))


def test_vectors_of_large_matrices_are_left_to_the_framework() -> None:
    for batch in (1, 64):
        assert largest(batch, vectors=True) == MOST_DIAGONALIZED
        assert largest(batch, vectors=False) == MOST_REDUCED


def test_few_columns_are_never_refused() -> None:
    assert refused_decomposition((100_000, 8), vectors=True) is None
    assert refused_decomposition((0, 4), vectors=True) is None


def test_a_device_of_many_threads_has_sizes_of_its_own() -> None:
    with limits_of(grid=True):
        for vectors in (False, True):
            assert largest(1, vectors=vectors) == 8
        assert "more than 384 rows and columns" in str(refused_reflections((385, 385)))
        assert refused_reflections((384, 9999)) is None
