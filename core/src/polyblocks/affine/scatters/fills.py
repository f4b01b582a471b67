"""The nest that writes all of a scatter's destination before the updates."""

from __future__ import annotations

from polyblocks.affine.access import is_whole
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Nest, Sequence, Store, reads, writes
from polyblocks.affine.subnests import is_affine_code, straight_loops


def fill_before(sequence: Sequence, scatter: Nest, buffer: Buffer) -> Nest | None:
    """The last nest in front of a scatter that touches its destination, if it is a fill.

    A fill writes each element of the buffer once, and nothing else, and may run as late as the
    scatter does.
    """
    items = sequence.items
    written: set[Buffer] = set()
    for item in reversed(items[: items.index(scatter)]):
        if not isinstance(item, Nest):
            return None
        own = {b.base for b in writes(item)}
        touched = own | {b.base for b in reads(item)}
        if buffer.base in touched:
            return item if not written & touched and _fills(item, buffer) else None
        written |= own
    return None


def _fills(nest: Nest, buffer: Buffer) -> bool:
    """Whether a nest goes through the buffer, or through all of its memory in its order."""
    found = straight_loops(nest.body)
    if found is None or any(loop.level for loop in found[0]) or not is_affine_code(found[1]):
        return False
    loops, body = found
    stores = [n for n in body if isinstance(n, Store)]
    if len(stores) != 1 or any(b.base is buffer.base for b in reads(nest)):
        return False
    (store,) = stores
    if store.buffer is not buffer and not (is_whole(store.buffer) and is_whole(buffer)):
        return False
    own = [loop.var for loop in loops]
    in_order = list(store.index) == [Expr.of(var) for var in own]
    return in_order and [var.extent for var in own] == list(store.buffer.shape)
