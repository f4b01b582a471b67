"""Copies between buffers, and what threads wait for: nodes of what a kernel does with its memory.

A copy is a few loops in the model, so that every analysis of loops and accesses holds for it; in
MLIR it is one ``polyblocks.copy``. The others stand for themselves.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.analysis.boxes import reach
from polyblocks.affine.expr import Var
from polyblocks.affine.model import For, Load, Node, Op, Renaming, Store
from polyblocks.affine.subnests import perfect_loops

#: Memory spaces of buffers: the default, that of a block's threads, and that of each.
MAIN, SHARED, REGISTERS = "", "shared", "registers"
#: The kind that fills a panel in the default space.
PACK = "pack"
#: The kind that one thread starts for all of a block, and that of a thread's own.
BULK, ASYNCHRONOUS = "bulk", "asynchronous"
#: Kind of a copy -> the spaces that it is from and to.
KINDS: dict[str, tuple[tuple[str, str], ...]] = {
    # Into the order in which elements are used.
    PACK: ((MAIN, MAIN),),
    # It goes on while its threads do, until they wait for the group that it is in.
    ASYNCHRONOUS: ((MAIN, SHARED),),
    # The same of a box as a whole, which one thread starts for those that wait for it.
    BULK: ((MAIN, SHARED), (SHARED, MAIN)),
    # By the loads, or the stores, of each thread.
    "registers": ((MAIN, REGISTERS), (REGISTERS, SHARED)),
    # The operands of a matrix unit, as its registers hold them.
    "fragments": ((SHARED, REGISTERS),),
}
#: All threads of a block; and what a barrier can be for.
#: Of a block's threads those that multiply, where others copy.
BLOCK, CONSUMERS = "block", "consumers"
SCOPES = (BLOCK, CONSUMERS)
#: Asynchronous work of threads: copies, multiplications of a unit, or copies of results; and uses
#: of tiles, behind which their places are free for other ones, as all places are at the beginning.
COPIES, PRODUCTS, USES, RESULTS = "copies", "products", "uses", "results"


class CopyError(Exception):
    """Loops that are marked as a copy are none, or not one that the hardware has."""


@dataclass(frozen=True)
class BoxCopy:
    """``destination[...] = source[...]`` for all elements of a box.

    ::

        for a { for b { x = load source; y = conversion x; store y, destination } }

    Attributes:
        kind: one of :data:`KINDS`.
        loops: from the outside in, without bodies: their variables and bounds.
        source: the load of an element; where a condition of it does not hold the copy is zero.
        conversions: what is done with it on the way, each of the other's result.
        destination: the store of it.
    """

    kind: str
    loops: tuple[For, ...]
    source: Load
    conversions: tuple[Op, ...]
    destination: Store

    @classmethod
    def of(cls, loop: For) -> BoxCopy:
        """Read the loops that are marked with a kind.

        Raises:
            CopyError: they have another form, or there is no such copy.
        """
        copy = cls._of(loop)
        spaces = copy.source.buffer.space, copy.destination.buffer.space
        if copy.kind not in KINDS:
            raise CopyError(f"expected a kind of {', '.join(KINDS)}, got '{copy.kind}'")
        if spaces not in KINDS[copy.kind]:
            possible = " or ".join(map(from_to, KINDS[copy.kind]))
            raise CopyError(f"a copy of kind '{copy.kind}' is {possible}, not {from_to(spaces)}")
        if copy.kind in (ASYNCHRONOUS, BULK) and copy.conversions:
            raise CopyError(f"a copy of kind '{copy.kind}' converts nothing")
        return copy

    @classmethod
    def matches(cls, loop: For) -> bool:
        """Whether loops, marked or not, have the form of a copy."""
        try:
            cls._of(loop)
        except CopyError:
            return False
        return True

    @classmethod
    def _of(cls, loop: For) -> BoxCopy:
        loops, nodes = perfect_loops([loop])
        if any(each.inits or each.level or each.unit or each.lanes for each in loops):
            raise CopyError("expected loops that carry nothing and have no other meaning")
        if len(nodes) < 2 or not isinstance(nodes[0], Load) or not isinstance(nodes[-1], Store):
            raise CopyError("expected a load, what converts its result, and a store")
        source, destination = nodes[0], nodes[-1]
        value, conversions = source.result, []
        for op in nodes[1:-1]:
            if not isinstance(op, Op) or op.operands != [value] or len(op.results) != 1:
                raise CopyError("expected that every operation converts the result of the other")
            conversions.append(op)
            (value,) = op.results
        if destination.value is not value:
            raise CopyError("expected a store of what is loaded")
        bare = tuple(For(each.var, [], lower=each.lower, upper=each.upper) for each in loops)
        return cls(loop.copy, bare, source, tuple(conversions), destination)

    @property
    def variables(self) -> list[Var]:
        """Of the loops, the outermost first."""
        return [loop.var for loop in self.loops]

    def check_box(self, around: Sequence[For]) -> None:
        """Check that the box has room in the buffer that it is copied to.

        Args:
            around: the loops that the copy is in.

        Raises:
            CopyError: it has not, whatever the loops around do.
        """
        loops = [*around, *self.loops]
        buffer = self.destination.buffer
        for number, (expr, extent) in enumerate(
            zip(self.destination.index, buffer.shape, strict=True)
        ):
            low, end = reach(expr, loops)
            if low >= extent or end <= 0:
                raise CopyError(
                    f"expected a box inside of {extent} places along dimension {number}, got "
                    f"places from {low} on"
                )

    def loop(self) -> For:
        """The loops, marked with the kind."""
        body: list[Node] = [self.source, *self.conversions, self.destination]
        for each in reversed(self.loops):
            made = For(each.var, body, lower=each.lower, upper=each.upper)
            body = [made]
        made.copy = self.kind
        return made


def from_to(spaces: tuple[str, str]) -> str:
    """Two memory spaces in words."""
    first, second = (space or "the default space" for space in spaces)
    return f"from {first} to {second}"


@dataclass(eq=False, slots=True)
class Commit(Node):
    """The asynchronous copies, multiplications or uses since the one before are a group."""

    location: Any = None
    of: str = COPIES

    @property
    def marks(self) -> tuple[Hashable, ...]:
        return (self.of,)

    def copied(self, to: Renaming) -> Commit:
        return Commit(self.location, self.of)


@dataclass(eq=False, slots=True)
class Wait(Node):
    """A thread waits until at most ``pending`` groups of its copies, or products, are on their way.

    The groups that were formed last are these.
    """

    pending: int
    location: Any = None
    of: str = COPIES

    @property
    def marks(self) -> tuple[Hashable, ...]:
        return (self.pending, self.of)

    def copied(self, to: Renaming) -> Wait:
        return Wait(self.pending, self.location, self.of)


@dataclass(eq=False, slots=True)
class Barrier(Node):
    """The threads of a scope wait for each other, and see what all of them have stored."""

    scope: str
    location: Any = None

    @property
    def marks(self) -> tuple[Hashable, ...]:
        return (self.scope,)

    def copied(self, to: Renaming) -> Barrier:
        return Barrier(self.scope, self.location)
