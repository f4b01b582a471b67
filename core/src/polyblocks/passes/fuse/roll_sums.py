"""roll-sums: long sums of terms that are computed alike are loops over the terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.coverage import perfect_loops
from polyblocks.affine.analysis.reductions import COMMUTATIVE, identities
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.model import (
    For,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    around,
    clone,
)
from polyblocks.affine.rewrites.inlining import Candidate
from polyblocks.affine.rewrites.rolling import NotAlikeError, Roller, digit_shapes
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass
from polyblocks.passes.normalize.classify_nests import own_name


@dataclass(frozen=True)
class RollSumsPass(NestPass):
    """Find sums that a program adds up term by term, and make them reductions.

    A program that says a loop over the shifts of a window step by step is as long as the window is
    large; no body of code holds all of it, and what is between the steps goes through memory. So
    sums of which one nest could not hold all terms are rolled, with all that is computed for the
    terms, if the terms differ by constants only: those in indices are counted by one loop or two,
    others come out of a table. A maximum or a product is a sum here, too.

    Before::

        affine.for %i .. { affine.store %w, %w0[%i] } ...
        affine.for %i .. { ... affine.load %w0[%i] ... arith.addf ... affine.store %t, %t0[%i] }
        affine.for %i .. { affine.store %w, %w1[%i] } ...
        affine.for %i .. { ... %t0[%i] ... %w1[%i] ... arith.addf ... affine.store %t, %t1[%i] }

    After::

        affine.for %k = 0 to 2 { affine.for %i .. { affine.store %w, %w[%k, %i] } }
        affine.for %i .. {
          %t = affine.for %k = 0 to 2 iter_args(..) { ... affine.load %w[%k, %i] ... }
          affine.store %t, %t1[%i] }
    """

    name: ClassVar[str] = "roll-sums"
    #: Terms of a sum, at least.
    min_terms: int = 8
    #: Nodes that ``fuse-slices`` lets one body have; sums that need no more are best without loops.
    max_nodes: int = 600
    #: Operations for an element, and all that read it in a window, to compute it for each of them:
    #: kept in memory for all steps it would be larger than it was step by step.
    max_operations: int = 64

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Roll the sums that have equally many terms together, and all others by themselves."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        users = Users(sequence)
        by_count: dict[int, list[_Sum]] = {}
        for found in _sums(sequence, users):
            if len(found.terms) >= self.min_terms:
                by_count.setdefault(len(found.terms), []).append(found)
        for sums in by_count.values():
            if not self._roll(sums, sequence, users, context) and len(sums) > 1:
                for one in sums:
                    self._roll([one], sequence, users, context)

    def _roll(
        self, sums: list[_Sum], sequence: Sequence, users: Users, context: Any
    ) -> bool:
        """Roll some sums, which may have terms in common; whether that is possible and pays."""
        for shape in digit_shapes(len(sums[0].terms)):
            roller = Roller(users, shape)
            try:
                bodies = [_rolled(found, roller) for found in sums]
            except NotAlikeError:
                continue
            return self._accept(sums, bodies, roller, sequence, users, context)
        return False

    def _accept(
        self,
        sums: list[_Sum],
        bodies: list[list[Node]],
        roller: Roller,
        sequence: Sequence,
        users: Users,
        context: Any,
    ) -> bool:
        if roller.nodes <= self.max_nodes:
            return False
        windows = {b: places for b, places in roller.places.items() if places > 1}
        if any(n * roller.operations[b] > self.max_operations for b, n in windows.items()):
            return False
        gone = roller.gone | {nest for found in sums for nest in found.nests}
        ends = [found.nests[-1] for found in sums]
        place = min(ends, key=users.position)
        start = min(gone, key=users.position)
        last = max(ends, key=users.position)
        if users.written_between({b.base for b in roller.shared}, start, last, gone):
            return False
        for nest in gone.difference(ends):
            for buffer in users.touched(nest)[1]:
                if any(reader not in gone for reader in users.readers(buffer)):
                    return False
        if not all(stands_before(nest, place) for nest in roller.nests):
            return False
        for end, body in zip(ends, bodies, strict=True):
            context.decide(
                self.name, own_name(end, sequence), "rolled", terms=list(roller.shape)
            )
            end.body, end.changed = body, True
        at = sequence.items.index(place)
        sequence.items[at:at] = roller.nests
        users.put_before(roller.nests, place)
        for nest in gone.difference(ends):
            sequence.items.remove(nest)
            users.drop(nest)
        for end in ends:
            users.refresh(end)
        return True


@dataclass(eq=False)
class _Sum:
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


def _step(nest: Nest) -> tuple[Op, Store] | None:
    """The operation with which a nest combines two numbers for each element that it stores."""
    loops, body = perfect_loops(nest.body)
    if not loops or any(loop.inits or loop.bounded or loop.level for loop in loops):
        return None
    stores = [n for n in body if isinstance(n, Store)]
    ops = [n for n in body if isinstance(n, Op) and n.name != "arith.constant"]
    if len(stores) != 1 or len(ops) != 1 or not all(isinstance(n, (Load, Op, Store)) for n in body):
        return None
    (op,), (store,) = ops, stores
    if op.name not in COMMUTATIVE or store.value is not op.results[0]:
        return None
    # All elements of what it makes, in order.
    own = [loop.var for loop in loops if loop.var.extent > 1]
    if [v.extent for v in own] != [extent for extent in store.buffer.shape if extent > 1]:
        return None
    index = [e for e, n in zip(store.index, store.buffer.shape, strict=True) if n > 1]
    return (op, store) if index == [Expr.of(v) for v in own] else None


def _sums(sequence: Sequence, users: Users) -> list[_Sum]:
    """The sums of a program, each as long as it is."""
    steps = {nest: step for nest in sequence.nests() if (step := _step(nest)) is not None}
    before: dict[Nest, tuple[Nest, Value] | None] = {}
    length: dict[Nest, int] = {}
    inside: set[Nest] = set()
    for nest, (op, store) in steps.items():
        best: tuple[Nest, Value] | None = None
        for node in perfect_loops(nest.body)[1]:
            if not isinstance(node, Load) or node.result not in op.operands or node.where:
                continue
            maker = _only_maker(node, store, nest, users)
            if maker in steps and steps[maker][0].name == op.name:
                if steps[maker][0].attributes != op.attributes:
                    continue
                if best is None or length[maker] > length[best[0]]:
                    best = maker, node.result
        before[nest] = best
        length[nest] = 1 if best is None else length[best[0]] + 1
        if best is not None:
            inside.add(best[0])
    return [_sum(nest, steps, before) for nest in steps if nest not in inside]


def _only_maker(load: Load, store: Store, nest: Nest, users: Users) -> Nest | None:
    """The nest that makes what is loaded where the result is stored, and only for this."""
    candidate = Candidate.of(users, load.buffer) if load.buffer.kind == "alloc" else None
    if candidate is None or load.index != store.index or load.buffer.shape != store.buffer.shape:
        return None
    return candidate.producer if users.readers(load.buffer) == [nest] else None


def _sum(
    last: Nest,
    steps: dict[Nest, tuple[Op, Store]],
    before: dict[Nest, tuple[Nest, Value] | None],
) -> _Sum:
    nests: list[Nest] = []
    terms: list[tuple[Nest, Value]] = []
    nest: Nest | None = last
    start: Value | None = None
    while nest is not None:
        op, _ = steps[nest]
        nests.append(nest)
        link = before[nest]
        if link is not None:
            # A number that is added to itself has no term.
            others = [v for v in op.operands if v is not link[1]]
            terms += [(nest, others[0])] if len(others) == 1 else [(nest, link[1])]
            nest = link[0]
            continue
        loaded = {n.result for n in perfect_loops(nest.body)[1] if isinstance(n, Load)}
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
    return _Sum(nests[::-1], [steps[n][0] for n in nests[::-1]], terms[::-1], start)


def _rolled(found: _Sum, roller: Roller) -> list[Node]:
    """The code of a sum as a reduction.

    Raises:
        NotAlikeError: terms are computed in different ways.
    """
    last = found.nests[-1]
    _, store = _step(last) or (None, None)
    assert store is not None
    index = [Var(extent) for extent in store.buffer.shape]
    at = tuple(Expr.of(v) for v in index)
    nodes: list[Node] = []
    values: dict[Nest, dict[Value, Value]] = {}
    for nest in found.nests:
        values[nest] = {}
        _, body = perfect_loops(nest.body)
        step = _step(nest)
        assert step is not None
        substitution: dict[Var, Expr] = {}
        for expr, e in zip(step[1].index, at, strict=True):
            for var in expr.variables():
                substitution[var] = e
        kept = [n for n in body if not isinstance(n, Store) and n is not step[0]]
        nodes += clone(kept, values[nest], substitution)
    code = roller.code(nodes)
    term = roller.roll(tuple(values[nest][value] for nest, value in found.terms), code)
    op = found.ops[0]
    type_ = op.results[0].type
    if found.start is None:
        zeros = identities([op])
        if zeros is None:
            raise NotAlikeError
        start, init = zeros, zeros[0].results[0]
    else:
        init = values[found.nests[0]].get(found.start, found.start)
        start = [n for n in nodes if isinstance(n, Op) and n.results[0] is init]
    total, argument = Value(type_), Value(type_)
    combined = Op(op.name, [argument, term], op.attributes, [total], op.location)
    loop = _chain(code.digits, [*code.body, combined], init, argument, total)
    last_store = Store(loop.results[0], store.buffer, at, store.location)
    return around(index, [*start, loop, last_store])


def _chain(digits: list[Var], inner: list[Node], init: Value, argument: Value, total: Value) -> For:
    """Loops over the digits that carry a sum from ``init`` on, the first one outermost.

    ``argument`` and ``total`` are the sum before and after ``inner``.
    """
    arguments = [*(Value(init.type) for _ in digits[1:]), argument]
    begins = [init, *arguments]
    body, yielded = inner, total
    for digit, begin, own in reversed(list(zip(digits, begins, arguments, strict=False))):
        loop = For(digit, body, [begin], [own], [Value(init.type)], [yielded])
        body, yielded = [loop], loop.results[0]
    return loop
