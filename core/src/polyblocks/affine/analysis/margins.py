"""Margins: elements of buffers that are always zero, around those that are computed.

So is the padding of a convolution stored: an operation of the framework clears a buffer, and what
it works on is stored in the middle.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from typing import Any

from polyblocks.affine.analysis.boxes import Box, hull, reach, with_loops
from polyblocks.affine.model import (
    Buffer,
    IndirectAtomic,
    IndirectStore,
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
    """What is zero in a buffer.

    Attributes:
        inside: the box outside of which all elements are.
        location: of the operation of the framework that stores these zeros.
    """

    inside: Box
    location: Any


def margins_of(sequence: Sequence) -> dict[Buffer, Margin]:
    """The margins of a program's own buffers, by the accesses that its nests have now.

    Elements that nothing stores count as zeros: nothing reads these.
    """
    # Equal locations are different objects.
    zeros: dict[Buffer, dict[str, Any]] = defaultdict(dict)
    inside: dict[Buffer, list[Box]] = defaultdict(list)
    others: set[Buffer] = set()
    for item in sequence.items:
        if not isinstance(item, Nest):
            others |= {b.base for b in writes(item)}
            continue
        constants = zeros_in(item)
        for store, loops in with_loops(item.body):
            if not isinstance(store, Store):
                continue
            if store.buffer.base is not store.buffer:
                others.add(store.buffer.base)
            elif store.value in constants:
                zeros[store.buffer].setdefault(str(store.location), store.location)
            else:
                inside[store.buffer].append(tuple(reach(e, loops) for e in store.index))
        for node in walk(item.body):
            if isinstance(node, (IndirectStore, IndirectAtomic)):
                others.add(node.buffer.base)
    return {
        buffer: Margin(reduce(hull, inside[buffer]), next(iter(locations.values())))
        for buffer, locations in zeros.items()
        if len(locations) == 1
        and inside[buffer]
        and buffer.kind in ("alloc", "local")
        and buffer.outer is None
        and buffer not in others
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
