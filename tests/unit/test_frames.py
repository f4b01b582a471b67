"""Room for frames: calls are as fast at any depth below it, and nothing else changes."""

from __future__ import annotations

import sys
import time

import pytest

from polyblocks.isolation.frames import with_large_frame


def leaf(x: int) -> int:
    return x


def seconds_at(depth: int) -> float:
    """The time of many small calls, so many frames further down."""
    if depth:
        return seconds_at(depth - 1)
    begin = time.thread_time()
    for _ in range(3000):
        leaf(0)
    return time.thread_time() - begin


def slowdown(times: list[float]) -> float:
    return max(times) / sorted(times)[len(times) // 2]


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="about CPython's frames")
def test_no_depth_is_slow() -> None:
    below = with_large_frame(seconds_at)
    # Where pieces of 16 KiB end, calls take a hundred times as long.
    best = [min(below(depth) for _ in range(3)) for depth in range(150)]
    assert slowdown(best) < 20


def test_arguments_results_errors_and_name() -> None:
    @with_large_frame
    def divided(a: int, *, by: int) -> float:
        """A quotient."""
        return a / by

    assert divided(1, by=2) == 0.5
    assert divided.__name__ == "divided"
    assert divided.__doc__ == "A quotient."
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        divided(1, by=0)


def test_recursion_is_still_limited() -> None:
    @with_large_frame
    def forever() -> None:
        forever()

    with pytest.raises(RecursionError, match="recursion"):
        forever()
