"""update-in-place on the model: an array takes the memory of what it is made of, or does not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.nests import Context, buffer, run, tiled_like, weighted

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    For,
    Load,
    Nest,
    Sequence,
    Store,
    Value,
    walk,
)
from polyblocks.passes.map.update_in_place import UpdateInPlacePass

ROWS, COLUMNS = 7, 11
BOX = (ROWS, COLUMNS)
HERE = (0, 0)


def program(*taps: tuple[Buffer, tuple[int, int], float]) -> tuple[list[Nest], list[Buffer]]:
    """An old array, a new one made of it (and of these taps), and a result made of the new one."""
    a, old, new, out = (buffer(9, 13, kind=k) for k in ("input", "alloc", "alloc", "output"))
    nests = [
        weighted(old, HERE, (9, 13), (a, HERE, 2.0)),
        weighted(new, HERE, BOX, (old, HERE, 0.5), (a, (1, 2), 3.0), *taps),
        weighted(out, HERE, (ROWS - 1, COLUMNS), (new, HERE, 1.0), (new, (1, 0), 4.0)),
    ]
    return nests, [a, old, new, out]


def check(nests: list[Nest], buffers: list[Buffer], in_place: bool) -> None:
    a, _, new, out = buffers
    values = {a: np.random.default_rng(1).random(a.shape)}
    expected = run(Sequence(list(nests), []), values, out)[: ROWS - 1, :COLUMNS]
    sequence, context = Sequence(list(nests), buffers), Context()
    UpdateInPlacePass().transform(sequence, context)
    assert [what for what, _ in context.decisions] == ["in place"] * in_place
    nodes = [n for nest in sequence.nests() for n in walk(nest.body)]
    touched = {n.buffer for n in nodes if isinstance(n, AffineAccess)}
    assert (new not in touched) == in_place
    np.testing.assert_array_equal(run(sequence, values, out)[: ROWS - 1, :COLUMNS], expected)


def test_an_array_takes_the_place_of_one_that_nothing_reads_any_more() -> None:
    check(*program(), in_place=True)


def test_tiles_of_it_do_too() -> None:
    nests, buffers = program()
    nests[1] = tiled_like([nests[1]], (2, 4), buffers[2])
    check(nests, buffers, in_place=True)


@pytest.mark.parametrize("offset", [(0, 1), (1, 0)])
def test_neighbours_are_read_after_they_would_be_gone(offset: tuple[int, int]) -> None:
    nests, buffers = program()
    nests[1] = weighted(buffers[2], HERE, BOX, (buffers[1], HERE, 0.5), (buffers[1], offset, 1.0))
    check(nests, buffers, in_place=False)


def test_an_old_array_that_is_read_later_stays() -> None:
    nests, buffers = program()
    _, old, new, out = buffers
    nests[2] = weighted(out, HERE, BOX, (new, HERE, 1.0), (old, HERE, 4.0))
    check(nests, buffers, in_place=False)


@pytest.mark.parametrize("role", [1, 2])
def test_arguments_and_results_stay(role: int) -> None:
    nests, buffers = program()
    buffers[role].kind = ("input", "output")[role - 1]
    _, old, new, out = buffers
    if role == 1:
        nests.pop(0)
        nests[0] = weighted(new, HERE, BOX, (old, HERE, 0.5))
        buffers[0] = old
        check(nests, [old, old, new, out], in_place=False)
    else:
        check(nests, buffers, in_place=False)


def test_iterations_that_store_the_same_element_twice_would_read_the_new_one() -> None:
    nests, buffers = program()
    _, old, new, _ = buffers
    i, j, value = Var(4), Var(3), Value("f32")
    # Windows of 3 rows, of which each overlaps the one before it.
    place = (Expr.of(i) * 2 + Expr.of(j), Expr(0))
    body = [Load(value, old, place), Store(value, new, place)]
    nests[1] = Nest([For(i, [For(j, list(body))])], [], changed=True)
    check(nests, buffers, in_place=False)


def test_a_margin_may_lie_around_but_not_across_it() -> None:
    nests, buffers = program()
    a, _, new, _ = buffers
    margin = weighted(new, (ROWS, 0), (2, COLUMNS), (a, HERE, 0.0))
    nests[1].replace([*nests[1].body, *margin.body])
    check(nests, buffers, in_place=True)
    nests, buffers = program()
    a, _, new, _ = buffers
    margin = weighted(new, (ROWS - 1, 0), (2, COLUMNS), (a, HERE, 0.0))
    nests[1].replace([*nests[1].body, *margin.body])
    check(nests, buffers, in_place=False)
