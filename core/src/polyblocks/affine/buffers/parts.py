"""Buffers whose parts along a dimension are only accessed separately, split into these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.affine.access import begins_and_ends_with_memory
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    IndirectAccess,
    Nest,
    Sequence,
    reads,
    walk,
    writes,
)


@dataclass(frozen=True)
class PartSplitting:
    """Gives every part of an array along one dimension its own buffer, if each access names one.

    Attributes:
        owner: name of the pass, for decisions.
        parts: parts of an array, at most.
        longest: elements of a part along that dimension, at most.
    """

    owner: str
    parts: int
    longest: int

    def split(self, sequence: Sequence, context: Any) -> None:
        """Split every buffer that can be."""
        for buffer, users in self._accesses(sequence).items():
            found = self._parts(buffer, [n for _, n in users])
            if found is None:
                continue
            dimension, ranges = found
            single = all(low == high for low, high in ranges)
            parts = [_part(buffer, dimension, high - low + 1, single) for low, high in ranges]
            for nest, node in users:
                at = node.index[dimension]
                number = next(i for i, (_, high) in enumerate(ranges) if at.range()[1] <= high)
                kept = () if single else (at - ranges[number][0],)
                node.buffer = parts[number]
                node.index = (*node.index[:dimension], *kept, *node.index[dimension + 1 :])
                nest.replace()
            context.decide(
                self.owner,
                users[0][0].name,
                "parts",
                buffer=list(buffer.shape),
                dimension=dimension,
            )

    def _accesses(self, sequence: Sequence) -> dict[Buffer, list[tuple[Nest, AffineAccess]]]:
        """The accesses of all buffers that only affine accesses of nests touch."""
        barred = sequence.viewed()
        found: dict[Buffer, list[tuple[Nest, AffineAccess]]] = {}
        for item in sequence.items:
            if not isinstance(item, Nest):
                barred |= {*reads(item), *writes(item)}
                continue
            for node in walk(item.body):
                if isinstance(node, AffineAccess):
                    if node.buffer.kind == "alloc":
                        found.setdefault(node.buffer, []).append((item, node))
                elif isinstance(node, IndirectAccess):
                    barred.add(node.buffer)
        return {b: users for b, users in found.items() if b not in barred}

    def _parts(
        self, buffer: Buffer, nodes: list[AffineAccess]
    ) -> tuple[int, list[tuple[int, int]]] | None:
        """The concatenated dimension, and begin and end of each part, or None."""
        if not begins_and_ends_with_memory(buffer) or len(buffer.shape) < 2:
            return None
        for dimension, extent in enumerate(buffer.shape):
            ranges = _disjoint([n.index[dimension].range() for n in nodes])
            inside = ranges[0][0] >= 0 and ranges[-1][1] < extent
            short = all(high - low < self.longest for low, high in ranges)
            # Of one element alone the others need no memory.
            several = len(ranges) > 1 or (extent > 1 and ranges[0][0] == ranges[0][1])
            if inside and short and several and len(ranges) <= self.parts:
                return dimension, ranges
        return None


def _disjoint(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order, with those that overlap as one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def _part(buffer: Buffer, dimension: int, extent: int, single: bool) -> Buffer:
    """A buffer for a part of another one, without the dimension if it is a ``single`` element."""
    kept = () if single else (extent,)
    shape = (*buffer.shape[:dimension], *kept, *buffer.shape[dimension + 1 :])
    return Buffer(shape, buffer.element, "alloc", bytes_per_element=buffer.bytes_per_element)
