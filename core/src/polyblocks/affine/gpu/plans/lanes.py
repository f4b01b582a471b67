"""Plans of contractions tile by tile, by arithmetic of lanes: threads share what they read.

A block computes a tile of rows and columns, step by step along the reduction: its threads copy what
a step needs to shared memory, then every thread adds to the elements that it keeps in registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import Any, ClassVar

from polyblocks.affine.access import address, begins_and_ends_with_memory
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.element import dtype_of
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.sizes import TilePlan, words_of
from polyblocks.affine.plan.keys import PlanKind
from polyblocks.affine.plan.tiles import Tiles

#: Registers of a thread of a contraction besides elements.
ADDRESSES = 32


@dataclass(frozen=True, eq=False)
class LanePlan(TilePlan):
    """How blocks compute tiles of a contraction, each thread some rows and columns.

    Attributes:
        sizes: of the tiles.
        banks: of the shared memory, of 32 bits each.
        access_bytes: of the widest load or store of a thread.
    """

    kind: ClassVar[PlanKind] = PlanKind.LANES

    banks: int = 32
    access_bytes: int = 16

    def chunk(self, side: int) -> int:
        """Rows (or columns) of a thread that follow each other: it reads them with one access."""
        operands = [o for o in self.sizes.parts.operands if o.of_rows == (side == 0)]
        if any(not dtype_of(o.load.buffer.element).in_vectors for o in operands):
            return 1
        widest = max(o.load.buffer.bytes_per_element for o in operands)
        return gcd(self.sizes.of_thread[side], max(self.access_bytes // widest, 1))

    def copied_at_once(self, operand: Operand) -> tuple[int, int]:
        """Steps, and rows (or columns), that a thread copies of an operand with one access.

        More than one of either only if they follow each other in memory, and begin at multiples of
        the piece where the buffer does.
        """
        load, side = operand.load, operand.side
        buffer = load.buffer
        most = self.access_bytes // buffer.bytes_per_element
        whole = begins_and_ends_with_memory(buffer) and begins_and_ends_with_memory(buffer.base)
        if most < 2 or load.where or not dtype_of(buffer.element).in_vectors or not whole:
            return 1, 1
        place = address(buffer, load.index)
        steps = self.sizes.parts.reduction.order[-1]
        outer = (self.sizes.parts.rows, self.sizes.parts.columns)[side][-1]
        for var, count, is_step in (
            (outer, self.sizes.tile[side], False),
            (steps, self.sizes.depth, True),
        ):
            others = [c for atom, c in place.terms if atom is not var]
            size = gcd(most, var.extent, place.const, count, *others)
            if place.coefficient(var) == 1 and size > 1:
                return (size, 1) if is_step else (1, size)
        return 1, 1

    def copied_beside(self, operand: Operand) -> int:
        """Pieces of steps that neighbouring threads copy before others take the next row."""
        steps, _ = self.copied_at_once(operand)
        if steps == 1 and not self.sizes.parts.steps_first(operand):
            return 1
        pieces = self.sizes.depth // steps
        side = operand.side
        most = self.banks // self.chunk(side)
        return pieces if pieces <= most or pieces % most else most

    def shape(self, operand: Operand) -> tuple[int, ...]:
        """An operand's tile: groups of steps, and the elements of a group.

        A group is what a thread copies at once. Behind it is room that keeps banks apart: threads
        that store neighbouring groups are a group apart, and several elements of each are stored
        at once. Every group begins at a multiple of what a thread reads.
        """
        steps, _ = self.copied_at_once(operand)
        side = operand.side
        pad, beside, chunk = 0, self.copied_beside(operand), self.chunk(side)
        if beside > 1:
            words = max(1, self.banks // beside)
            pad = max(1, words * 4 // operand.load.buffer.bytes_per_element)
            pad = -(-pad // chunk) * chunk
        return self.sizes.depth // steps, steps * self.sizes.tile[side] + pad

    def shared_bytes(self) -> int:
        """Bytes of the operands' tiles."""
        return sum(
            prod(self.shape(o)) * o.load.buffer.bytes_per_element for o in self.sizes.parts.operands
        )

    def registers(self) -> int:
        """The elements of a thread, what it copies for a step, a row and a column of operands."""
        sizes = self.sizes
        r, c = sizes.of_thread
        results = words_of(sizes.parts.reduction.loops[0].inits)
        copied = sum(
            -(-sizes.depth * sizes.tile[o.side] // sizes.threads)
            * max(1, o.load.buffer.bytes_per_element // 4)
            for o in sizes.parts.operands
        )
        return r * c * results + copied + r + c + ADDRESSES

    def schedule(self, numbers: Numbers) -> dict[str, Any]:
        """The plan as data."""
        rows, columns, depth = self.sizes.tile
        tiles = Tiles(self.sizes.of_thread, (rows, columns), depth)
        return {**tiles.schedule(), **self.derived()}

    def derived(self) -> dict[str, Any]:
        """Keys that follow from the tiles: how operands are staged."""
        operands = self.sizes.parts.operands
        staging = {
            "at_once": [list(self.copied_at_once(o)) for o in operands],
            "shared": [list(self.shape(o)) for o in operands],
        }
        return {"staging": staging}

    def decision(self) -> dict[str, Any]:
        """Its numbers for reports."""
        return self.sizes.decision()
