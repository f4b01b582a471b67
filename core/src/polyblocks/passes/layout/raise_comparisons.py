"""raise-comparisons: arrays of places that are compared become affine conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import address
from polyblocks.affine.analysis.known_values import KnownValues
from polyblocks.affine.analysis.outcomes import integer_relation
from polyblocks.affine.cleanup.dead_nests import drop_dead_nests
from polyblocks.affine.element import I1, I32, I64, INDEX, dtype_of
from polyblocks.affine.expr import Div, Expr, Var
from polyblocks.affine.model import Index, Load, Nest, Node, Op, Sequence, Value, remove_dead
from polyblocks.affine.ops import Ops, integer, number_of
from polyblocks.affine.rewrites.inlining import Candidate, Producer
from polyblocks.affine.subnests import straight_loops
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass

#: Relation -> (its predicate in ``arith.cmpi``, the relation of the operands exchanged).
_PREDICATES = {
    "=": ("eq", "="),
    "≠": ("ne", "≠"),
    "<": ("slt", ">"),
    "≤": ("sle", "≥"),
    ">": ("sgt", "<"),
    "≥": ("sge", "≤"),
}
_INTEGERS = (I32, I64, INDEX)
_NUMBERS = {name: i for i, name in enumerate(("eq", "ne", "slt", "sle", "sgt", "sge"))}


@dataclass(frozen=True)
class RaiseComparisonsPass(NestPass):
    """Compare affine expressions where arrays are compared that hold them.

    Masks compare arrays of places, or of numbers computed from places: the numbers of blocks, or of
    documents of equal lengths. Each is cheaper in memory than computed for every pair, but then no
    pass knows what the mask leaves out. A quotient of the innermost loop's variable is compared
    without a division: ``j floordiv 512 == d`` is ``512 * d <= j < 512 * d + 512``.

    Before::

        affine.for %i = 0 to 1024 { ... affine.store %i / 512, %d[%i] }
        affine.for %i = 0 to 1024 { affine.for %j = 0 to 1024 {
          %a = affine.load %d[%i]
          %b = affine.load %d[%j]
          %m = arith.cmpi eq, %a, %b ... } }

    After::

        affine.for %i = 0 to 1024 { affine.for %j = 0 to 1024 {
          %l = arith.cmpi sge, %j, (%i floordiv 512) * 512
          %u = arith.cmpi slt, %j, (%i floordiv 512) * 512 + 512
          %m = arith.andi %l, %u ... } }
    """

    name: ClassVar[str] = "raise-comparisons"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Raise comparisons along two loops or more; arrays that nothing reads then are gone."""
        users = Users(sequence)
        raised = False
        for nest in sequence.nests():
            count = _Raising(nest, users).run()
            if count:
                nest.replace()
                context.decide(self.name, nest.name, "raised", comparisons=count)
                raised = True
        if raised:
            drop_dead_nests(sequence)


class _Raising:
    """The comparisons of one nest."""

    def __init__(self, nest: Nest, users: Users) -> None:
        self.nest = nest
        self.users = users
        #: Arrays that hold no places, by identity -> the depth to which they were looked through.
        self.unknown: dict[int, int] = {}

    def run(self) -> int:
        """Raise; the number of comparisons that were."""
        shape = straight_loops(self.nest.body)
        if shape is None or len(shape[0]) < 2:
            return 0
        loops, body = shape
        compared = [n for n in body if isinstance(n, Op) and n.name == "arith.cmpi"]
        if not compared:
            return 0
        held, known = _known(body, self.nest, self.users, self.unknown)
        _, before = _known(body, self.nest, None, {})
        count = 0
        made: list[Node] = []
        for node in body:
            found = None
            if node in compared and isinstance(node, Op) and held:
                exprs = [known.exprs.get(v) for v in node.operands]
                if any(v not in before.exprs for v in node.operands):
                    found = _raised(node, exprs, loops[-1].var)
            count += found is not None
            made += [node] if found is None else found
        if count:
            body[:] = made
            remove_dead(self.nest.body)
        return count


def _known(
    nodes: list[Node],
    nest: Nest,
    users: Users | None,
    unknown: dict[int, int],
    depth: int = 8,
) -> tuple[int, KnownValues]:
    """Integers in straight-line code, and how many of them are those of arrays of places.

    Args:
        nodes: the code.
        nest: where it is.
        users: of all arrays; without them, loads are not known.
        unknown: grows by arrays that hold no places: nests with many loads of each other would be
            looked through once for every way that leads to them.
        depth: arrays computed from each other, at most.
    """
    known, count = KnownValues(), 0
    for node in nodes:
        if isinstance(node, Index):
            known.exprs[node.result] = node.expr
        elif isinstance(node, Op) and len(node.results) == 1:
            known.learn(node)
        elif isinstance(node, Load) and users is not None and node.buffer.constant is not None:
            count += _learn_table(node, known)
        elif (
            isinstance(node, Load)
            and users is not None
            and unknown.get(id(node.buffer), 0) < depth
            and _is_whole(node)
        ):
            count += _learn_load(node, nest, users, known, unknown, depth)
    return count, known


def _learn_load(
    load: Load,
    nest: Nest,
    users: Users,
    known: KnownValues,
    unknown: dict[int, int],
    depth: int,
) -> bool:
    """Learn the value of a load from what one nest computes of places alone."""
    candidate = Candidate.of(users, load.buffer)
    producer = None if candidate is None else Producer.of(candidate)
    if candidate is None or producer is None or not users.before(candidate.producer, nest):
        return False
    nodes, value = producer.body_at(load.index)
    _, inner = _known(nodes, candidate.producer, users, unknown, depth - 1)
    if value in inner.exprs:
        known.exprs[load.result] = inner.exprs[value]
    elif value in inner.truths:
        known.truths[load.result] = inner.truths[value]
    else:
        unknown[id(load.buffer)] = depth
        return False
    return True


def _learn_table(load: Load, known: KnownValues) -> bool:
    """Learn the value of a load from a constant table that counts."""
    if load.where or dtype_of(load.result.type) not in _INTEGERS:
        return False
    values = load.buffer.constant or ()
    numbers = [getattr(v, "value", v) for v in values]
    if len(numbers) < 2 or not all(isinstance(v, int) for v in numbers):
        return False
    first, step = numbers[0], numbers[1] - numbers[0]
    if numbers != [*range(first, first + step * len(numbers), step or 1)]:
        return False
    known.exprs[load.result] = address(load.buffer, load.index) * step + first
    return True


def _is_whole(load: Load) -> bool:
    kinds = (I1, *_INTEGERS)
    return load.buffer.kind == "alloc" and not load.where and dtype_of(load.result.type) in kinds


def _raised(op: Op, exprs: list[Expr | None], inner: Var) -> list[Node] | None:
    """A comparison of expressions of several variables; None of others."""
    left, right = exprs
    relation = integer_relation(op)
    if left is None or right is None or relation.unsigned or not relation.sign:
        return None
    more = left - right
    if len(set(more.variables())) < 2:
        return None
    ops = Ops(location=op.location)
    quotients = [
        (a, c) for a, c in more.terms if isinstance(a, Div) and a.dividend.depends_on(inner)
    ]
    divided = len(quotients) == 1 and abs(quotients[0][1]) == 1
    if divided and not Expr(0, dict(t for t in more.terms if t not in quotients)).depends_on(inner):
        ((quotient, sign),) = quotients
        other = (more - Expr(0, {quotient: sign})) * -sign
        sign_of = relation.sign if sign > 0 else _PREDICATES[relation.sign][1]
        value = _compare_quotient(ops, sign_of, quotient, other)
    else:
        value = _compare(ops, relation.sign, left, right)
    last = ops.out[-1]
    assert isinstance(last, Op)
    assert last.results == [value]
    last.results = [op.results[0]]
    return ops.out


def _compare(ops: Ops, sign: str, left: Expr, right: Expr) -> Value:
    attributes = {"predicate": number_of(_NUMBERS[_PREDICATES[sign][0]], integer(64))}
    return ops.op("arith.cmpi", [ops.index(left), ops.index(right)], integer(1), attributes)


def _compare_quotient(ops: Ops, sign: str, quotient: Div, other: Expr) -> Value:
    """``quotient sign other`` without the division."""
    x, first = quotient.dividend, other * quotient.divisor
    end = first + quotient.divisor
    if sign in ("=", "≠"):
        inside = sign == "="
        low = _compare(ops, "≥" if inside else "<", x, first)
        high = _compare(ops, "<" if inside else "≥", x, end)
        return ops.op("arith.andi" if inside else "arith.ori", [low, high])
    if sign in ("<", "≥"):
        return _compare(ops, sign, x, first)
    return _compare(ops, "<" if sign == "≤" else "≥", x, end)
