"""Plans of groups of threads: who does which iteration, where buffers live, where threads wait.

The outer iterations of a nest are shared out over *groups* of threads. A group is one thread, a
part of a warp, a warp, or several warps up to a whole block; a block has one group or several. In
one outer iteration all threads of the group run the same code: what stands outside of loops that
they share is *uniform*, computed by every thread with the same result and stored by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from math import prod
from typing import Any, ClassVar

from polyblocks.affine.cost.constants import RESERVED_REGISTERS
from polyblocks.affine.expr import Var
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.model import Buffer, For, Node, Op
from polyblocks.affine.plan.keys import PlanKind
from polyblocks.affine.vectors.choices import Choice
from polyblocks.affine.vectors.rows import Row, rows_of
from polyblocks.occupancy import padded_bytes


class Place(Enum):
    """Where a buffer of one iteration lives."""

    #: Every thread has its own; the contents differ, or are the same in all threads of a group.
    PRIVATE = "private"
    #: Every thread has the elements that its iterations of distributed loops touch, in registers.
    DISTRIBUTED_REGISTERS = "distributed registers"
    #: In the memory that the threads of a block share.
    SHARED = "shared"


@dataclass(eq=False)
class DistributedLoop:
    """Iterations that are shared out over the threads of a group.

    Attributes:
        loops: nested perfectly, from the outside in; their iterations are counted as one loop.
        order: their variables, the one that changes fastest from thread to thread last.
        combiners: the op that makes each carried value, commutative but for a choice; without
            one, iterations are independent.
        scan: whether the running values are used in the body.
        choice: of a scan whose carried values are chosen together: how; None of any other.
        pitch: iterations that are counted for the variable that changes fastest, if more than its
            extent; nothing does those beyond. 0 for as many as there are.
        lead: iterations that are counted before its first one, and that nothing does.
        width: neighbouring iterations that a thread does with one access for all of them.
    """

    loops: list[For]
    order: list[Var]
    combiners: list[Op] = field(default_factory=list)
    scan: bool = False
    choice: Choice | None = None
    pitch: int = 0
    lead: int = 0
    width: int = 1

    @property
    def counted(self) -> list[int]:
        """How many values of each variable are counted, slowest first."""
        extents = [v.extent for v in self.order]
        return [*extents[:-1], max(self.pitch, extents[-1])]

    @property
    def body(self) -> list[Node]:
        """The body of one iteration."""
        return self.loops[-1].body

    @property
    def trips(self) -> int:
        """Iterations, those that bounds or the pitch leave out included."""
        return prod(self.counted)

    def schedule(self, numbers: Numbers) -> dict[str, Any]:
        """The loop in a schedule."""
        return {
            "loop": numbers.statement(self.loops[0]),
            "order": numbers.loops(self.order),
            "pitch": self.pitch,
            "lead": self.lead,
            "width": self.width,
        }


@dataclass(eq=False)
class GroupPlan:
    """How groups of threads run one nest.

    Attributes:
        outer: the loops that groups share out, nested perfectly, from the outside in.
        order: their variables, the one that changes fastest from group to group last.
        body: what a group does in one iteration of these.
        group: threads of a group, a power of two.
        groups: groups of a block.
        strided: threads of a group are ``groups`` threads apart, so that neighbouring threads work
            on neighbouring outer iterations; else they are neighbours.
        distributed: the loops in ``body`` that the threads of a group share, by the outermost of
            them; every other loop outside of these is run by all threads together.
        places: where the buffers of an iteration live.
        barriers: nodes before which the threads of a block wait for each other.
        copied: buffers of the program that a block stages in shared memory first, since all of
            its groups read the same elements.
        width: neighbouring outer iterations that a thread does with one access for all of them.
        as_one: whether these are neighbours as if the outer loops were one, through the ends of
            rows; the last thread may have fewer.
        warp: threads of a warp.
        access_bytes: of the widest load or store of a thread.
        in_flight: iterations whose loads a thread begins before it waits for the first of them.
        held: registers of a thread that elements of buffers in ``places`` take.
        live: registers that the other values of one iteration take at once.
    """

    kind: ClassVar[PlanKind] = PlanKind.GROUPS

    outer: list[For]
    order: list[Var]
    body: list[Node]
    group: int = 1
    groups: int = 1
    strided: bool = False
    distributed: dict[For, DistributedLoop] = field(default_factory=dict)
    places: dict[Buffer, Place] = field(default_factory=dict)
    barriers: set[Node] = field(default_factory=set)
    copied: list[Buffer] = field(default_factory=list)
    width: int = 1
    as_one: bool = False
    warp: int = 32
    access_bytes: int = 16
    in_flight: int = 1
    held: int = 0
    live: int = 0

    @property
    def iterations(self) -> int:
        """Outer iterations; those that a thread does together count once."""
        return -(-prod(loop.var.extent for loop in self.outer) // self.width)

    @cached_property
    def rows(self) -> dict[Node, Row]:
        """Accesses to neighbours that a thread that works by itself does at once, by their nodes.

        One that does several iterations at once has wide accesses of these.
        """
        return rows_of(self.body, self.access_bytes) if self.group == 1 else {}

    @property
    def tile(self) -> tuple[int, ...]:
        """Nothing: groups are independent."""
        return ()

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.group * self.groups

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return -(-self.iterations // self.groups)

    @property
    def ragged(self) -> bool:
        """Whether the last block has groups without work."""
        return self.iterations % self.groups != 0

    def iterations_per_thread(self, distributed: DistributedLoop) -> int:
        """Iterations of a distributed loop that one thread does, at most."""
        return -(-distributed.trips // (self.group * distributed.width)) * distributed.width

    def shared_bytes(self) -> int:
        """Bytes of shared memory of the buffers that live there."""
        found = (b for b, place in self.places.items() if place is Place.SHARED)
        each = sum(padded_bytes(b.shape, b.bytes_per_element) for b in found)
        return each * self.groups + sum(b.nbytes for b in self.copied)

    def registers(self) -> int:
        """32-bit registers of a thread, about; buffers that no thread shares live in them."""
        private = sum(-(-b.nbytes // 4) for b, p in self.places.items() if p is Place.PRIVATE)
        return RESERVED_REGISTERS + self.held + private + self.live * self.width

    def schedule(self, numbers: Numbers) -> dict[str, Any]:
        """The plan as data."""
        return {
            "barriers": sorted(numbers.statement(n) for n in self.barriers),
            "copies": [numbers.buffers.index(b) for b in self.copied],
            "distributed": [d.schedule(numbers) for d in self.distributed.values()],
            "group": self.group,
            "groups": self.groups,
            "order": numbers.loops(self.order),
            "places": [self.places[b].value for b in numbers.local],
            "strided": self.strided,
            "width": self.width,
        }

    def decision(self) -> dict[str, Any]:
        """Its numbers for reports."""
        return {
            "group": self.group,
            "tile": list(self.tile),
            "width": self.width,
            "strided": self.strided,
            "barriers": len(self.barriers),
        }

    def may_differ(self) -> bool:
        """Whether groups may do different things, so that they cannot wait for each other."""
        return any(
            isinstance(n, For) and n not in self.distributed and n.bounded for n in self.uniform()
        )

    def uniform(self) -> Iterator[Node]:
        """The nodes that all threads of a group run together, outer before inner; distributed loops
        are nodes, what is in them is not."""
        yield from uniform_nodes(self.body, self.distributed)


def uniform_nodes(nodes: list[Node], distributed: dict[For, DistributedLoop]) -> Iterator[Node]:
    """Nodes outside of distributed loops, these included, in program order."""
    for node in nodes:
        yield node
        if isinstance(node, For) and node not in distributed:
            yield from uniform_nodes(node.body, distributed)
