"""Effects of code on places that masks leave out.

A place whose score is minus infinity by an affine condition is absent: its exponential is zero, and
what that is multiplied by does not matter, not even if it is infinite or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    Buffer,
    For,
    Index,
    Load,
    Node,
    Op,
    Pure,
    Store,
    Value,
    walk,
)
from polyblocks.affine.ops import constant_number

_LARGER = {"arith.maximumf", "arith.maxnumf"}
_EXPONENTIALS = {"math.exp", "math.exp2"}
_FLOAT_CASTS = {"arith.extf", "arith.truncf"}


@dataclass(frozen=True)
class Number:
    """A number that is known.

    Attributes:
        value: it.
        masked: whether a mask gives it: minus infinity, or an exponential of that.
    """

    value: float
    masked: bool = False

    @property
    def is_lowest(self) -> bool:
        """Whether it is minus infinity."""
        return self.value == -math.inf

    @property
    def is_absent(self) -> bool:
        """Whether it is zero because a mask gave minus infinity."""
        return self.masked and self.value == 0

    @property
    def is_neutral(self) -> bool:
        """Whether sums stay the same if it is added to them."""
        return self.is_absent or (self.value == 0 and math.copysign(1.0, self.value) < 0)


@dataclass(frozen=True)
class Place:
    """The first value of an element of a buffer."""

    buffer: Buffer
    index: tuple[Expr, ...]
    version: int


#: A value as a number, as another value, or as an element.
Known = Number | Value | Place


class Absence:
    """Goes through the body of a loop where some of its conditions and loads are known.

    Args:
        known: numbers of values.
        dropped: stores of elements that nothing reads.

    Attributes:
        stored: what each store stores.
        dead: whether nothing that code did so far can be seen.
    """

    def __init__(self, known: Mapping[Value, Number], dropped: Collection[Store]) -> None:
        self._given = known
        self._known: dict[Value, Known] = {}
        self._dropped = dropped
        self._versions: dict[Buffer, int] = {}
        self._own: set[Buffer] = set()
        self.stored: dict[Store, Known] = {}
        self.dead = True

    def of(self, value: Value) -> Known:
        """The number, other value or element that a value is."""
        return self._given.get(value) or self._known.get(value, value)

    def run(self, nodes: list[Node]) -> None:
        """Go through code."""
        for node in nodes:
            if isinstance(node, For):
                self._loop(node)
            elif isinstance(node, Store):
                self._store(node)
            elif isinstance(node, Load):
                version = self._versions.get(node.buffer, 0)
                if not node.where:
                    self._known[node.result] = Place(node.buffer, node.index, version)
            elif isinstance(node, Alloca):
                self._own.add(node.buffer)
            elif isinstance(node, Op) and len(node.results) == 1:
                found = self._op(node)
                if found is not None:
                    self._known[node.results[0]] = found
            elif not isinstance(node, (Pure, Index)) and not _is_load(node):
                self.dead = False

    @property
    def masks(self) -> bool:
        """Whether a mask gave minus infinity."""
        numbers = (known for known in self._known.values() if isinstance(known, Number))
        return any(number.masked and number.is_lowest for number in numbers)

    def passes(self, loop: For) -> bool:
        """Whether the body of a loop hands on what it carries."""
        return all(self.of(y) is a for y, a in zip(loop.yields, loop.arguments, strict=True))

    def _loop(self, loop: For) -> None:
        stored = {n.buffer for n in walk(loop.body) if isinstance(n, AffineAccess) and n.writes}
        for buffer in stored:
            self._versions[buffer] = self._versions.get(buffer, 0) + 1
        self.run(loop.body)
        for buffer in stored:
            self._versions[buffer] += 1
        for each in zip(loop.inits, loop.arguments, loop.yields, loop.results, strict=True):
            init, argument, after, result = each
            if self.of(after) is argument:
                self._known[result] = self.of(init)

    def _store(self, node: Store) -> None:
        version = self._versions.get(node.buffer, 0)
        value = self.of(node.value)
        self.stored[node] = value
        if value == Place(node.buffer, node.index, version):
            return
        self._versions[node.buffer] = version + 1
        if node not in self._dropped and node.buffer not in self._own:
            self.dead = False

    def _op(self, op: Op) -> Known | None:
        given = [self.of(v) for v in op.operands]
        if op.name == "arith.select":
            return _selected(*given)
        if op.name in _LARGER:
            return _joined(given, lambda n: n.is_lowest)
        if op.name == "arith.addf":
            if any(isinstance(g, Number) and g.masked and g.is_lowest for g in given):
                return Number(-math.inf, masked=True)
            return _joined(given, lambda n: n.is_neutral)
        if op.name == "arith.addi":
            return _joined(given, lambda n: n.value == 0)
        if op.name in ("arith.mulf", "arith.divf"):
            return _product(op.name, *given)
        first = given[0] if given else None
        if not isinstance(first, Number):
            if op.name in ("arith.andi", "arith.ori"):
                return _logic(op.name, given)
            return None
        if op.name == "arith.subf":
            return first if first.masked and first.is_lowest else None
        if op.name in _EXPONENTIALS:
            return Number(0.0, masked=True) if first.masked and first.is_lowest else None
        if op.name in _FLOAT_CASTS:
            return first if first.is_lowest or first.value == 0 else None
        if op.name in ("arith.andi", "arith.ori", "arith.xori"):
            return _logic(op.name, given)
        if op.name in ("arith.extui", "arith.uitofp"):
            return Number(float(first.value) if op.name == "arith.uitofp" else int(first.value))
        if op.name in ("arith.cmpf", "arith.cmpi"):
            return _compared(op, given)
        return None


def constants_of(nodes: list[Node]) -> dict[Value, Number]:
    """The constants in code."""
    found: dict[Value, Number] = {}
    for node in walk(nodes):
        if (value := constant_number(node)) is not None:
            found.update((result, Number(value)) for result in node.defines)
    return found


def _is_load(node: Any) -> bool:
    return bool(getattr(node, "reads", False)) and not getattr(node, "writes", False)


def _selected(condition: Known, first: Known, second: Known) -> Known | None:
    if not isinstance(condition, Number):
        if isinstance(first, Number) and isinstance(second, Number) and first.value == second.value:
            return Number(first.value, first.masked or second.masked)
        return first if first == second else None
    chosen = first if condition.value else second
    if isinstance(chosen, Number) and chosen.is_lowest:
        return Number(chosen.value, masked=True)
    return chosen


def _joined(given: list[Known], leaves: Any) -> Known | None:
    """The other operand, if one of two leaves it as it is."""
    for mine, other in (given, given[::-1]):
        if isinstance(mine, Number) and leaves(mine):
            return other
    return None


def _product(name: str, first: Known, second: Known) -> Known | None:
    pairs = [(first, second)] if name == "arith.divf" else [(first, second), (second, first)]
    for mine, other in pairs:
        if not isinstance(mine, Number):
            continue
        if mine.is_absent:
            return Number(0.0, masked=True)
        if mine.masked and mine.is_lowest and isinstance(other, Number) and other.value > 0:
            return mine
    return None


def _logic(name: str, given: list[Known]) -> Known | None:
    """Conditions of conditions; of other integers nothing is known."""
    numbers = [g for g in given if isinstance(g, Number)]
    if any(abs(int(n.value)) > 1 for n in numbers):
        return None
    truths = [bool(n.value) for n in numbers]
    deciding = name == "arith.ori"
    if name != "arith.xori" and deciding in truths:
        return Number(deciding)
    if len(truths) < 2:
        return None
    return Number(truths[0] != truths[1] if name == "arith.xori" else not deciding)


def _compared(op: Op, given: list[Known]) -> Known | None:
    """A comparison of two numbers that are known."""
    from polyblocks.affine.analysis.outcomes import float_relation, integer_relation

    if not all(isinstance(g, Number) and not math.isnan(g.value) for g in given):
        return None
    relation = float_relation(op) if op.name == "arith.cmpf" else integer_relation(op)
    if relation is None or not relation.sign or relation.unsigned:
        return None
    x, y = (g.value for g in given if isinstance(g, Number))
    outcomes = {"=": x == y, "≠": x != y, "<": x < y, "≤": x <= y, ">": x > y, "≥": x >= y}
    return Number(outcomes[relation.sign])
