"""Code ahead of a nest of tiles: panels of what several of its tiles multiply, filled once."""

from __future__ import annotations

from math import prod

from polyblocks.affine.analysis.dataflow import variables_of
from polyblocks.affine.flat_views import is_flat
from polyblocks.affine.model import AnyLoad, Buffer, For, Nest, Node, Sequence, walk, writes
from polyblocks.affine.prologue import Prologue, copied

#: Tiles that use a panel, from which on it is filled once for all of them.
TILES = 4


class TilePrologue:
    """Code in front of a nest whose tile loops a contraction is in.

    It does for the tiles of a nest what :class:`~polyblocks.affine.preparation.Preparation` does
    for the calls of a program.

    Args:
        sequence: that the nest is in.
        nest: the nest.
        around: the tile loops around the contraction.
    """

    #: Panels are used right after they are filled.
    lasting_bytes = 0

    def __init__(self, sequence: Sequence, nest: Nest, around: list[For]) -> None:
        self._sequence = sequence
        self._nest = nest
        self._around = around
        self._written = {b.base for b in writes(nest)}

    def depends_on_constants(self, nodes: list[Node]) -> bool:
        """Whether code reads only what is there before the nest, and the same in many tiles."""
        nodes = list(walk(nodes))
        if any(v.external is not None for node in nodes for v in node.uses):
            return False
        variables = variables_of(nodes)
        if any(v.value is not None for v in variables):
            return False
        buffers = [n.buffer for n in nodes if isinstance(n, AnyLoad)]
        if not buffers or any(b.base in self._written or b.kind == "local" for b in buffers):
            return False
        if not all(b.viewed is None or is_flat(b) for b in buffers):
            return False
        return prod(loop.trips for loop in self._around if loop.var not in variables) >= TILES

    def keep(self, buffer: Buffer) -> None:
        """From here on the code ahead fills a buffer, which is new."""
        self._sequence.buffers.append(buffer)

    def append(self, nodes: list[Node], like: Nest, name: str, kind: str) -> Nest:
        """Add code right in front of the nest; see :meth:`Prologue.append`."""
        nest = copied(nodes, like, name, kind, lambda buffer: buffer)
        self._sequence.items.insert(self._sequence.items.index(self._nest), nest)
        return nest


class Prologues:
    """Several pieces of code that run ahead: each panel is filled by the first of them that can.

    Args:
        members: them, what runs least often first.
    """

    def __init__(self, members: list[Prologue]) -> None:
        self._members = members

    @property
    def lasting_bytes(self) -> int:
        """Bytes of all arrays that are the same each time."""
        return sum(m.lasting_bytes for m in self._members)

    def of(self, nodes: list[Node]) -> Prologue | None:
        """The one that can run the code of an operand; None if none can."""
        return next((m for m in self._members if m.depends_on_constants(nodes)), None)


def prologues_of(
    sequence: Sequence, nest: Nest, around: list[For], program: Prologue | None
) -> Prologues | None:
    """All code ahead of a contraction in a nest; None if there can be none.

    Args:
        sequence: that the nest is in.
        nest: the nest.
        around: the tile loops around the contraction.
        program: what runs ahead of the program, or of the loop that the nest is in.
    """
    members: list[Prologue] = [] if program is None else [program]
    if around:
        members.append(TilePrologue(sequence, nest, around))
    return Prologues(members) if members else None
