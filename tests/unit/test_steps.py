"""Functions that are affine but for a few steps: what they say, and which slices they give."""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from math import floor
from types import FrameType
from typing import Any

import numpy as np
import pytest

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.steps import (
    PER_STEP,
    PERIODS,
    STEPS,
    StepFunction,
    exact_range,
    is_step,
    without_steps,
)
from polyblocks.affine.tiles.slices import bounds


def held(extent: int, reach: int) -> list[int]:
    return [min(max(i - reach, 0), extent - 1) for i in range(extent + 2 * reach)]


def mirrored(extent: int, reach: int) -> list[int]:
    last = extent - 1
    return [last - abs(last - abs(i - reach)) for i in range(extent + 2 * reach)]


def enlarged(extent: int, factor: int) -> list[int]:
    return [min(max((i - factor // 2) // factor, 0), extent - 1) for i in range(extent * factor)]


def scaled(extent: int, factor: Fraction, reach: int = 0) -> list[int]:
    """The nearest element to each of a row that is longer or shorter, the row held at its ends."""
    count = floor(extent * factor)
    nearest = (floor((2 * i + 1) / (2 * factor)) - reach for i in range(count))
    return [min(max(at, 0), extent - 1) for at in nearest]


FUNCTIONS = [
    *(held(n, reach) for n in (28, 40) for reach in (1, 2, 3)),
    *(mirrored(n, reach) for n in (16, 40) for reach in (1, 2)),
    *(enlarged(n, factor) for n in (8, 33) for factor in (2, 3, 4)),
    *(scaled(n, Fraction(3, 2)) for n in (8, 40, 1024)),
    *(scaled(64, Fraction(a, b)) for a, b in ((2, 3), (7, 2), (3, 4), (7, 5), (5, 8))),
    *(scaled(40, Fraction(3, 2), reach) for reach in (-2, 1)),
    [(i + 5) % 21 for i in range(30)],
    [20 - i for i in range(21)],
    [3] * 9,
    [0, 1, 1, 1],
]


@pytest.mark.parametrize("values", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_every_value_is_what_the_expression_says(values: list[int]) -> None:
    function = StepFunction.of(values)
    assert function is not None
    var = Var(len(values))
    expr = function.at(Expr.of(var))
    assert [expr.evaluate({var: i}) for i in range(len(values))] == values
    assert exact_range(expr) == (min(values), max(values))
    # Also at places that another loop makes.
    half = Var(len(values) // 2)
    twice = function.at(Expr.of(half) * 2 + 1)
    assert [twice.evaluate({half: i}) for i in range(half.extent)] == values[1::2]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [4],
        random.Random(1).choices(range(50), k=60),
        [0, 5, 1, 9],
        [0, 2, 3, 7, 8, 9],
    ],
    ids=["none", "one", "random", "short", "steps everywhere"],
)
def test_what_has_no_order_is_no_function(values: list[int]) -> None:
    assert StepFunction.of(values) is None


def test_steps_are_told_from_other_quotients() -> None:
    var = Var(40)
    function = StepFunction.of(held(38, 1))
    assert function is not None
    expr = function.at(Expr.of(var))
    assert without_steps(expr) == Expr.of(var)
    atoms = [atom for atom, _ in (Expr.of(var) // 2).terms]
    assert not any(is_step(atom) for atom in atoms)


@pytest.mark.parametrize("values", FUNCTIONS[:6], ids=range(6))
def test_slices_hold_what_is_read(values: list[int]) -> None:
    """Wherever a tile is, its box holds all places, and no more than one element besides."""
    function = StepFunction.of(values)
    assert function is not None
    var, tile = Var(len(values)), Var(len(values) - 4)
    found = bounds(function.at(Expr.of(var)), {var: (Expr.of(tile), Expr.of(tile) + 4)})
    assert found is not None
    for first in range(tile.extent):
        low, high = (end.evaluate({tile: first}) for end in found)
        places = values[first : first + 5]
        assert low <= min(places)
        assert max(places) <= high
        middle = 3 < first < tile.extent - 4
        assert not middle or (low, high) == (min(places), max(places))


def test_a_long_row_is_gone_through_by_array_operations() -> None:
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += 1

    values = np.clip(np.arange(1 << 18) - 3, 0, (1 << 18) - 4)
    assert StepFunction.of(values) == StepFunction.of(values.tolist())
    values = values // 2
    sys.setprofile(count)
    try:
        found = StepFunction.of(values)
    finally:
        sys.setprofile(None)
    assert found is not None
    assert found.period == 2
    assert len(found.steps) == 2
    # Only what counts on about as often as the values do is compared with them.
    assert calls < 300


@pytest.mark.parametrize("seed", range(40))
def test_the_function_with_fewest_steps_is_found(seed: int) -> None:
    choose = random.Random(seed)
    extent, period = choose.randint(8, 90), choose.randint(1, 9)
    values = (np.arange(extent) + choose.randint(0, 9)) // period * choose.choice([-1, 0, 1, 2])
    for _ in range(choose.randint(0, 4)):
        values[choose.randrange(extent) :] += choose.choice([-2, -1, 1, 2])
    found = StepFunction.of(values)
    fewest = _fewest_steps(values)
    assert (None if found is None else len(found.steps)) == fewest
    if found is not None:
        var = Var(extent)
        at = found.at(Expr.of(var))
        assert [at.evaluate({var: i}) for i in range(extent)] == values.tolist()


def _fewest_steps(values: np.ndarray) -> int | None:
    """By trying every function that counts on by 1, and the one with the most common slope."""
    extent = len(values)
    slopes, counts = np.unique(np.diff(values), return_counts=True)
    ways = [(1, 0, int(slopes[np.argmax(counts)]))]
    ways += [(p, shift, 1) for p in range(2, PERIODS + 1) for shift in range(p)]
    steps = [
        np.count_nonzero(np.diff(values - slope * ((np.arange(extent) + shift) // p)))
        for p, shift, slope in ways
    ]
    few = [n for n in steps if n <= STEPS and n * PER_STEP <= extent]
    return min(few, default=None)
