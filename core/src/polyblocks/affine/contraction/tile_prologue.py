"""Code ahead of a nest of tiles: panels of what several of its tiles multiply, filled once."""

from __future__ import annotations

from math import prod

from polyblocks.affine.analysis.dataflow import variables_of
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.flat_views import is_flat
from polyblocks.affine.model import (
    Alloca,
    AnyLoad,
    Buffer,
    For,
    Nest,
    Node,
    Sequence,
    clone,
    walk,
    writes,
)
from polyblocks.affine.prologue import Prologue, copied

#: Tiles that use a panel, from which on it is filled once for all of them.
TILES = 4
#: Bytes of a panel that a thread fills for itself, at most: beside a tile they are on its stack.
OWN_BYTES = 1 << 19
#: Part by which a thread may then have more to do than its share.
WAITING = 1.05


class TilePrologue:
    """Code in front of a nest whose tile loops a contraction is in.

    It does for the tiles of a nest what :class:`~polyblocks.affine.preparation.Preparation` does
    for the calls of a program. A panel that changes with outer loops only, such as that of a head's
    keys, is filled in these, if they are iterations enough for the threads: each has room for one
    such panel, in place of one array of all of them.

    Args:
        sequence: that the nest is in.
        nest: the nest.
        around: the tile loops around the contraction.
        threads: that share the nest.
    """

    #: Panels are used right after they are filled.
    lasting_bytes = 0

    def __init__(self, sequence: Sequence, nest: Nest, around: list[For], threads: int) -> None:
        self._sequence = sequence
        self._nest = nest
        self._around = around
        self._threads = threads
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

    def own_loops(self, nodes: list[Node], nbytes: int) -> list[For]:
        """The outer loops in which a thread fills a panel for itself; none if it is for all.

        Args:
            nodes: the code of an operand.
            nbytes: of its panels in all iterations of the loops around.
        """
        variables = variables_of(nodes)
        moving = [loop for loop in self._around if loop.var in variables]
        count = len(moving)
        runs = prod(loop.trips for loop in moving)
        if not moving or moving != self._around[:count] or count == len(self._around):
            return []
        if nbytes > OWN_BYTES * runs:
            return []
        if -(-runs // self._threads) * self._threads > WAITING * runs:
            return []
        # Iterations that share a panel, as heads of queries do, would each fill it.
        exprs = [e for node in walk(nodes) for e in node.exprs]
        if any(e.coefficient(loop.var) is None for loop in moving for e in exprs):
            return []
        if any(loop.bounded or not is_parallel(loop, self._nest.body) for loop in moving):
            return []
        return moving

    def keep(self, buffer: Buffer) -> None:
        """From here on the code ahead fills a buffer, which is new."""
        self._sequence.buffers.append(buffer)

    def fill(self, nodes: list[Node], buffer: Buffer, loops: list[For]) -> None:
        """Add code that fills a thread's own panel, in loops of :meth:`own_loops`."""
        inner = loops[-1]
        inner.body[:0] = [Alloca(buffer), *clone(nodes, {}, {})]
        inner.tile = True

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
    sequence: Sequence, nest: Nest, around: list[For], program: Prologue | None, threads: int
) -> Prologues | None:
    """All code ahead of a contraction in a nest; None if there can be none.

    Args:
        sequence: that the nest is in.
        nest: the nest.
        around: the tile loops around the contraction.
        program: what runs ahead of the program, or of the loop that the nest is in.
        threads: that share the nest.
    """
    members: list[Prologue] = [] if program is None else [program]
    if around:
        members.append(TilePrologue(sequence, nest, around, threads))
    return Prologues(members) if members else None
