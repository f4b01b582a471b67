"""Nests that each make a part of an array, as one that chooses among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyblocks.affine.analysis.coverage import Slab
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import (
    Buffer,
    Check,
    IndirectStore,
    Load,
    Nest,
    Node,
    Store,
    Value,
    around,
    clone,
    reads,
    reads_from,
)
from polyblocks.affine.ops import Integers, Ops
from polyblocks.affine.rewrites.moving import like
from polyblocks.affine.steps import StepFunction
from polyblocks.affine.subnests import straight_loops
from polyblocks.affine.users import Users

#: Parts of an array, at most: all of them are computed for every element.
PARTS = 4


@dataclass
class _Part:
    """A nest's result: a slab of an array along one dimension.

    Attributes:
        slab: where it lies.
        body: what is computed for one element.
        store: where it is stored.
    """

    slab: Slab
    body: list[Node]
    store: Store

    @classmethod
    def of(cls, nest: Nest, buffer: Buffer) -> _Part | None:
        """The slab that a point-wise nest computes; None for other nests and results."""
        shape = straight_loops(nest.body, IndirectStore, Check)
        if shape is None or any(f.level for f in shape[0]):
            return None
        loops, body = shape
        stores = [n for n in body if isinstance(n, Store)]
        if len(stores) != 1 or stores[0].buffer is not buffer:
            return None
        slab = Slab.of(stores[0].index, loops)
        if slab is None:
            return None
        return cls(slab, [n for n in body if n is not stores[0]], stores[0])


def stacked(buffer: Buffer, users: Users, wraps: bool = False) -> Nest | None:
    """One nest that replaces nests of a slab each; None if they are no slabs of the buffer.

    Args:
        buffer: what they are slabs of.
        users: of all buffers.
        wraps: whether elements that are not of a slab may be at any place in it, as if slabs
            of its length followed each other, where a place at its end is no simple function.

    Before::

        affine.for %c = 0 to 3 { affine.for %x = 0 to 8 { ... affine.store %v, %b[%c, %x] } }
        affine.for %x = 0 to 8 { ... affine.store %w, %b[3, %x] }

    After::

        affine.for %c = 0 to 4 { affine.for %x = 0 to 8 {
          ... %first = arith.cmpi slt, %c, 3
          %u = arith.select %first, %v, %w
          affine.store %u, %b[%c, %x] } }
    """
    nests = users.writers(buffer)
    if not 2 <= len(nests) <= PARTS:
        return None
    parts: list[_Part] = []
    for nest in nests:
        if not isinstance(nest, Nest) or reads_from(nest, buffer):
            return None
        part = _Part.of(nest, buffer)
        # A margin of constants is better merged with others, or made in a tile.
        if part is None or not any(isinstance(n, Load) for n in part.body):
            return None
        # All are computed where the last one is, or later.
        if users.written_between({b.base for b in reads(nest)}, nest, nests[-1]):
            return None
        parts.append(part)
    dimension = _dimension(buffer, parts)
    if dimension is None:
        return None
    parts.sort(key=lambda p: p.slab.low[dimension])
    variables = [Var(extent) for extent in buffer.shape]
    nodes: list[Node] = []
    chosen: list[Value] = []
    for part in parts:
        place = _clamped(part, dimension, variables[dimension], wraps)
        if place is None:
            return None
        at = {
            var: Expr.of(new)
            for var, new in zip(part.slab.variables, variables, strict=True)
            if var is not None
        }
        own = part.slab.variables[dimension]
        if own is not None:
            at[own] = place
        values: dict[Value, Value] = {}
        nodes += clone(part.body, values, at)
        chosen.append(values.get(part.store.value, part.store.value))
    nodes += _choice(parts, dimension, variables[dimension], chosen)
    index = tuple(Expr.of(v) for v in variables)
    nodes.append(Store(chosen[0], buffer, index, parts[0].store.location))
    first = nests[0]
    assert isinstance(first, Nest)
    whole = like(first, around([v for v in variables if v.extent > 1], nodes))
    whole.sources = merged_sources([n for n in nests if isinstance(n, Nest)])
    return whole


def _dimension(buffer: Buffer, parts: list[_Part]) -> int | None:
    """The dimension along which the parts follow each other; None if it is not one alone."""
    cut = {
        d
        for part in parts
        for d, extent in enumerate(buffer.shape)
        if (part.slab.low[d], part.slab.high[d]) != (0, extent)
    }
    if len(cut) != 1:
        return None
    (d,) = cut
    spans = sorted((p.slab.low[d], p.slab.high[d]) for p in parts)
    ends = [0, *(high for _, high in spans)]
    follow = all(low == end for (low, _), end in zip(spans, ends, strict=False))
    return d if follow and ends[-1] == buffer.shape[d] else None


def _clamped(part: _Part, dimension: int, var: Var, wraps: bool) -> Expr | None:
    """The place in a part, at its ends where elements are not of it; None if that is not simple.

    With ``wraps`` anywhere in it then.
    """
    low, high = part.slab.low[dimension], part.slab.high[dimension]
    if high - low == 1:
        return Expr(0)
    places = np.arange(var.extent) - low
    function = StepFunction.of(np.clip(places, 0, high - low - 1))
    if function is None and wraps:
        # A step for each time that the slab begins again: loops are not cut at those, as they are
        # for a remainder.
        function = StepFunction.of(places % (high - low))
    return None if function is None else function.at(Expr.of(var))


def _choice(parts: list[_Part], dimension: int, var: Var, chosen: list[Value]) -> list[Node]:
    """Code that leaves the value of the part that an element is of in ``chosen[0]``."""
    ops = Ops()
    place = ops.index(Expr.of(var))
    for i in reversed(range(len(parts) - 1)):
        inside = ops.compare(Integers.LESS, place, ops.index(parts[i].slab.high[dimension]))
        chosen[i] = ops.select(inside, chosen[i], chosen[i + 1])
    return ops.out
