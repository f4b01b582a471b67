"""Nests and stores whose results nothing reads."""

from __future__ import annotations

from polyblocks.affine.model import (
    AnyStore,
    Buffer,
    For,
    Nest,
    Node,
    Sequence,
    reads,
    remove_dead,
    writes,
)


def drop_dead_nests(sequence: Sequence) -> None:
    """Remove stores to allocations that nothing reads, and what was done for them."""
    while True:
        # A view may be read instead of its base.
        read: set[Buffer] = {b.base for item in sequence.items for b in reads(item)}
        again = False
        for nest in sequence.nests():
            dead = {b for b in writes(nest) if b.base.kind == "alloc" and b.base not in read}
            if not dead:
                continue
            drop_stores(nest.body, dead)
            remove_dead(nest.body)
            nest.replace()
            again = True
        sequence.items[:] = [i for i in sequence.items if not isinstance(i, Nest) or i.body]
        if not again:
            return


def drop_stores(nodes: list[Node], buffers: set[Buffer]) -> None:
    """Remove the stores to some buffers, in loops too."""
    nodes[:] = [n for n in nodes if not (isinstance(n, AnyStore) and n.buffer in buffers)]
    for node in nodes:
        if isinstance(node, For):
            drop_stores(node.body, buffers)
