"""choose-layouts: intermediate arrays lie in memory in the order of what they are used with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import begins_and_ends_with_memory
from polyblocks.affine.buffers.layout_votes import Ballot
from polyblocks.affine.model import Buffer, For, Nest, Opaque, Sequence, walk
from polyblocks.affine.rewrites.permuting import permuted, reorder
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class ChooseLayoutsPass(NestPass):
    """Let another dimension of an intermediate array be the one whose elements are neighbours.

    The caller decides how arguments and results lie in memory. In a nest that walks these in order
    with one of its loops, an intermediate array is walked in order, too, if the dimension that the
    loop moves comes last. Every array with a known layout votes, with its bytes, for
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

    #: Votes for a buffer over the most that any has, from which on it is decided in a round.
    clear: float = 0.25
    #: How many times the bytes of all votes an array may be, for them to count: not those of a row
    #: of numbers that is read with each of its own.
    part: int = 16

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Choose for every intermediate array of the sequence, the most used ones first."""
        users = Users(sequence)
        free = self._free(sequence, users)
        nests = {b: list(_nests(users, b)) for b in free}
        ballot = Ballot(set(free), context.target.line)
        while ballot.open:
            votes = {b: ballot.votes(b, nests[b]) for b in free if b in ballot.open}
            most = max(max(v) for v in votes.values())
            if not most:
                break
            for buffer, mine in votes.items():
                if max(mine) < self.clear * most:
                    continue
                best = max(range(len(mine)), key=lambda d: (mine[d], d))
                counts = mine[best] * self.part >= buffer.nbytes
                moves = counts and mine[best] > self.majority * mine[-1]
                ballot.close(buffer, nests[buffer], best if moves else len(mine) - 1)
                if moves:
                    order = [*(d for d in range(len(mine)) if d != best), best]
                    _permute(buffer, order, nests[buffer], sequence)
                    context.decide(
                        self.name, "main", "layout", buffer=list(buffer.shape), order=order
                    )

    def _free(self, sequence: Sequence, users: Users) -> dict[Buffer, None]:
        """Intermediate arrays that only nests access, so any layout is legal, in program order."""
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
            if any(isinstance(item, Opaque) for item in items):
                continue
            # A loop whose bounds depend on loops around it has no lanes that a layout is for.
            updating = set(users.readers(buffer)) & set(users.writers(buffer))
            if not any(isinstance(item, Nest) and _is_bounded(item) for item in updating):
                found[buffer] = None
        return found


def _is_bounded(nest: Nest) -> bool:
    """Whether a loop of a nest has bounds that depend on the loops around it."""
    return any(isinstance(node, For) and node.bounded for node in walk(nest.body))


def _nests(users: Users, buffer: Buffer) -> Iterator[Nest]:
    for item in dict.fromkeys([*users.writers(buffer), *users.readers(buffer)]):
        assert isinstance(item, Nest)
        yield item


def _permute(buffer: Buffer, order: list[int], nests: list[Nest], sequence: Sequence) -> None:
    """Replace a buffer by one with permuted dimensions."""
    new = permuted(buffer, order)
    sequence.buffers.append(new)
    for nest in nests:
        reorder(nest.body, buffer, new, order)
        nest.replace()
