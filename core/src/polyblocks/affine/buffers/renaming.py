"""Buffers renamed where a nest overwrites the whole of one."""

from __future__ import annotations

from polyblocks.affine.analysis.coverage import digits
from polyblocks.affine.expr import Var
from polyblocks.affine.model import (
    Access,
    Buffer,
    For,
    Load,
    Nest,
    Opaque,
    Sequence,
    Store,
    walk,
    writes,
)
from polyblocks.affine.users import Users


def rename_buffers(sequence: Sequence) -> None:
    """Rename what a buffer held before a nest overwrites the whole of it."""
    users = Users(sequence)
    # A buffer with views cannot be renamed.
    viewed = sequence.viewed()
    for nest in sequence.nests():
        for buffer in sorted(writes(nest), key=lambda b: b.number):
            if buffer.kind not in ("alloc", "output") or buffer in viewed:
                continue
            if users.writers(buffer)[0] is not nest and _overwrites(nest, buffer):
                _rename_before(sequence, users, nest, buffer)


def _overwrites(nest: Nest, buffer: Buffer) -> bool:
    """Whether the nest stores every element once and reads it only where it stores it."""
    loops: list[Var] = []
    body = nest.body
    while True:
        stores = [n for n in body if isinstance(n, Store) and n.buffer is buffer]
        if stores:
            break
        inner = [n for n in body if isinstance(n, For)]
        if len(inner) != 1 or inner[0].inits or inner[0].bounded:
            return False
        loops.append(inner[0].var)
        body = inner[0].body
    if len(stores) != 1 or digits(buffer, stores[0].index, loops) is None:
        return False
    return all(
        isinstance(n, Load) and n.buffer is buffer and n.index == stores[0].index
        for n in nest.touching(buffer)
        if n is not stores[0]
    )


def _rename_before(sequence: Sequence, users: Users, nest: Nest, buffer: Buffer) -> None:
    earlier = {*users.readers(buffer), *users.writers(buffer)}
    touching = [item for item in earlier if users.before(item, nest)]
    if any(isinstance(item, Opaque) for item in touching):
        return
    old = buffer.like()
    sequence.buffers.append(old)
    for item in (*touching, nest):
        assert isinstance(item, Nest)
        for n in walk(item.body):
            if not isinstance(n, Access) or n.buffer is not buffer:
                continue
            # The nest itself reads the old contents and stores the new ones.
            if item is not nest or isinstance(n, Load):
                n.buffer = old
        item.replace()
        users.refresh(item)
