"""Margins: elements of buffers that are always zero, around those that are computed.

So is the padding of a convolution stored: an operation of the framework clears a buffer, and what
it works on is stored in the middle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
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
    """The zero padding of a buffer.

    Attributes:
        inside: the box that holds all other elements.
        operations: the framework's that store all of these zeros, as
            :func:`operations_at` has them.
    """

    inside: Box
    operations: Mapping[str, Any]


def margins_of(sequence: Sequence) -> dict[Buffer, Margin]:
    """The margins of a program's own buffers, by the accesses that its nests have now.

    Elements that nothing stores count as zeros: nothing reads these.
    """
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
    found: dict[Buffer, Margin] = {}
    for buffer, locations in zeros.items():
        own = buffer.kind in ("alloc", "local") and buffer.outer is None and buffer not in others
        operations = _in_all([operations_at(location) for location in locations.values()])
        if own and inside[buffer] and (operations or len(locations) == 1):
            found[buffer] = Margin(reduce(hull, inside[buffer]), operations)
    return found


def _in_all(stored: list[dict[str, Any]]) -> dict[str, Any]:
    """The operations that are among those of every store."""
    first, *others = stored
    return {text: one for text, one in first.items() if all(text in other for other in others)}


def operations_at(location: Any) -> dict[str, Any]:
    """The framework's operations that a location names: their own locations, by text.

    Equal locations are different objects, and nodes that a pass has made may have none.

    Args:
        location: of a node; a fused one names several operations.

    Returns:
        None of them for a location that is unknown.
    """
    if location is None or "unknown" in str(location):
        return {}
    return {str(part): part for part in getattr(location, "locations", None) or (location,)}


def is_by(location: Any, operations: Iterable[str]) -> bool:
    """Whether a node is one operation's, and that is among some of :func:`operations_at`."""
    return location is not None and str(location) in set(operations)


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
