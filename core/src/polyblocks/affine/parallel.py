"""Which loops have independent iterations."""

from __future__ import annotations

from polyblocks.affine.coverage import same_for
from polyblocks.affine.model import Alloca, For, Load, LoadAt, Node, Store, StoreAt, walk


def is_parallel(loop: For, nodes: list[Node]) -> bool:
    """Whether no iteration of ``loop`` touches what another one writes."""
    local = {n.buffer for n in walk(loop.body) if isinstance(n, Alloca)}
    accesses = [
        n
        for n in walk(loop.body)
        if isinstance(n, (Load, Store, LoadAt, StoreAt)) and n.buffer not in local
    ]
    stores = [n for n in accesses if isinstance(n, (Store, StoreAt))]
    inner = {n.var for n in walk(loop.body) if isinstance(n, For)}
    for store in stores:
        if isinstance(store, StoreAt):
            return False
        for other in accesses:
            if other.buffer.base is not store.buffer.base:
                continue
            if not isinstance(other, (Load, Store)) or other.buffer is not store.buffer:
                return False
            if not same_for(store.index, other.index, loop.var, inner):
                return False
    return True
