"""Between which numbers the values of straight-line code lie, floating-point ones too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from polyblocks.affine.analysis.outcomes import Relation, float_relation, integer_relation
from polyblocks.affine.element import F32, F64, I1, DType, dtype_of, printed
from polyblocks.affine.model import AnyLoad, Index, Node, Op, Value

#: By how much a result of such a type may be off, of its operands: roundings of products may be
#: left out, and the order of sums may be another one.
SLACK = {F32: 2.0**-20, F64: 2.0**-49}
#: Conversions of integers that leave small ones what they are.
_CASTS = {"arith.index_cast", "arith.extsi", "arith.trunci"}
_ROUNDINGS: dict[str, Callable[[float], float]] = {
    "math.floor": math.floor,
    "math.ceil": math.ceil,
    "math.trunc": math.trunc,
    "math.roundeven": round,
}
#: Those that are no number if an operand is none.
_EXTREMES: dict[str, Callable[[float, float], float]] = {
    "arith.maximumf": max,
    "arith.minimumf": min,
}


@dataclass(frozen=True)
class Interval:
    """Numbers from ``low`` to ``high``.

    Attributes:
        low: the least one; exact for integers.
        high: the greatest one.
        nans: no number instead, if one of these values is none.
        whole: without a fractional part.
    """

    low: float
    high: float
    nans: frozenset[Value] = frozenset()
    whole: bool = False

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def within(self, low: float, high: float) -> bool:
        """Whether it is surely a number, from ``low`` to ``high``."""
        return not self.nans and low <= self.low and self.high <= high

    def join(self, other: Interval) -> Interval:
        """The hull of both."""
        return Interval(
            min(self.low, other.low),
            max(self.high, other.high),
            self.nans | other.nans,
            self.whole and other.whole,
        )


@dataclass
class Facts:
    """Facts that hold when a condition has one of its outcomes.

    Attributes:
        ends: values, each with the numbers that it lies between.
        numbers: values that are surely numbers.
    """

    ends: dict[Value, tuple[float, float]] = field(default_factory=dict)
    numbers: set[Value] = field(default_factory=set)

    def both(self, other: Facts) -> Facts:
        """The conjunction of both."""
        ends = dict(self.ends)
        for value, (low, high) in other.ends.items():
            before = ends.get(value, (low, high))
            ends[value] = max(low, before[0]), min(high, before[1])
        return Facts(ends, self.numbers | other.numbers)

    def narrow(self, value: Value, found: Interval) -> Interval:
        """An interval of ``value`` where this holds."""
        low, high = self.ends.get(value, (found.low, found.high))
        low, high = max(low, found.low), min(high, found.high)
        if low > high:
            # It never holds: whatever is said of the value is right.
            low, high = found.low, found.high
        nans = frozenset() if value in self.numbers else found.nans - self.numbers
        return Interval(low, high, nans, found.whole)


class Intervals:
    """The intervals of values, learned in the order in which they are computed.

    Args:
        loads: the intervals of what loads yield, as far as they are known.

    Attributes:
        of: by value.
        truths: conditions with one outcome.
    """

    def __init__(self, loads: Callable[[AnyLoad], Interval | None] | None = None) -> None:
        self._loads = loads
        self.of: dict[Value, Interval] = {}
        self.truths: dict[Value, bool] = {}
        self._facts: dict[Value, tuple[Facts, Facts]] = {}
        #: Integers of values that may be no number: these, and what the integers are otherwise.
        self._converted: dict[Value, tuple[Value, Interval]] = {}

    def get(self, value: Value) -> Interval:
        """The interval of a value; that of its type if nothing is known."""
        return self.of.get(value) or _of_type(value)

    def any_of(self, value: Value) -> Interval:
        """The interval of all values of a type."""
        return _of_type(value)

    def set(self, value: Value, interval: Interval) -> None:
        """Say what the interval of a value is."""
        self.of[value] = interval
        self._converted.pop(value, None)
        if dtype_of(value.type) == I1 and interval.low == interval.high:
            self.truths[value] = bool(interval.low)

    def copy(self) -> Intervals:
        """A copy, which is refined independently."""
        copy = Intervals(self._loads)
        copy.of, copy.truths = dict(self.of), dict(self.truths)
        copy._facts, copy._converted = dict(self._facts), dict(self._converted)
        return copy

    def assuming(self, value: Value, interval: Interval) -> Intervals:
        """A copy with another interval of a value; it is refined independently."""
        copy = self.copy()
        copy.set(value, interval)
        return copy

    def learn(self, node: Node) -> None:
        """Take note of what a node makes."""
        if isinstance(node, Index):
            low, high = node.expr.range()
            self.of[node.result] = Interval(low, high, whole=True)
        elif isinstance(node, AnyLoad):
            found = self._loads(node) if self._loads is not None else None
            self.set(node.result, found or _of_type(node.result))
        elif isinstance(node, Op) and len(node.results) == 1:
            self._learn(node, node.results[0])
        else:
            for value in node.defines:
                self.of[value] = _of_type(value)

    def _learn(self, op: Op, result: Value) -> None:
        full = _of_type(result)
        found: Interval | None = None
        if op.name in ("arith.cmpf", "arith.cmpi"):
            self._compare(op, result)
        elif op.name == "arith.select":
            found = self._choice(op)
        elif dtype_of(result.type) == I1:
            self._logic(op, result)
        elif op.name == "arith.constant":
            found = _constant(op)
        elif isinstance(full.low, int):
            found = self._integer(op)
            if found is not None and not (full.low <= found.low and found.high <= full.high):
                found = None
        elif dtype_of(result.type) in (F32, F64):
            found = self._float(op, result)
        truth = self.truths.get(result)
        if truth is not None:
            found = Interval(int(truth), int(truth), whole=True)
        self.of[result] = full if found is None else found

    def _choice(self, op: Op) -> Interval:
        condition, first, second = op.operands
        facts = self._facts.get(condition, (Facts(), Facts()))
        truth = self.truths.get(condition)
        sides = [
            known.narrow(v, self._where(v, known))
            for v, known in zip((first, second), facts, strict=True)
        ]
        if truth is not None:
            return sides[0 if truth else 1]
        return sides[0].join(sides[1])

    def _where(self, value: Value, known: Facts) -> Interval:
        """The interval of a value where facts hold."""
        number, found = self._converted.get(value, (None, None))
        return found if found is not None and number in known.numbers else self.get(value)

    def _compare(self, op: Op, result: Value) -> None:
        make: Callable[[Op], Relation | None]
        make = float_relation if op.name == "arith.cmpf" else integer_relation
        relation = make(op)
        if relation is None:
            return
        a, b = op.operands
        x, y = self.get(a), self.get(b)
        if relation.unsigned and (x.low < 0 or y.low < 0):
            if relation.sign == "<" and y.low >= 0:
                # Read without a sign, what is negative is larger than all that is not.
                self._facts[result] = Facts({a: (0, y.high - 1)}), Facts()
                if x.high < 0:
                    self.truths[result] = False
            return
        truth = relation.outcome(x, y, a is b)
        if truth is not None:
            self.truths[result] = truth
        facts = tuple(Facts() for _ in range(2))
        for holds in (True, False):
            ends, number = relation.ends(x, y, holds)
            known = facts[0 if holds else 1]
            if ends is not None:
                known.ends = {a: ends[0], b: ends[1]}
            if number:
                known.numbers = {a, b}
        self._facts[result] = facts[0], facts[1]

    def _logic(self, op: Op, result: Value) -> None:
        """Conditions of conditions."""
        if op.name == "arith.constant":
            self.truths[result] = bool(op.attributes["value"].value)
            return
        if op.name not in ("arith.andi", "arith.ori"):
            return
        both = op.name == "arith.andi"
        truths = [self.truths.get(v) for v in op.operands]
        other = not both
        if other in truths:
            self.truths[result] = other
        elif truths == [both, both]:
            self.truths[result] = both
        found = [self._facts.get(v, (Facts(), Facts())) for v in op.operands]
        at = 0 if both else 1
        joined = found[0][at].both(found[1][at])
        self._facts[result] = (joined, Facts()) if both else (Facts(), joined)

    def _integer(self, op: Op) -> Interval | None:
        known = [self.get(v) for v in op.operands]
        if op.name in ("arith.fptosi", "arith.fptoui"):
            (x,) = known
            if not x.bounded:
                return None
            found = Interval(math.trunc(x.low), math.trunc(x.high), whole=True)
            full = _of_type(op.results[0])
            if not x.nans:
                return found
            if full.low <= found.low and found.high <= full.high:
                self._converted[op.results[0]] = op.operands[0], found
            return None
        if not known or any(dtype_of(v.type) == I1 for v in op.operands):
            return Interval(0, 1, whole=True) if op.name == "arith.extui" else None
        x = known[0]
        if op.name in _CASTS:
            return x
        if op.name in ("arith.extui", "arith.index_castui"):
            return x if x.low >= 0 else None
        if len(known) != 2:
            return None
        return _of_integers(op.name, x, known[1])

    def _float(self, op: Op, result: Value) -> Interval | None:
        known = [self.get(v) for v in op.operands]
        own = frozenset({result})
        if op.name == "arith.extf":
            return known[0]
        if op.name in ("arith.sitofp", "arith.uitofp"):
            return _of_whole(known[0], op, dtype_of(result.type))
        if op.name in _ROUNDINGS:
            (x,) = known
            if not x.bounded:
                return Interval(x.low, x.high, x.nans)
            ends = [float(_ROUNDINGS[op.name](e)) for e in (x.low, x.high)]
            return Interval(ends[0], ends[1], x.nans, whole=True)
        if op.name == "arith.negf":
            return Interval(-known[0].high, -known[0].low, known[0].nans, known[0].whole)
        if op.name == "math.absf":
            low, high = known[0].low, known[0].high
            least = max(low, -high, 0.0)
            return Interval(least, max(-low, high), known[0].nans, known[0].whole)
        if op.name in _EXTREMES:
            x, y = known
            better = _EXTREMES[op.name]
            low, high = better(x.low, y.low), better(x.high, y.high)
            return Interval(low, high, x.nans | y.nans, x.whole and y.whole)
        if op.name not in ("arith.addf", "arith.subf", "arith.mulf", "arith.divf"):
            return None
        x, y = known
        if not (x.bounded and y.bounded) or (op.name == "arith.divf" and y.low <= 0 <= y.high):
            return Interval(-math.inf, math.inf, own)
        return _of_numbers(op.name, x, y, dtype_of(result.type))


def _of_type(value: Value) -> Interval:
    """Any value of a type."""
    name = printed(value.type)
    if name == "index":
        name = "i64"
    if name == "i1":
        return Interval(0, 1, whole=True)
    if name[0] == "i" and name[1:].isdigit():
        limit = 1 << (int(name[1:]) - 1)
        return Interval(-limit, limit - 1, whole=True)
    return Interval(-math.inf, math.inf, frozenset({value}))


def _constant(op: Op) -> Interval | None:
    value: Any = getattr(op.attributes["value"], "value", None)
    if isinstance(value, int):
        return Interval(value, value, whole=True)
    if not isinstance(value, float) or math.isnan(value):
        return None
    return Interval(value, value, whole=math.isfinite(value) and value == math.floor(value))


def _of_integers(name: str, x: Interval, y: Interval) -> Interval | None:
    """The interval of an operation on two integers, as if they had all digits."""
    low, high, first, last = (int(e) for e in (x.low, x.high, y.low, y.high))
    if name == "arith.addi":
        return Interval(low + first, high + last, whole=True)
    if name == "arith.subi":
        return Interval(low - last, high - first, whole=True)
    if name == "arith.muli":
        ends = [a * b for a in (low, high) for b in (first, last)]
        return Interval(min(ends), max(ends), whole=True)
    if name == "arith.maxsi":
        return Interval(max(low, first), max(high, last), whole=True)
    if name == "arith.minsi":
        return Interval(min(low, first), min(high, last), whole=True)
    if first != last or first <= 0:
        return None
    if name == "arith.floordivsi" or (name in ("arith.divsi", "arith.divui") and low >= 0):
        return Interval(low // first, high // first, whole=True)
    if name in ("arith.remsi", "arith.remui") and low >= 0:
        return Interval(0, min(high, first - 1), whole=True)
    return None


def _of_whole(x: Interval, op: Op, type_: DType) -> Interval | None:
    """An integer as a floating-point number."""
    if op.name == "arith.uitofp" and x.low < 0:
        return None
    limit = 1 << type_.precision
    if dtype_of(op.operands[0].type) == I1:
        return Interval(0.0, 1.0, whole=True) if op.name == "arith.uitofp" else None
    if -limit <= x.low and x.high <= limit:
        return Interval(float(x.low), float(x.high), whole=True)
    slack = SLACK[type_]
    return Interval(x.low - abs(x.low) * slack, x.high + abs(x.high) * slack)


def _of_numbers(name: str, x: Interval, y: Interval, type_: DType) -> Interval:
    """The interval of an operation on two bounded floating-point numbers."""
    sides = [(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    operations: dict[str, Callable[[float, float], float]] = {
        "arith.addf": lambda a, b: a + b,
        "arith.subf": lambda a, b: a - b,
        "arith.mulf": lambda a, b: a * b,
        "arith.divf": lambda a, b: a / b,
    }
    ends = [operations[name](a, b) for a, b in sides]
    low, high = min(ends), max(ends)
    largest = max(*map(abs, ends), *(abs(e) for pair in sides for e in pair))
    nans = x.nans | y.nans
    whole = x.whole and y.whole and name != "arith.divf"
    # In any order, sums of a few such numbers are exact.
    if whole and largest <= 1 << (type_.precision - 3):
        return Interval(low, high, nans, whole=True)
    if largest > 1e30:
        return Interval(-math.inf, math.inf, nans)
    if name in ("arith.addf", "arith.subf"):
        slack = largest * SLACK[type_]
    else:
        slack = max(abs(low), abs(high)) * SLACK[type_]
    return Interval(low - slack, high + slack, nans)
