"""Reductions of what others have reduced, and the option that keeps them apart."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.nests import Context, buffer, row_sum, run, weighted

from polyblocks.affine.analysis.dependent_reductions import have_dependent_reductions
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Nest, Node, Op, Sequence, Store, Value
from polyblocks.affine.naming.names import name_nests
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass


def scaled(target: Buffer, source: Buffer) -> Nest:
    """``target[i, j] = 2 * source[i, j]``."""
    return weighted(target, (0, 0), source.shape, (source, (0, 0), 2.0))


def divided(target: Buffer, source: Buffer, sums: Buffer) -> Nest:
    """``target[i, j] = source[i, j] / sums[i]``."""
    i, j = (Var(n) for n in source.shape)
    x, s, q = Value("f32"), Value("f32"), Value("f32")
    row, element = (Expr.of(i),), (Expr.of(i), Expr.of(j))
    body: list[Node] = [
        Load(x, source, element),
        Load(s, sums, row),
        Op("arith.divf", [x, s], {}, [q]),
        Store(q, target, element),
    ]
    return Nest([For(i, [For(j, body)])], [], changed=True)


def test_a_reduction_of_what_was_reduced() -> None:
    a, b, s, t = buffer(6, 6, kind="input"), buffer(6, 6), buffer(6), buffer(6)
    assert have_dependent_reductions([row_sum(s, a), divided(b, a, s), row_sum(t, b)])


def test_one_reduction_among_others_that_are_none() -> None:
    a, b, c, s, t = buffer(6, 6, kind="input"), buffer(6, 6), buffer(6, 6), buffer(6), buffer(6)
    assert not have_dependent_reductions([scaled(b, a), scaled(c, b), row_sum(s, c)])
    after = weighted(t, (0,), (6,), (s, (0,), 1.0))
    assert not have_dependent_reductions([row_sum(s, a), after])


def test_independent_reductions_of_one_array() -> None:
    a, b = buffer(6, 6, kind="input"), buffer(6, 6)
    s, t = buffer(6), buffer(6)
    assert not have_dependent_reductions([scaled(b, a), row_sum(s, b), row_sum(t, b)])


def normalized_twice() -> tuple[list[Nest], Buffer, Buffer]:
    """A sum of rows, the rows divided by it, and a sum of these."""
    a, s, b = buffer(256, 64, kind="input"), buffer(256), buffer(256, 64)
    out = buffer(256, kind="output")
    return [row_sum(s, a), divided(b, a, s), row_sum(out, b)], a, out


@pytest.mark.parametrize(("separate", "nests_left"), [(False, 1), (True, 2)])
def test_the_option_keeps_them_apart(separate: bool, nests_left: int) -> None:
    nests, a, out = normalized_twice()
    values = np.random.default_rng(7).random(a.shape)
    expected = run(Sequence(list(nests), []), {a: values}, out)
    sequence, context = Sequence(list(nests), []), Context()
    context.options.polyblocks_disable_reduce_reduce_fusion = separate
    name_nests("test", sequence, context)
    FuseTilesPass().transform(sequence, context)
    assert len(sequence.nests()) == nests_left
    np.testing.assert_array_equal(run(sequence, {a: values}, out), expected)
    reasons = [numbers.get("reason") for _, numbers in context.decisions]
    assert ("option" in reasons) == separate
