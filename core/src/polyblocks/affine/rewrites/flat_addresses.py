"""Loads at run-time indices as loads at one address, computed as directly as it can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from polyblocks.affine.access import strides
from polyblocks.affine.analysis.intervals import Intervals
from polyblocks.affine.element import I64, INDEX, dtype_of
from polyblocks.affine.flat_views import FlatViews, flattenable
from polyblocks.affine.model import (
    For,
    Index,
    IndirectLoad,
    Node,
    Op,
    Value,
    stored_bases,
    walk,
)
from polyblocks.affine.ops import Ops


@dataclass(frozen=True)
class Linear:
    """``const`` and a sum of values with factors.

    Values are compared as objects, quotients by what they divide and by what.
    """

    const: int = 0
    terms: tuple[tuple[Value, int], ...] = ()

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """The sum with another one, times a factor."""
        terms = dict(self.terms)
        for value, times in other.terms:
            terms[value] = terms.get(value, 0) + factor * times
        kept = tuple(sorted(((v, n) for v, n in terms.items() if n), key=lambda t: t[0].number))
        return Linear(self.const + factor * other.const, kept)

    def times(self, factor: int) -> Linear:
        """So many times it."""
        return Linear().plus(self, factor)


@dataclass
class _Addresses:
    """Linear forms of integers: their sums, and the available quotients."""

    views: FlatViews
    intervals: Intervals
    sums: dict[Value, Linear] = field(default_factory=dict)
    quotients: dict[tuple[Linear, int], Linear] = field(default_factory=dict)
    changes: int = 0

    def block(self, nodes: list[Node], wanted: Callable[[IndirectLoad], bool]) -> None:
        out: list[Node] = []
        for node in nodes:
            if isinstance(node, For):
                self.block(node.body, wanted)
            elif isinstance(node, Op) and len(node.results) == 1:
                self._learn(node)
            elif isinstance(node, IndirectLoad) and wanted(node):
                out.extend(self._address(node))
                continue
            out.append(node)
        nodes[:] = out

    def of(self, value: Value) -> Linear:
        return self.sums.get(value) or Linear(0, ((value, 1),))

    def _learn(self, op: Op) -> None:
        (result,) = op.results
        if op.name == "arith.constant" and dtype_of(result.type) in (INDEX, I64):
            self.sums[result] = Linear(int(op.attributes["value"].value))
            return
        if dtype_of(result.type) != INDEX or len(op.operands) != 2:
            return
        # Sums of indices of arrays do not wrap around: these are all in memory.
        left, right = (self.of(v) for v in op.operands)
        if op.name in ("arith.addi", "arith.subi"):
            self.sums[result] = left.plus(right, 1 if op.name == "arith.addi" else -1)
        elif op.name == "arith.muli" and not (left.terms and right.terms):
            number, other = (left, right) if not left.terms else (right, left)
            self.sums[result] = other.times(number.const)
        elif op.name == "arith.floordivsi" and not right.terms and right.const > 0:
            self.sums[result] = self._quotient(left, right.const, result)

    def _quotient(self, of: Linear, by: int, result: Value) -> Linear:
        """A quotient, without the multiples of the divisor in the sum."""
        whole = Linear(of.const // by, tuple((v, n // by) for v, n in of.terms if n % by == 0))
        rest = Linear(of.const % by, tuple((v, n) for v, n in of.terms if n % by))
        if not rest.terms:
            return whole
        made = Linear(0, ((result, 1),)).plus(whole, -1)
        return whole.plus(self.quotients.setdefault((rest, by), made))

    def _address(self, node: IndirectLoad) -> list[Node]:
        """The load at its place in memory, and what computes that."""
        from polyblocks.mlir import ir

        buffer, index = node.buffer, ir.IndexType.get()
        at = Linear()
        for value, step in zip(node.index, strides(buffer), strict=True):
            at = at.plus(self.of(value), step)
        ops = Ops(location=node.location)
        total: Value | None = None
        for value, factor in at.terms:
            part = value
            if factor != 1:
                part = ops.op("arith.muli", [value, ops.constant(factor, index)])
            total = part if total is None else ops.op("arith.addi", [total, part])
        if total is None:
            total = ops.constant(at.const, index)
        elif at.const:
            total = ops.op("arith.addi", [total, ops.constant(at.const, index)])
        for made in ops.out:
            self.intervals.learn(made)
        flat = self.views.of(buffer)
        self.changes += 1
        return [*ops.out, IndirectLoad(node.result, flat, [total], node.location)]


def flatten_addresses(nodes: list[Node], views: FlatViews, intervals: Intervals) -> int:
    """Rewrite in place, and learn what is new; returns the number of loads that are flat now.

    Not those of buffers that the nest writes as well, and those in a row which is the same for all
    iterations of the innermost loop: vectors are loaded there, or lanes at short distances.
    """
    moving = {n.result for n in walk(nodes) if isinstance(n, Index) and any(n.variables())}
    loops = [n for n in walk(nodes) if isinstance(n, For)]
    in_rows = {n for loop in loops for n in _along_rows(loop, moving)}
    written = stored_bases(nodes)

    def wanted(node: IndirectLoad) -> bool:
        buffer = node.buffer
        if len(buffer.shape) < 2 or buffer.base in written or not flattenable(buffer):
            return False
        if node in in_rows:
            return False
        return all(step >= 0 for step in strides(buffer))

    found = _Addresses(views, intervals)
    found.block(nodes, wanted)
    return found.changes


def _along_rows(loop: For, moving: set[Value]) -> Iterator[IndirectLoad]:
    """The loads of an innermost loop whose last index alone changes.

    That one advances by 1, or it is that of a neighbour anywhere in a row that a loop around
    chooses; ``moving`` are the indices of loops.
    """
    counting: dict[Value, int | None] = {}
    for node in loop.body:
        if isinstance(node, For):
            return
        if isinstance(node, Index):
            step = node.expr.coefficient(loop.var)
            if step != 0:
                counting[node.result] = step
            continue
        if isinstance(node, IndirectLoad):
            *outer, last = node.index
            anywhere = last in counting and any(v in moving for v in outer)
            in_order = counting.get(last) == 1 or (anywhere and strides(node.buffer)[-1] == 1)
            if in_order and not any(v in counting for v in outer):
                yield node
        if loop.var in node.variables() or any(v in counting for v in node.uses):
            counting.update(dict.fromkeys(node.defines, None))
