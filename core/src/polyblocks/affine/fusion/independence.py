"""Nests that may run in any order."""

from __future__ import annotations

from itertools import product

from polyblocks.affine.analysis.boxes import overlap, touched
from polyblocks.affine.model import (
    AnyStore,
    Nest,
    Opaque,
    Store,
    reads,
    walk,
    writes,
)


def independent(nest: Nest, other: Nest | Opaque) -> bool:
    """Whether two nests may change places."""
    mine, theirs = ({b.base for b in writes(n)} for n in (nest, other))
    read = {b.base for b in reads(nest)}, {b.base for b in reads(other)}
    if mine & (read[0] | read[1]) or theirs & read[0]:
        return False
    both = mine & theirs
    if not both or not isinstance(other, Nest):
        return not both
    stores = [
        [n for n in walk(each.body) if isinstance(n, AnyStore) and n.buffer.base in both]
        for each in (nest, other)
    ]
    return all(
        isinstance(a, Store)
        and isinstance(b, Store)
        and a.buffer is b.buffer
        and not overlap(touched(a.index), touched(b.index))
        for a, b in product(*stores)
        if a.buffer.base is b.buffer.base
    )
