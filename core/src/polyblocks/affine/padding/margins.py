"""Margins: elements of buffers that are always zero, around those that are computed.

So is the padding of a convolution stored: an operation of the framework clears a buffer, and what
it works on is stored in the middle.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from typing import Any

from polyblocks.affine.analysis.boxes import Box, hull, overlap, reach, with_loops
from polyblocks.affine.model import (
    Buffer,
    IndirectAtomic,
    IndirectStore,
    Load,
    Nest,
    Op,
    Sequence,
    Store,
    Value,
    walk,
    writes,
)


@dataclass(frozen=True)
class Margin:
    """The zero padding of a buffer.

    Attributes:
        inside: the box that holds all other elements.
        padding: numbers of the paddings that all of these zeros are part of.
        locations: of the stores of zeros, for reports.
        cleared: whether zeros may replace other elements inside: then these are not what was
            stored there before.
    """

    inside: Box
    padding: frozenset[int]
    locations: tuple[Any, ...]
    cleared: bool

    def is_own(self, load: Load) -> bool:
        """Whether the zeros are padding of the operation that a load is of."""
        return bool(load.padding & self.padding)


def margins_of(sequence: Sequence) -> dict[Buffer, Margin]:
    """The margins of a program's own buffers, by the accesses that its nests have now.

    Elements that nothing stores count as zeros: nothing reads these.
    """
    zeros: dict[Buffer, list[Store]] = defaultdict(list)
    inside: dict[Buffer, list[Box]] = defaultdict(list)
    others: set[Buffer] = set()
    cleared: set[Buffer] = set()
    for item in sequence.items:
        if not isinstance(item, Nest):
            others |= {b.base for b in writes(item)}
            continue
        cleared |= _cleared(item, inside)
        constants = zeros_in(item)
        for store, loops in with_loops(item.body):
            if not isinstance(store, Store):
                continue
            if store.buffer.base is not store.buffer:
                others.add(store.buffer.base)
            elif store.value in constants:
                zeros[store.buffer].append(store)
            else:
                inside[store.buffer].append(tuple(reach(e, loops) for e in store.index))
        for node in walk(item.body):
            if isinstance(node, (IndirectStore, IndirectAtomic)):
                others.add(node.buffer.base)
    found: dict[Buffer, Margin] = {}
    for buffer, stores in zeros.items():
        own = buffer.kind in ("alloc", "local") and buffer.outer is None and buffer not in others
        if own and inside[buffer]:
            padding = frozenset.intersection(*(store.padding for store in stores))
            locations = tuple(store.location for store in stores if store.location is not None)
            box = reduce(hull, inside[buffer])
            found[buffer] = Margin(box, padding, locations, buffer in cleared)
    return found


def _cleared(nest: Nest, inside: dict[Buffer, list[Box]]) -> set[Buffer]:
    """The buffers in which a nest may store zeros over other elements.

    ``inside`` has the boxes that nests before it stored. Of a nest's own stores the order is not
    asked.
    """
    constants = zeros_in(nest)
    zeros: list[tuple[Buffer, Box]] = []
    own: dict[Buffer, list[Box]] = defaultdict(list)
    for store, loops in with_loops(nest.body):
        if isinstance(store, Store):
            box = tuple(reach(e, loops) for e in store.index)
            if store.value in constants:
                zeros.append((store.buffer, box))
            else:
                own[store.buffer].append(box)
    return {
        buffer
        for buffer, box in zeros
        if any(overlap(box, other) for other in [*inside.get(buffer, []), *own[buffer]])
    }


def zeros_in(nest: Nest) -> set[Value]:
    """The values in a nest that are the constant 0."""
    return {n.results[0] for n in walk(nest.body) if isinstance(n, Op) and is_zero(n)}


def is_zero(op: Op) -> bool:
    """Whether an operation is the constant 0, not the negative one."""
    from polyblocks.mlir import ir

    if op.name != "arith.constant":
        return False
    value = op.attributes["value"]
    if isinstance(value, ir.FloatAttr):
        return str(value.value) == "0.0"
    return isinstance(value, ir.IntegerAttr) and value.value == 0
