"""Sums that a program adds up in several nests, a term each."""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.analysis.reductions import COMMUTATIVE
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import AffineAccess, Load, Nest, Op, Sequence, Store, Value
from polyblocks.affine.rewrites.inlining import Candidate
from polyblocks.affine.subnests import perfect_loops
from polyblocks.affine.users import Users


@dataclass(eq=False)
class TermSum:
    """Nests that add a term each to what the one before them has.

    Attributes:
        nests: in order.
        ops: the addition of each nest.
        terms: for each term the nest that adds it, and the operand that it is.
        start: the operand of the first addition that the sum starts with; None for its identity.
    """

    nests: list[Nest]
    ops: list[Op]
    terms: list[tuple[Nest, Value]]
    start: Value | None


def step_of(nest: Nest) -> tuple[Op, Store] | None:
    """The operation with which a nest combines two numbers for each element that it stores."""
    loops, body = perfect_loops(nest.body)
    if not loops or any(loop.inits or loop.bounded or loop.level for loop in loops):
        return None
    stores = [n for n in body if isinstance(n, Store)]
    ops = [n for n in body if isinstance(n, Op) and n.name != "arith.constant"]
    if (
        len(stores) != 1
        or len(ops) != 1
        or not all(isinstance(n, (AffineAccess, Op)) for n in body)
    ):
        return None
    (op,), (store,) = ops, stores
    if op.name not in COMMUTATIVE or store.value is not op.results[0]:
        return None
    if op.operands[0] is op.operands[1]:
        return None
    # All elements of what it makes, in order.
    own = [loop.var for loop in loops if loop.var.extent > 1]
    if [v.extent for v in own] != [extent for extent in store.buffer.shape if extent > 1]:
        return None
    index = [e for e, n in zip(store.index, store.buffer.shape, strict=True) if n > 1]
    return (op, store) if index == [Expr.of(v) for v in own] else None


def term_sums(sequence: Sequence, users: Users) -> list[TermSum]:
    """The sums of a program, each as long as it is."""
    steps = {nest: step for nest in sequence.nests() if (step := step_of(nest)) is not None}
    before: dict[Nest, tuple[Nest, Value] | None] = {}
    length: dict[Nest, int] = {}
    inside: set[Nest] = set()
    for nest, (op, store) in steps.items():
        made = [
            (maker, load.result)
            for load in _loads(nest)
            if (maker := _only_maker(load, store, nest, users)) in steps
            and maker is not None
            and (steps[maker][0].name, steps[maker][0].attributes) == (op.name, op.attributes)
        ]
        # An operand as long as the other one is a term as that is; one that a constant is added to
        # is rather a start than a term of two numbers.
        longest = max((length[maker] for maker, _ in made), default=0)
        found = [each for each in made if length[each[0]] == longest]
        best = found[0] if len(found) == 1 and len(_loads(nest)) == 2 else None
        before[nest] = best
        length[nest] = longest + 1 if best is not None else 3 - len(_loads(nest))
        if best is not None:
            inside.add(best[0])
    return [_sum(nest, steps, before) for nest in steps if nest not in inside]


def _loads(nest: Nest) -> list[Load]:
    """The loads of a step."""
    return [n for n in perfect_loops(nest.body)[1] if isinstance(n, Load)]


def _only_maker(load: Load, store: Store, nest: Nest, users: Users) -> Nest | None:
    """The nest that makes what is loaded where the result is stored, and only for this."""
    if load.where or load.index != store.index or load.buffer.shape != store.buffer.shape:
        return None
    # The addend must not depend on other elements of the partial sum.
    if sum(other.buffer is load.buffer for other in _loads(nest)) > 1:
        return None
    if load.buffer.kind != "alloc" or users.readers(load.buffer) != [nest]:
        return None
    candidate = Candidate.of(users, load.buffer)
    return None if candidate is None else candidate.producer


def _sum(
    last: Nest,
    steps: dict[Nest, tuple[Op, Store]],
    before: dict[Nest, tuple[Nest, Value] | None],
) -> TermSum:
    nests: list[Nest] = []
    terms: list[tuple[Nest, Value]] = []
    nest: Nest | None = last
    start: Value | None = None
    while nest is not None:
        op, _ = steps[nest]
        nests.append(nest)
        link = before[nest]
        if link is not None:
            (term,) = [v for v in op.operands if v is not link[1]]
            terms.append((nest, term))
            nest = link[0]
            continue
        loaded = {load.result for load in _loads(nest)}
        first, second = op.operands
        if second in loaded:
            terms.append((nest, second))
        else:
            start = second
        if first in loaded:
            terms.append((nest, first))
        else:
            start = first
        nest = None
    return TermSum(nests[::-1], [steps[n][0] for n in nests[::-1]], terms[::-1], start)
