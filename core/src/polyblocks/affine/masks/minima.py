"""Finite numbers with which masks replace scores, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from polyblocks.affine.masks.moderate import CASTS, MAXIMA, Moderate, maximum_term
from polyblocks.affine.model import Buffer, For, Load, Nest, Node, Op, Store, Value, walk
from polyblocks.affine.users import Users

#: The largest number that counts as a mask's: scores are above a tenth of it.
LEAST = -1e8
#: Factors of masked scores that leave them far below all others.
_FACTORS = (1e-2, 1e3)
_EXPONENTIALS = ("math.exp", "math.exp2")


def takes_maxima(nest: Nest) -> bool:
    """Whether a nest takes any; only in what maxima are taken of a minimum may be replaced."""
    return any(isinstance(n, Op) and n.name in MAXIMA for n in walk(nest.body))


@dataclass(frozen=True)
class Minimum:
    """A choice of a finite minimum by a condition.

    Attributes:
        nest: where it is.
        select: the choice.
        operand: the number of the operand that is the minimum.
    """

    nest: Nest
    select: Op
    operand: int


@dataclass
class Minima:
    """Finds the minima that give the same numbers as minus infinity.

    That is so where a row with another score finds its largest one, and where an exponential is of
    the difference to such a largest one: both are zero in any type.

    Args:
        users: of all arrays.
    """

    users: Users
    _moderate: Moderate = field(init=False)
    _usage: dict[Nest, dict[Value, list[tuple[Node, For | None]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._moderate = Moderate(self.users)

    def replaceable(self, nests: list[Nest]) -> list[Minimum]:
        """The minima of nests that may be minus infinity."""
        return [
            minimum
            for nest in nests
            for minimum in self._choices(nest)
            if self._vanishes(nest, minimum.select.results[0], set())
        ]

    def _choices(self, nest: Nest) -> Iterator[Minimum]:
        for node in walk(nest.body):
            if not isinstance(node, Op) or node.name != "arith.select":
                continue
            for operand in (1, 2):
                if self._moderate.is_low(nest, node.operands[operand], LEAST):
                    yield Minimum(nest, node, operand)

    def _vanishes(self, nest: Nest, value: Value, seen: set[Buffer], differs: bool = False) -> bool:
        """Whether nothing but zeros comes of a masked score.

        Args:
            nest: where it is computed.
            value: the score.
            seen: arrays that were looked at.
            differs: whether it is already less the largest score.
        """
        uses = self._uses(nest).get(value, [])
        return bool(uses) and all(
            self._vanishes_in(nest, value, node, loop, seen, differs) for node, loop in uses
        )

    def _vanishes_in(
        self,
        nest: Nest,
        value: Value,
        node: Node,
        loop: For | None,
        seen: set[Buffer],
        differs: bool,
    ) -> bool:
        """As :meth:`_vanishes`, in one use; ``loop`` is the one around."""
        if isinstance(node, Store):
            return self._vanishes_from(node, value, seen, differs)
        if not isinstance(node, Op):
            return False
        (result,) = node.results
        if differs and node.name in _EXPONENTIALS:
            return True
        if node.name in CASTS or self._scales(nest, node, value):
            return self._vanishes(nest, result, seen, differs)
        if differs:
            return False
        if loop is not None and result in loop.yields:
            number = loop.yields.index(result)
            if maximum_term(self._moderate.body(nest), loop, number) is value:
                return self._moderate.is_maximum_of_some(nest, loop, number)
            return False
        if node.name == "arith.select":
            return value is not node.operands[0] and self._vanishes(nest, result, seen)
        if node.name == "arith.addf":
            others = [v for v in node.operands if v is not value]
            return all(self._moderate.holds(nest, v, {}) for v in others) and self._vanishes(
                nest, result, seen
            )
        if node.name == "arith.subf" and node.operands[0] is value:
            other = node.operands[1]
            if self._moderate.holds(nest, other, {}):
                return self._vanishes(nest, result, seen)
            return self._moderate.is_high(nest, other) and self._vanishes(nest, result, seen, True)
        return False

    def _scales(self, nest: Nest, op: Op, value: Value) -> bool:
        """Whether an operation multiplies a value by a positive constant, or divides it by one."""
        if op.name not in ("arith.mulf", "arith.divf"):
            return False
        constants = self._moderate.body(nest).constants
        if op.name == "arith.divf" and op.operands[0] is not value:
            return False
        factors = [constants.get(v, 0.0) for v in op.operands if v is not value]
        least, most = _FACTORS
        return len(factors) == 1 and least <= factors[0] <= most

    def _vanishes_from(self, store: Store, value: Value, seen: set[Buffer], differs: bool) -> bool:
        """As :meth:`_vanishes`, of what is loaded from an array that a score is stored in."""
        buffer = store.buffer.base
        if buffer in seen or store.value is not value or store.where:
            return False
        if store.buffer is not buffer or not self.users.is_only_accessed(buffer):
            return False
        readers = self.users.readers(buffer)
        loads = [
            (nest, node)
            for nest in readers
            if isinstance(nest, Nest)
            for node in nest.touching(buffer)
            if not isinstance(node, Store)
        ]
        return bool(loads) and all(
            isinstance(load, Load) and self._vanishes(nest, load.result, seen | {buffer}, differs)
            for nest, load in loads
        )

    def _uses(self, nest: Nest) -> dict[Value, list[tuple[Node, For | None]]]:
        """The nodes that use each value, with the loops that they are in."""
        if nest not in self._usage:
            found: dict[Value, list[tuple[Node, For | None]]] = {}
            _note_uses(nest.body, None, found)
            self._usage[nest] = found
        return self._usage[nest]


def _note_uses(
    nodes: list[Node], loop: For | None, found: dict[Value, list[tuple[Node, For | None]]]
) -> None:
    for node in nodes:
        for value in node.uses:
            found.setdefault(value, []).append((node, loop))
        if isinstance(node, For):
            _note_uses(node.body, node, found)
