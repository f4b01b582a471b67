"""Units of a program that is cut: operations that only one part can hold, and all others alone.

Operations share what no program takes or gives, such as a list of arrays that a loop fills. A cut
between them would make it an argument, so they are compiled in one part, or none of them is.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyblocks.frontends.partition import Operations

#: Operations in the order of their numbers.
Unit = tuple[int, ...]


class Connected:
    """Numbers from 0, joined to groups (a disjoint-set forest)."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def root(self, number: int) -> int:
        """The number that stands for its group."""
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number

    def join(self, numbers: Iterable[int]) -> None:
        """Make one group of those of all these numbers."""
        first, *others = numbers
        for other in others:
            one, two = sorted((self.root(first), self.root(other)))
            self._parent[two] = one

    def groups(self) -> list[Unit]:
        """Those of more than one number."""
        found: dict[int, list[int]] = {}
        for number in range(len(self._parent)):
            found.setdefault(self.root(number), []).append(number)
        return [tuple(group) for group in found.values() if len(group) > 1]


def ordered_units(operations: Operations, left: Collection[int]) -> list[Unit]:
    """All operations of a program as units, in an order in which they can run.

    Groups with a fallback are no units, nor are those between whose
    operations something must run that is not among them.

    Args:
        operations: the program.
        left: what the framework runs.
    """
    groups = [group for group in operations.inseparable() if not set(left).intersection(group)]
    unit_of: dict[int, Unit] = {node: group for group in groups for node in group}
    for node in range(len(operations)):
        unit_of.setdefault(node, (node,))
    before = _predecessors(operations, unit_of)
    found = _sorted(before)
    if len(found) < len(before):
        for unit in _in_circles(before, found):
            unit_of.update((node, (node,)) for node in unit)
        found = _sorted(_predecessors(operations, unit_of))
    return found


def _predecessors(operations: Operations, unit_of: Mapping[int, Unit]) -> dict[Unit, set[Unit]]:
    """Unit -> the units that run before it: what it reads, and the last effect before its own."""
    before: dict[Unit, set[Unit]] = {}
    last_effect: Unit | None = None
    for node in range(len(operations)):
        unit = unit_of[node]
        mine = before.setdefault(unit, set())
        mine.update(unit_of[operand] for operand in operations.operands(node))
        if operations.is_ordered(node):
            if last_effect is not None:
                mine.add(last_effect)
            last_effect = unit
        mine.discard(unit)
    return before


def _sorted(before: Mapping[Unit, Collection[Unit]]) -> list[Unit]:
    """Units in order of execution, else of their first operations, without those in circles and
    what runs after these.
    """
    after: dict[Unit, list[Unit]] = {unit: [] for unit in before}
    for unit, others in before.items():
        for other in others:
            after[other].append(unit)
    missing = {unit: len(others) for unit, others in before.items()}
    ready = [unit for unit, count in missing.items() if not count]
    heapq.heapify(ready)
    found: list[Unit] = []
    while ready:
        unit = heapq.heappop(ready)
        found.append(unit)
        for other in after[unit]:
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, other)
    return found


def _in_circles(before: Mapping[Unit, Collection[Unit]], placed: Collection[Unit]) -> list[Unit]:
    """Units that run before themselves, and those between two such."""
    placed = set(placed)
    after: dict[Unit, set[Unit]] = {unit: set() for unit in before if unit not in placed}
    for unit in after:
        for other in before[unit]:
            if other in after:
                after[other].add(unit)
    # Reversed, what comes after a circle can be placed, too.
    behind = set(_sorted(after))
    return [unit for unit in after if unit not in behind]


def nodes_of(units: Iterable[Unit]) -> Unit:
    """The operations of some units."""
    return tuple(sorted(node for unit in units for node in unit))
