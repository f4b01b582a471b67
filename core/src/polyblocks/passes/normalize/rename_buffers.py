"""rename-buffers: a buffer that is overwritten after it was read becomes several buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    Buffer,
    Load,
    Nest,
    Node,
    Opaque,
    Sequence,
    Store,
    Value,
    around,
    walk,
)
from polyblocks.affine.naming.names import own_name
from polyblocks.affine.tiles.fusion_stages import FusionStage
from polyblocks.affine.users import Item, Users
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class RenameBuffersPass(NestPass):
    """Give every generation of a buffer's contents a buffer of its own.

    Bufferization updates a part of an array in place when the old contents are not needed any
    more. Earlier readers of the old contents block fusion (write-after-read). Memory is not lost:
    generations share bytes when memory is planned. The unchanged rest of the old one is
    copied; `eliminate-overwritten-stores` removes the overwritten part of the copy.

    Before::

        affine.for ... { ... affine.load %b[%i] ... }          // reads the old contents
        affine.for %i = 0 to 98 { ... affine.store %v, %b[%i + 1] }
        affine.for ... { ... affine.load %b[%i] ... }

    After::

        affine.for ... { ... affine.load %old[%i] ... }
        affine.for %i = 0 to 100 { affine.load %old[%i]  affine.store %b[%i] }
        affine.for %i = 0 to 98 { ... affine.store %v, %b[%i + 1] }
        affine.for ... { ... affine.load %b[%i] ... }
    """

    name: ClassVar[str] = "rename-buffers"
    #: The part of a buffer that must be overwritten: the rest is copied.
    min_part: float = 0.5

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Separate the generations of every buffer that is written more than once."""
        users = Users(sequence)
        viewed = sequence.viewed()
        before: dict[int, list[Nest]] = {}
        for buffer in list(sequence.buffers):
            if buffer.kind not in ("alloc", "output") or buffer in viewed:
                continue
            if len(users.writers(buffer)) < 2:
                continue
            for version in self._separate(buffer, users, sequence):
                context.decide(
                    self.name,
                    own_name(version.nest, sequence),
                    "new version",
                    buffer=list(buffer.shape),
                    part=version.part,
                )
                if version.part < 1.0:
                    copies = before.setdefault(id(version.nest), [])
                    copies.append(_copy(version.old, version.new))
        if before:
            sequence.items[:] = [
                item for found in sequence.items for item in (*before.get(id(found), ()), found)
            ]

    def _separate(self, buffer: Buffer, users: Users, sequence: Sequence) -> list[_Version]:
        """Rename the accesses to all generations but the last."""
        writers, readers = set(users.writers(buffer)), set(users.readers(buffer))
        items = sorted(writers | readers, key=users.position)
        if any(isinstance(item, Opaque) for item in items):
            return []
        found: list[_Version] = []
        generation: list[Item] = []
        was_read = was_written = False
        for item in items:
            if item in writers and was_read and was_written and item not in readers:
                assert isinstance(item, Nest)
                part = _part(item, buffer)
                if part >= self.min_part:
                    old = buffer.like()
                    sequence.buffers.append(old)
                    for earlier in generation:
                        assert isinstance(earlier, Nest)
                        _rename(earlier, buffer, old)
                    if found:
                        found[-1].new = old
                    found.append(_Version(old, buffer, item, part))
                    generation = []
                    was_read = False
            was_read = was_read or item in readers
            was_written = was_written or item in writers
            generation.append(item)
        return found


@dataclass
class _Version:
    """A generation that begins with ``nest``, which writes ``part`` of it."""

    old: Buffer
    new: Buffer
    nest: Nest
    part: float


def _part(nest: Nest, buffer: Buffer) -> float:
    """The part of the buffer that a nest surely writes; 0 if that is not easily told."""
    stage = FusionStage.of(nest)
    if stage is None:
        return 0.0
    part = 0.0
    for store in stage.stores:
        if store.buffer is not buffer:
            continue
        places = stage.places(store)
        if places is None or any(place.whole for place in places):
            continue
        written = 1
        for place in places:
            written *= place.var.extent if place.var is not None else 1
        part = max(part, written / max(buffer.numel, 1))
    return part


def _rename(nest: Nest, old: Buffer, new: Buffer) -> None:
    for node in walk(nest.body):
        if isinstance(node, Access) and node.buffer is old:
            node.buffer = new
    nest.replace()


def _copy(source: Buffer, target: Buffer) -> Nest:
    loops = [Var(extent) for extent in source.shape]
    index = tuple(Expr.of(v) for v in loops)
    value = Value(source.element)
    body: list[Node] = [Load(value, source, index), Store(value, target, index)]
    return Nest(around(loops, body), [], changed=True)
