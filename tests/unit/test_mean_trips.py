"""How often loops with bounds run, against counting."""

from __future__ import annotations

import random

import pytest

from polyblocks.affine.analysis.mean_trips import mean_trips
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import For


def counted(loop: For, around: list[For]) -> float:
    """Iterations for each run, one by one."""
    trips = runs = 0

    def go(position: int, values: dict[Var, int]) -> None:
        nonlocal trips, runs
        one = [*around, loop][position]
        low = max([0, *(e.evaluate(values) for e in one.lower)])
        high = min([one.var.extent, *(e.evaluate(values) for e in one.upper)])
        if one is loop:
            trips, runs = trips + max(0, high - low), runs + 1
            return
        for value in range(low, high):
            go(position + 1, values | {one.var: value})

    go(0, {})
    return trips / runs


def pieces(extent: int, block: int, tile: int) -> tuple[For, list[For]]:
    """A loop over a tile in blocks of an extent, both with a rest."""
    i = Var(-(-extent // block))
    rest = Expr(extent) - Expr.of(i) * block
    j = Var(-(-block // tile))
    inner = For(j, [], upper=((rest + (tile - 1)) // tile,))
    elements = For(Var(tile), [], upper=(rest - Expr.of(j) * tile,))
    return elements, [For(i, []), inner]


@pytest.mark.parametrize(("extent", "block", "tile"), [(100, 32, 8), (101, 24, 5), (4000, 96, 7)])
def test_tiles_with_a_rest_are_counted(extent: int, block: int, tile: int) -> None:
    loop, around = pieces(extent, block, tile)
    assert mean_trips(loop, around) == pytest.approx(counted(loop, around), rel=1e-9)


def test_triangles_are_half_full() -> None:
    i = Var(1000)
    loop = For(Var(1000), [], upper=(Expr.of(i) + 1,))
    assert mean_trips(loop, [For(i, [])]) == pytest.approx(500.5)


def test_digits_of_a_variable_are_loops_of_their_own() -> None:
    """Chunks that threads share are numbered by one variable."""
    t = Var(162)
    block, column = Var(3), Var(16)
    piece = Expr.of(t) % 6
    blocks = For(block, [], upper=(Expr(13) - piece * 3,))
    lanes = For(column, [], upper=(Expr(200) - (piece * 3 + block) * 16,))
    around = [For(t, []), blocks]
    assert mean_trips(lanes, around) == pytest.approx(counted(lanes, around), rel=1e-9)
    assert mean_trips(blocks, around[:1]) == pytest.approx(counted(blocks, around[:1]), rel=1e-9)


def test_loops_without_bounds_have_their_extent() -> None:
    assert mean_trips(For(Var(7), []), [For(Var(3), [])]) == 7
    i = Var(4)
    never = For(Var(5), [], upper=(Expr.of(i) - 4,))
    assert mean_trips(never, [For(i, [])]) == 0
    # A loop that never runs, and one inside of it.
    assert mean_trips(For(Var(5), [], upper=(Expr(3),)), [For(i, []), never]) in (0.0, 3.0)


@pytest.mark.parametrize("seed", range(30))
def test_random_bounds_are_near(seed: int) -> None:
    draw = random.Random(seed)
    i, j = Var(draw.randint(1, 40)), Var(draw.randint(1, 9))
    step = draw.randint(1, 6)
    outer = For(j, [], upper=(Expr(draw.randint(1, 60)) - Expr.of(i) * draw.randint(0, 2),))
    loop = For(
        Var(draw.randint(1, 50)),
        [],
        lower=(Expr.of(i) - draw.randint(0, 20),),
        upper=(Expr.of(j) * step + draw.randint(1, 30),),
    )
    around = [For(i, []), outer]
    try:
        expected = counted(loop, around)
    except ZeroDivisionError:
        return
    assert mean_trips(loop, around) == pytest.approx(expected, rel=0.15, abs=0.5)


def test_steps_of_the_program_around_a_nest() -> None:
    step, i = Var(16), Var(16)
    rows = For(i, [], lower=(Expr.of(step),))
    before = For(Var(16), [], upper=(Expr.of(step),))
    assert mean_trips(rows, []) == pytest.approx(8.5)
    assert mean_trips(before, []) == pytest.approx(7.5)
    assert mean_trips(before, [rows]) == pytest.approx(counted(before, [For(step, []), rows]))
