"""Time lines of explanations: launches in order, layers that are alike once."""

from __future__ import annotations

import pytest

from polyblocks.explanation.timeline import repeated, timeline

KERNELS = [
    {"name": "a", "seconds": 2.0, "calls": 2},
    {"name": "b", "seconds": 3.0, "calls": 1},
    {"name": "c", "seconds": None, "calls": 1},
]


def test_launches_begin_where_the_one_before_ends() -> None:
    found = timeline(["a", "b", "a"], KERNELS)
    assert [row["start_seconds"] for row in found] == [0.0, 1.0, 4.0]
    assert [row["seconds"] for row in found] == [1.0, 3.0, 1.0]


@pytest.mark.parametrize("launches", [[], ["a"], ["a", "c"], ["a", "unknown"]])
def test_unknown_and_single_launches_have_none(launches: list[str]) -> None:
    assert timeline(launches, KERNELS) == []


def test_layers_that_are_alike_stand_there_once() -> None:
    rows = [{"kernel": name} for name in "eabcabcabcph"]
    groups = [(g.times, "".join(row["kernel"] for row in g.rows)) for g in repeated(rows)]
    assert groups == [(1, "e"), (3, "abc"), (1, "p"), (1, "h")]


def test_the_shortest_of_equal_sequences_is_taken() -> None:
    (only,) = repeated([{"kernel": "a"}] * 4)
    assert (only.times, len(only.rows)) == (4, 1)
