"""choose-layouts: intermediate arrays lie in memory in the order of what they are used with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import begins_and_ends_with_memory, stride_along
from polyblocks.affine.model import (
    Buffer,
    For,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Opaque,
    Sequence,
    Store,
    walk,
)
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass

_INDIRECT = (IndirectLoad, IndirectStore, IndirectAtomic)


@dataclass(frozen=True)
class ChooseLayoutsPass(NestPass):
    """Let another dimension of an intermediate array be the one whose elements are neighbours.

    The caller decides how arguments and results lie in memory. In a nest that walks these in order
    with one of its loops, an intermediate array is walked in order, too, if the dimension that the
    loop moves comes last. Every array of which the layout is known votes, with its bytes, for
    the dimensions of those that it meets in a nest; an intermediate array gets its layout from the
    majority, and then votes itself. So images with channels last stay so from layer to layer.

    Before (``%a`` has the strides ``[1, 56, 1]`` of channels last)::

        affine.for %c .. { affine.for %i .. { affine.for %j .. {
          %x = affine.load %a[%c, %i, %j] : memref<64x56x56xf32, strided<[1, 3584, 64]>>
          affine.store %x, %b[%c, %i + 1, %j + 1] : memref<64x58x58xf32> } } }

    After::

          affine.store %x, %b[%i + 1, %j + 1, %c] : memref<58x58x64xf32>
    """

    name: ClassVar[str] = "choose-layouts"
    #: Votes for a dimension over those for the last one, from which on it comes last.
    majority: float = 1.5

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Choose for every intermediate array of the sequence."""
        users = Users(sequence)
        open_ = self._free(sequence, users)
        nests = {b: list(_nests(users, b)) for b in open_}
        waiting = list(open_)
        while waiting:
            left: list[Buffer] = []
            for buffer in waiting:
                votes = _votes(buffer, nests[buffer], open_)
                if not any(votes):
                    left.append(buffer)
                    continue
                del open_[buffer]
                best = max(range(len(votes)), key=lambda d: (votes[d], d))
                if votes[best] > self.majority * votes[-1]:
                    order = [*(d for d in range(len(votes)) if d != best), best]
                    _permute(buffer, order, nests[buffer], sequence)
                    context.decide(
                        self.name, "main", "layout", buffer=list(buffer.shape), order=order
                    )
            if len(left) == len(waiting):
                break
            waiting = left

    def _free(self, sequence: Sequence, users: Users) -> dict[Buffer, None]:
        """The arrays whose layout nobody outside of nests knows, in program order."""
        viewed = sequence.viewed()
        found: dict[Buffer, None] = {}
        for buffer in sequence.buffers:
            if buffer.kind != "alloc" or buffer in viewed or buffer.base is not buffer:
                continue
            if sum(extent > 1 for extent in buffer.shape) < 2:
                continue
            if not begins_and_ends_with_memory(buffer):
                continue
            items = [*users.readers(buffer), *users.writers(buffer)]
            if not any(isinstance(item, Opaque) for item in items):
                found[buffer] = None
        return found


def _nests(users: Users, buffer: Buffer) -> Iterator[Nest]:
    for item in dict.fromkeys([*users.writers(buffer), *users.readers(buffer)]):
        assert isinstance(item, Nest)
        yield item


def _votes(buffer: Buffer, nests: list[Nest], open_: dict[Buffer, None]) -> list[int]:
    """Bytes that arrays of known layouts have in order, where a dimension is walked with them."""
    votes = [0] * len(buffer.shape)
    for nest in nests:
        nodes = list(walk(nest.body))
        variables = [n.var for n in nodes if isinstance(n, For) and n.var.extent > 1]
        accesses = [n for n in nodes if isinstance(n, (Load, Store))]
        mine = [n for n in accesses if n.buffer is buffer]
        for other in {n.buffer: n for n in accesses if n.buffer.base not in open_}.values():
            if other.buffer is buffer or other.buffer.kind == "local":
                continue
            ordered = [v for v in variables if stride_along(other.buffer, other.index, v) == 1]
            for dimension in range(len(votes)):
                if any(n.index[dimension].coefficient(v) for n in mine for v in ordered):
                    votes[dimension] += other.buffer.base.nbytes
    return votes


def _permute(buffer: Buffer, order: list[int], nests: list[Nest], sequence: Sequence) -> None:
    """Put a buffer with its dimensions in another order in the place of one."""
    shape = tuple(buffer.shape[d] for d in order)
    new = Buffer(shape, buffer.element, "alloc", bytes_per_element=buffer.bytes_per_element)
    sequence.buffers.append(new)
    for nest in nests:
        for node in walk(nest.body):
            if isinstance(node, (Load, Store)) and node.buffer is buffer:
                node.index = tuple(node.index[d] for d in order)
                node.buffer = new
            elif isinstance(node, _INDIRECT) and node.buffer is buffer:
                node.index = [node.index[d] for d in order]
                node.buffer = new
        nest.changed = True
