"""merge-reductions on the model: one sweep computes what several did, or nothing changes."""

from __future__ import annotations

import numpy as np
from tests.support.nests import Context, buffer, run, weighted

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    For,
    Load,
    Nest,
    Op,
    Sequence,
    Store,
    Value,
    walk,
)
from polyblocks.affine.naming.names import name_nests
from polyblocks.passes.fuse.merge_reductions import MergeReductionsPass

ROWS, STEPS = 6, 9


def total(
    target: Buffer, source: Buffer, factor: Buffer | None = None, divisor: Buffer | None = None
) -> Nest:
    """``target[i] = sum over j of source[i, j] * factor[i, j]``, divided by ``divisor[i]``."""
    i, j = Var(source.shape[0]), Var(source.shape[1])
    zero, argument, x, y, z, new, result, d, q = (Value("f32") for _ in range(9))
    at = (Expr.of(i), Expr.of(j))
    inner: list[Load | Op] = [Load(x, source, at)]
    if factor is not None:
        inner += [Load(y, factor, at), Op("arith.mulf", [x, y], {}, [z])]
    term = x if factor is None else z
    inner.append(Op("arith.addf", [argument, term], {"fastmath": "reassoc"}, [new]))
    after: list[AffineAccess | Op] = [Store(result, target, (Expr.of(i),))]
    if divisor is not None:
        after = [
            Load(d, divisor, (Expr.of(i),)),
            Op("arith.divf", [result, d], {}, [q]),
            Store(q, target, (Expr.of(i),)),
        ]
    body = [
        Op("arith.constant", [], {"value": 0.0}, [zero]),
        For(j, list(inner), [zero], [argument], [result], [new]),
        *after,
    ]
    return Nest([For(i, body)], [], changed=True)


class Program:
    """A weighted mean of each row: weights, their sum, and the sum of what they weigh."""

    def __init__(self) -> None:
        shape = (ROWS, STEPS)
        self.a, self.b = buffer(*shape, kind="input"), buffer(*shape, kind="input")
        self.weights, self.sum = buffer(*shape), buffer(ROWS)
        self.out = buffer(ROWS, kind="output")
        self.nests = [
            weighted(self.weights, (0, 0), shape, (self.a, (0, 0), 2.0)),
            total(self.sum, self.weights),
            total(self.out, self.weights, self.b, self.sum),
        ]

    def check(self, merged: bool) -> list[Nest]:
        """The pass makes one nest or leaves all; the result is the same."""
        rng = np.random.default_rng(1)
        values = {x: rng.random(x.shape) for x in (self.a, self.b)}
        expected = run(Sequence(self.nests, []), values, self.out)
        sequence, context = Sequence(list(self.nests), []), Context()
        name_nests("test", sequence, context)
        context.decisions.clear()
        MergeReductionsPass().transform(sequence, context)
        assert ("merged" in [w for w, _ in context.decisions]) == merged
        np.testing.assert_allclose(run(sequence, values, self.out), expected, rtol=1e-14)
        assert merged or sequence.nests() == self.nests
        return sequence.nests()


def test_weights_of_two_sums_stay_in_a_register() -> None:
    program = Program()
    (nest,) = program.check(merged=True)
    loops = [n for n in walk(nest.body) if isinstance(n, For)]
    assert [len(loop.inits) for loop in loops] == [0, 2]
    touched = {n.buffer for n in walk(nest.body) if isinstance(n, AffineAccess)}
    assert program.weights not in touched


def test_a_sum_that_something_else_needs_is_stored() -> None:
    program = Program()
    other = buffer(ROWS, kind="output")
    program.nests.append(weighted(other, (0,), (ROWS,), (program.sum, (0,), 3.0)))
    nest, *_ = program.check(merged=True)
    assert any(isinstance(n, Store) and n.buffer is program.sum for n in walk(nest.body))


def test_weights_that_something_else_reads_are_kept() -> None:
    program = Program()
    other = buffer(ROWS, STEPS, kind="output")
    program.nests.append(weighted(other, (0, 0), (ROWS, STEPS), (program.weights, (0, 0), 3.0)))
    program.check(merged=False)


def test_weights_that_are_a_result_are_kept() -> None:
    program = Program()
    program.weights.kind = "output"
    program.check(merged=False)


def test_a_sum_that_needs_what_comes_between_stays() -> None:
    program = Program()
    change = weighted(program.b, (0, 0), (ROWS, STEPS), (program.a, (0, 0), 5.0))
    program.nests.insert(2, change)
    program.check(merged=False)


def test_weights_of_what_has_changed_are_kept() -> None:
    program = Program()
    change = weighted(program.a, (0, 0), (ROWS, STEPS), (program.b, (0, 0), 5.0))
    program.nests.insert(1, change)
    *_, nest = program.check(merged=True)
    assert any(isinstance(n, Load) and n.buffer is program.weights for n in walk(nest.body))


def test_cheap_weights_are_computed_twice_where_one_sum_reads_them_backwards() -> None:
    program = Program()
    (outer,) = program.nests[1].body
    assert isinstance(outer, For)
    for node in walk(outer.body):
        if isinstance(node, Load):
            first, last = node.index
            node.index = (first, last * -1 + (STEPS - 1))
    program.check(merged=True)


def test_sums_over_other_loops_stay() -> None:
    program = Program()
    (outer,) = program.nests[1].body
    assert isinstance(outer, For)
    loop = outer.body[1]
    assert isinstance(loop, For)
    short = Var(STEPS - 1)
    for node in walk(loop.body):
        if isinstance(node, Load):
            node.index = tuple(e.substitute({loop.var: Expr.of(short)}) for e in node.index)
    loop.var = short
    program.check(merged=False)


def test_nothing_is_merged_without_fusion() -> None:
    program = Program()
    sequence, context = Sequence(list(program.nests), []), Context()
    context.options.polyblocks_disable_affine_fusion = True
    MergeReductionsPass().transform(sequence, context)
    assert sequence.nests() == program.nests
