"""The guard compares predicted times, and says both."""

from __future__ import annotations

from typing import Any

import pytest

from polyblocks.algorithms.factorizations.limits import (
    MOST_DIAGONALIZED,
    MOST_REDUCED,
    limits_of,
    refused_decomposition,
    refused_reflections,
)
from polyblocks.algorithms.factorizations.rotation_times import prediction
from polyblocks.algorithms.guard import MOST_TIMES, Prediction, duration


def test_what_takes_too_long_is_refused_with_both_times() -> None:
    limit = MOST_TIMES * 2e-5
    assert Prediction("rotations", limit, 2e-5).refusal() is None
    assert Prediction("rotations", 4.04e-4, 2e-5).refusal() == (
        "its rotations would take about 0.4 ms, and the framework's algorithm takes about 20 µs"
    )


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.26e-6, "1.3 µs"), (2.5e-3, "2.5 ms"), (0.26, "260 ms"), (12.3, "12 s")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def largest(batch: int, **what: Any) -> int:
    """The most rows of square matrices that are not refused."""
    return max(n for n in range(1, 3000) if not refused_decomposition((batch, n, n), **what))


def test_sizes_follow_from_the_times() -> None:
    sizes = {
        (batch, singular): largest(batch, vectors=True, singular=singular)
        for batch in (1, 64)
        for singular in (False, True)
    }
    assert sizes == {
        (1, False): MOST_DIAGONALIZED,
        (1, True): 16,
        (64, False): MOST_DIAGONALIZED,
        (64, True): 16,
    }
    assert largest(1, vectors=False, singular=False) == MOST_REDUCED


def test_few_columns_are_never_refused() -> None:
    assert refused_decomposition((100_000, 8), vectors=True, singular=True) is None
    assert refused_decomposition((0, 4), vectors=True, singular=True) is None


def test_a_device_of_many_threads_has_sizes_of_its_own() -> None:
    with limits_of(grid=True):
        for vectors in (False, True):
            assert largest(1, vectors=vectors, singular=True) == 8
        assert "more than 384 rows and columns" in str(refused_reflections((385, 385)))
        assert refused_reflections((384, 9999)) is None


@pytest.mark.parametrize(
    ("singular", "count", "rows", "compiled", "library"),
    [
        # Measured on a Zen 4, one thread, in microseconds.
        (False, 1, 16, 14.7, 16.7),
        (False, 1, 64, 192, 151),
        (False, 1, 512, 37540, 20090),
        (False, 1024, 16, 1960, 12344),
        (True, 1, 16, 93.3, 57.5),
        (True, 1, 64, 18813, 1346.5),
        (True, 64, 16, 1409.7, 4859.3),
    ],
)
def test_predictions_are_near_what_was_measured(
    singular: bool, count: int, rows: int, compiled: float, library: float
) -> None:
    found = prediction((count, rows, rows), singular=singular, many=count > 16)
    assert 0.4 < found.compiled * 1e6 / compiled < 2.5
    assert 0.4 < found.framework * 1e6 / library < 2.5
