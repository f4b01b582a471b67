"""The steps of a product by a matrix unit as nodes, where copies go past the registers.

While a stage of the operands is used, others are on their way to shared memory. Operands of a call
come from there to registers during the call before it, so that the products of a tile's last call
go on behind the barrier: its stage may be filled again beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from polyblocks.affine.buffers.copies import BLOCK, Barrier, Commit, Wait
from polyblocks.affine.expr import Expr
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.staged.copy_schedule import CopySchedule
from polyblocks.affine.gpu.staged.tile_loop import over_tiles
from polyblocks.affine.gpu.staged.unit_nodes import Number, UnitNodes
from polyblocks.affine.model import Node, Value


@dataclass
class CopyPipeline:
    """Builds the nodes that compute an element's sum.

    Args:
        plan: copies at least one operand asynchronously.
        element: the MLIR type of an operand's element as the unit takes it.
    """

    plan: UnitPlan
    element: Any
    unit: UnitNodes = field(init=False)

    def __post_init__(self) -> None:
        self.unit = UnitNodes(self.plan, self.element, ahead=False)
        sizes = self.plan.sizes
        self.schedule = CopySchedule.of(sizes.counts[2], sizes.depth, self.plan.stages)

    def nodes(self) -> list[Node]:
        """All steps, behind the nest's code before the reduction."""
        out = self.unit.buffers()
        reduction = self.plan.sizes.parts.reduction
        (start,), (total,) = reduction.loops[0].inits, reduction.loops[0].results
        value = self._first_tile(start, out)
        value = self._loop(self.schedule.loop, value, out)
        for number in self.schedule.written_out:
            quiet = number >= self.schedule.quiet_from
            value = self._tile(Expr(number), value, out, quiet, number == self.schedule.last)
        value = self._loop(self.schedule.quiet_loop, value, out, quiet=True)
        self.unit.multiply(Expr(self.schedule.last), self.plan.calls - 1, value, out, total)
        return out

    def _first_tile(self, total: Value, out: list[Node]) -> Value:
        """Start the copies of all stages, and use the first tile but for its last call."""
        last = self.schedule.last
        for number in range(self.plan.stages):
            if number <= last:
                out += self.unit.starts(Expr(number))
            out.append(Commit())
        out += [*self.unit.loads(Expr(0)), *self.unit.stores(Expr(0))]
        out += self._arrived(self.schedule.in_flight + 1)
        out += self._reads(Expr(0), 0)
        if last:
            out += self.unit.loads(Expr(1))
        for call in range(1, self.plan.calls):
            total = self.unit.multiply(Expr(0), call - 1, total, out)
            out += self._reads(Expr(0), call)
        if last:
            out += self.unit.stores(Expr(1))
            out += self._arrived(self.schedule.in_flight)
        return total

    def _loop(self, tiles: range, total: Value, out: list[Node], quiet: bool = False) -> Value:
        return over_tiles(tiles, total, out, partial(self._tile, quiet=quiet))

    def _tile(
        self, number: Number, total: Value, out: list[Node], quiet: bool, is_last: bool = False
    ) -> Value:
        """The last call on the tile before one, and all others on this one.

        A quiet one starts no copy, and may be the last.
        """
        calls = self.plan.calls
        if not is_last:
            out += self.unit.loads(number + 1)
        if not quiet:
            out += self.unit.starts(number + (self.plan.stages - 1))
        for call in range(calls):
            tile, before = (number, call - 1) if call else (number - 1, calls - 1)
            total = self.unit.multiply(tile, before, total, out)
            out += self._reads(number, call)
        if not is_last:
            out += self.unit.stores(number + 1)
            out.append(Commit())
            out += self._arrived(self.schedule.in_flight)
        return total

    def _arrived(self, pending: int) -> list[Node]:
        return [Wait(pending), Barrier(BLOCK)]

    def _reads(self, number: Number, call: int) -> list[Node]:
        """The operands of a call."""
        return [self.unit.read(number, call, side) for side in range(2)]
