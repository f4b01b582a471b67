"""A kernel: a nest, and the plan by which a grid of blocks of threads runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.model import Buffer, Nest, Node
from polyblocks.affine.plan.keys import PlanKind
from polyblocks.occupancy import occupancy
from polyblocks.target import Multiprocessor


class Plan(Protocol):
    """The questions that every kind of plan answers.

    They are :class:`polyblocks.affine.gpu.plans.groups.GroupPlan`,
    :class:`polyblocks.affine.gpu.plans.lanes.LanePlan` and
    :class:`polyblocks.affine.gpu.plans.units.UnitPlan`.
    """

    kind: ClassVar[PlanKind]

    @property
    def threads(self) -> int:
        """Threads of a block."""

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""

    @property
    def tile(self) -> tuple[int, ...]:
        """Sizes of the tile that a block computes; nothing where its groups are independent."""

    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""

    def registers(self) -> int:
        """32-bit registers that a thread needs, about, so that none of its values is spilled."""

    def schedule(self, numbers: Numbers) -> dict[str, Any]:
        """The plan as data: the keys of its kind, see :mod:`polyblocks.affine.plan.keys`.

        Args:
            numbers: of the nest, from before atomic updates were formed.
        """

    def decision(self) -> dict[str, Any]:
        """Its numbers for reports: group, tile, width, strided, barriers, and a unit if any."""


@dataclass(frozen=True)
class Exchange:
    """How sums pass through shared memory, so that lanes have neighbouring columns of a row.

    Attributes:
        buffer: for each warp the rows and columns of one row of its units.
        nodes: of a row of units: barriers, the store of a sum, the load of it, and what uses it.
    """

    buffer: Buffer
    nodes: list[Node]


@dataclass(frozen=True)
class Pipeline:
    """The steps of a product as nodes of a nest.

    Attributes:
        nodes: from the first buffer to the last multiplication.
        tiles: of each operand, of a unit's those of rows first, in shared memory.
        fragments: of each operand, in the registers of a unit; none without a unit.
        loaded: of each operand, in registers on the way from memory to shared memory; None where
            copies go past them.
        exchange: of the sums; None if each lane keeps its own.
    """

    nodes: list[Node]
    tiles: tuple[Buffer, ...]
    fragments: tuple[Buffer, ...]
    loaded: tuple[Buffer | None, ...]
    exchange: Exchange | None = None

    def side(self, buffer: Buffer) -> int:
        """The number of the operand whose buffer it is; of a unit's 0 for rows, 1 for columns."""
        return next(
            side
            for buffers in (self.tiles, self.fragments, self.loaded)
            for side, each in enumerate(buffers)
            if each is buffer
        )


@dataclass(frozen=True, eq=False)
class Kernel:
    """How one nest runs.

    Attributes:
        nest: what is computed.
        plan: by which threads, in which memory.
        pipeline: the steps of a contraction in tiles as nodes; None for groups of threads.
    """

    nest: Nest
    plan: Plan
    pipeline: Pipeline | None = None


def resident_blocks(plan: Plan, chip: Multiprocessor, units: int) -> int:
    """Blocks that a multiprocessor holds at once; no more than the grid has for each of them.

    Args:
        plan: with places for its buffers.
        chip: what runs it.
        units: multiprocessors of the chip.
    """
    found = occupancy(chip, plan.registers(), plan.shared_bytes(), plan.threads)
    return max(1, min(found.blocks, -(-plan.blocks // units)))
