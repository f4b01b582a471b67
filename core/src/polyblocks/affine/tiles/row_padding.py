"""Rows of a tile that are computed to the end of a vector, and past the edges of the image.

A stage that reads and writes nothing but buffers of the tile may compute more than is needed: what
lies beyond is never looked at, if rows have room for it. So its innermost loop has the same whole
number of vectors in every tile: no bounds, no masks, half the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import AffineAccess, Buffer, Op
from polyblocks.affine.tiles.fusion_stages import FusionStage, Place

#: Elements to which rows are rounded up: as many as the widest vector has of the usual types.
ROW = 16
#: Rows shorter than this are left as they are.
MIN_ROW = 8
#: Bytes that longer rows may add, as a part of what the buffers have.
MAX_GROWTH = 0.25
#: Parts of the names of operations on integers that must not see arbitrary numbers.
_TRAPS = ("div", "rem")


def row_of(size: int) -> int:
    """The number of elements of a row that holds ``size`` of them in whole vectors."""
    return -(-size // ROW) * ROW


def padded_rows(
    stage: FusionStage,
    earlier: list[FusionStage],
    size: int,
    firsts: Mapping[Var, Expr],
    origins: Mapping[Buffer, list[Expr]],
    buffers: Mapping[Buffer, Buffer],
) -> dict[Buffer, int] | None:
    """How long rows must be so that a stage can compute whole vectors; None if it must not.

    Args:
        stage: what is computed; its innermost loop is the one that is to run longer.
        earlier: the stages before it in the tile.
        size: iterations that are needed of that loop.
        firsts: what the variables of the stage are, the innermost one in its first iteration, in
            terms of new loops that begin at 0 and of the tile's corners.
        origins: the first element of each local buffer, in terms of the tile's corners.
        buffers: the storage of each local buffer.
    """
    if size < MIN_ROW or not stage.body_is_flat or stage.gathered or not stage.loops:
        return None
    if stage.checked:
        return None
    if any(isinstance(n, Op) and n.name.startswith("arith.") and _traps(n) for n in stage.body):
        return None
    var = stage.variables[-1]
    rows: dict[Buffer, int] = {}
    stored = [store.buffer for store in stage.stores]
    if len(set(stored)) != len(stored) or not all(b in buffers for b in stored):
        return None
    for store in stage.stores:
        places = stage.places(store)
        if not places or places[-1].var is not var or any(place.step != 1 for place in places):
            return None
        if not all(_writes_other_rows(places, other, store.buffer) for other in earlier):
            return None
    for node in stage.accesses:
        if not any(var in set(e.variables()) for e in node.index):
            continue
        need = _row_needed(node, var, row_of(size), firsts, origins)
        if need is None:
            return None
        storage = buffers[node.buffer]
        rows[storage] = max(rows.get(storage, storage.shape[-1]), row_of(need))
    before = sum(b.numel for b in rows)
    after = sum(prod(b.shape[:-1]) * row for b, row in rows.items())
    return rows if after <= before * (1 + MAX_GROWTH) else None


def _traps(op: Op) -> bool:
    """Whether it is an integer division, of whatever rounding; those of floats end with an f."""
    return any(part in op.name for part in _TRAPS) and not op.name.endswith("f")


def _writes_other_rows(places: list[Place], other: FusionStage, buffer: Buffer) -> bool:
    """Whether another stage writes other rows of a buffer, if it writes it at all."""
    for store in other.stores:
        if store.buffer is not buffer:
            continue
        theirs = other.places(store)
        if theirs is None:
            return False
        pairs = list(zip(places, theirs, buffer.shape, strict=True))[:-1]
        ranges = [(a.range(n), b.range(n)) for a, b, n in pairs]
        if not any(a[1] <= b[0] or b[1] <= a[0] for a, b in ranges):
            return False
    return True


def _row_needed(
    node: AffineAccess,
    var: Var,
    trips: int,
    firsts: Mapping[Var, Expr],
    origins: Mapping[Buffer, list[Expr]],
) -> int | None:
    """Elements of a row that an access reaches in some iterations; None if unknown.

    The loop may only walk along rows, and not begin in front of one.
    """
    if node.buffer not in origins:
        return None
    *outer, last = node.index
    if any(var in set(e.variables()) for e in outer):
        return None
    factor = last.coefficient(var)
    if not factor or factor < 0:
        return None
    first = last.substitute(firsts) - origins[node.buffer][-1]
    low, high = first.range()
    if low < 0:
        return None
    return high + (trips - 1) * factor + 1
