"""order-loops on loops that have bounds, as those over a part of a tile."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.support.nests import Context, buffer, innermost, run

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Nest, Op, Sequence, Store, Value
from polyblocks.passes.schedule.order_loops import OrderLoopsPass

TILES, SIZE, LENGTH = 5, 8, 40


def column_maxima(
    t: Var, j: Var, lower: tuple[Expr, ...], upper: tuple[Expr, ...], at: Expr
) -> tuple[Nest, Buffer, Buffer]:
    """``out[t, j] = max over k of a[k, at]`` for ``j`` within bounds; the nest, ``a`` and ``out``.

    ``at`` need be a column of ``a`` within the bounds only.
    """
    k = Var(3)
    a, out = buffer(k.extent, LENGTH, kind="input"), buffer(t.extent, j.extent, kind="output")
    zero, argument, loaded, new, result = (Value("f32") for _ in range(5))
    reduction = For(
        k,
        [
            Load(loaded, a, (Expr.of(k), at)),
            Op("arith.maximumf", [argument, loaded], {}, [new]),
        ],
        [zero],
        [argument],
        [result],
        [new],
    )
    body = [
        Op("arith.constant", [], {"value": 0.0}, [zero]),
        reduction,
        Store(result, out, (Expr.of(t), Expr.of(j))),
    ]
    loop = For(j, body, lower=lower, upper=upper)
    return Nest([For(t, [loop])], [], changed=True), a, out


def check(nest: Nest, a: Buffer, out: Buffer) -> None:
    """The pass does strips, which write the same elements and read none outside of ``a``."""
    numbers = np.random.default_rng(0).permutation(a.numel).reshape(a.shape)
    inputs = {a: numbers, out: np.full(out.shape, -1.0)}
    expected = run(Sequence([nest], []), inputs, out)
    (loop,) = nest.body[0].body
    OrderLoopsPass().transform(sequence := Sequence([nest], []), Context())
    if loop.trips:
        assert len(innermost(nest.body)) == 3, "there are no strips"
    np.testing.assert_array_equal(run(sequence, inputs, out), expected)


def test_a_loop_that_counts_from_the_tile_is_cut_at_the_border() -> None:
    t, j = Var(TILES), Var(SIZE + 2)
    first = Expr.of(t) * SIZE - 1
    # Nothing of the first tile is before element 0: the bound says 1, and -7, -15, … behind it.
    check(*column_maxima(t, j, (Expr(0) - first,), (Expr(LENGTH) - first,), first + j))


def test_a_loop_that_counts_from_the_border_is_cut_to_the_tile() -> None:
    t, j = Var(TILES), Var(LENGTH)
    first = Expr.of(t) * SIZE - 1
    check(*column_maxima(t, j, (first,), (first + SIZE + 2,), Expr.of(j)))


def test_the_origin_is_where_the_fewest_values_follow() -> None:
    t = Var(TILES)
    first = Expr.of(t) * SIZE - 1
    from_tile = For(Var(SIZE + 2), [], lower=(Expr(0) - first,), upper=(Expr(LENGTH) - first,))
    assert (from_tile.origin, from_tile.trips) == (Expr(0), SIZE + 2)
    from_border = For(Var(LENGTH), [], lower=(first, Expr(2)), upper=(first + SIZE + 2,))
    assert (from_border.origin, from_border.trips) == (first, SIZE + 2)
    assert (For(Var(LENGTH), []).origin, For(Var(LENGTH), []).trips) == (Expr(0), LENGTH)


@pytest.mark.parametrize("seed", range(60))
def test_loops_with_any_bounds_run_over_the_same_values(seed: int) -> None:
    rng = random.Random(seed)
    t, j = Var(TILES), Var(rng.choice([SIZE, LENGTH]))

    def bounds(most: int) -> tuple[Expr, ...]:
        return tuple(
            Expr.of(t) * rng.choice([-SIZE, 0, 3, SIZE]) + rng.randrange(-6, SIZE + 6)
            for _ in range(rng.randrange(most))
        )

    check(*column_maxima(t, j, bounds(4), bounds(3), Expr.of(j)))
