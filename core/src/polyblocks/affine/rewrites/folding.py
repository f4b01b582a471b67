"""Fold conditions with one outcome, and narrow comparisons."""

from __future__ import annotations

from collections.abc import Callable

from polyblocks.affine.analysis.intervals import Interval, Intervals
from polyblocks.affine.element import F32, I1, as_float32, dtype_of
from polyblocks.affine.model import (
    AnyLoad,
    Check,
    For,
    Node,
    Op,
    Value,
    remove_dead,
    replace_values,
)
from polyblocks.affine.ops import Floats, Ops, constant


def fold(
    nodes: list[Node], loads: Callable[[AnyLoad], Interval | None] | None = None
) -> tuple[Intervals, int]:
    """Fold in place what intervals decide; returns them and the number of changes.

    Args:
        nodes: the code.
        loads: the intervals of what loads yield, as far as they are known.
    """
    folding = _Folding(Intervals(loads))
    folding.block(nodes)
    if folding.same:
        replace_values(nodes, folding.same)
    if folding.changes:
        remove_dead(nodes)
    return folding.intervals, folding.changes


class _Folding:
    def __init__(self, intervals: Intervals) -> None:
        self.intervals = intervals
        self.same: dict[Value, Value] = {}
        self.changes = 0
        self._makers: dict[Value, Op] = {}

    def block(self, nodes: list[Node]) -> None:
        kept: list[Node] = []
        for position, node in enumerate(nodes):
            if isinstance(node, For):
                self.block(node.body)
            elif isinstance(node, Check):
                if self.intervals.truths.get(self._use(node.condition)):
                    self.changes += 1
                    continue
            elif isinstance(node, Op):
                if node.name == "arith.fptosi":
                    kept.extend(self._check_number(node, nodes[position + 1 :]))
                kept.extend(self._op(node))
                continue
            self.intervals.learn(node)
            kept.append(node)
        nodes[:] = kept

    def _use(self, value: Value) -> Value:
        while value in self.same:
            value = self.same[value]
        return value

    def _op(self, op: Op) -> list[Node]:
        """The replacement of an operation."""
        op.operands = [self._use(v) for v in op.operands]
        if len(op.results) != 1:
            self.intervals.learn(op)
            return [op]
        (result,) = op.results
        made: list[Node] = []
        if op.name == "arith.cmpf":
            made.extend(self._compare_narrow(op))
        self.intervals.learn(op)
        self._makers[result] = op
        same = self._operand(op)
        if same is not None:
            self.same[result] = same
            self.changes += 1
            return made
        truth = self.intervals.truths.get(result)
        if truth is not None and op.name != "arith.constant":
            self.changes += 1
            return [*made, constant(truth, result.type, result=result)]
        return [*made, op]

    def _check_number(self, op: Op, following: list[Node]) -> list[Node]:
        """Check whether an integer is one of a number, if a later check fails otherwise.

        Then it always holds of integers of numbers; what it needs is known before, and one
        comparison of floating-point numbers is less work.
        """
        number = self._use(op.operands[0])
        found = self.intervals.get(number)
        if not found.nans or not found.bounded:
            return []
        (result,) = op.results
        check = self._failing(following, result)
        if check is None:
            return []
        self.changes += 1
        self.intervals.of[number] = Interval(found.low, found.high, whole=found.whole)
        ops = Ops(location=op.location)
        ordered = ops.compare(Floats.ORDERED, number, number)
        return [*ops.out, Check(ordered, check.message, check.location)]

    def _failing(self, following: list[Node], result: Value) -> Check | None:
        """The first check of a block that fails if an integer is the lowest one, as NaN is."""
        lowest = self.intervals.get(result).low
        trial = self.intervals.assuming(result, Interval(lowest, lowest, whole=True))
        for node in following:
            if isinstance(node, For):
                return None
            if isinstance(node, Check):
                if trial.truths.get(self._use(node.condition)) is False:
                    return node
            elif result not in node.defines:
                trial.learn(node)
        return None

    def _operand(self, op: Op) -> Value | None:
        """The operand that an operation always gives."""
        truths = self.intervals.truths
        if op.name == "arith.select":
            condition, first, second = op.operands
            truth = truths.get(condition)
            if first is second:
                return first
            return None if truth is None else first if truth else second
        if op.name in ("arith.minsi", "arith.maxsi"):
            for mine, other in (op.operands, op.operands[::-1]):
                if self.intervals.get(mine).high <= self.intervals.get(other).low:
                    return mine if op.name == "arith.minsi" else other
        if op.name in ("arith.andi", "arith.ori") and dtype_of(op.results[0].type) == I1:
            for mine, other in (op.operands, op.operands[::-1]):
                if truths.get(mine) is (op.name == "arith.andi"):
                    return other
        return None

    def _compare_narrow(self, op: Op) -> list[Node]:
        """Compare what was extended as it was before, with a number that is one of its type."""
        makers = [self._makers.get(v) for v in op.operands]
        wide = [m.operands[0] if m and m.name == "arith.extf" else None for m in makers]
        first, second = wide
        if first is not None and second is not None and first.type == second.type:
            op.operands = [first, second]
            self.changes += 1
            return []
        narrow = first or second
        if narrow is None:
            return []
        known = makers[0 if second is not None else 1]
        if known is None or known.name != "arith.constant" or dtype_of(narrow.type) != F32:
            return []
        number = known.attributes["value"].value
        if not _is_single(number):
            return []
        made = constant(number, narrow.type, op.location)
        (value,) = made.results
        self.intervals.learn(made)
        op.operands = [value if v is None else v for v in wide]
        self.changes += 1
        return [made]


def _is_single(number: float) -> bool:
    """Whether a number is one of 32 bits."""
    try:
        return as_float32(number) == number
    except OverflowError:
        return False
