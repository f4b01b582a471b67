"""The steps of a product by a unit that reads shared memory, where warps have roles, as nodes.

A thread of its own starts the copies of tiles, as far ahead as there are places for them; the
others multiply what is there, and free its place. Nodes are in the order in which one thread would
do all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from polyblocks.affine.buffers.copies import PRODUCTS, USES, Commit, Wait
from polyblocks.affine.gpu.plans.group_units import IN_FLIGHT, GroupUnitPlan
from polyblocks.affine.gpu.staged.tile_loop import over_tiles
from polyblocks.affine.gpu.staged.unit_nodes import Number, UnitNodes
from polyblocks.affine.model import Node, Value


@dataclass
class RolePipeline:
    """Builds the nodes that compute an element's sum.

    Args:
        plan: with bulk copies.
        element: the MLIR type of an operand's element as the unit takes it.
    """

    plan: GroupUnitPlan
    element: Any
    unit: UnitNodes = field(init=False)

    def __post_init__(self) -> None:
        self.unit = UnitNodes(self.plan, self.element, ahead=False)
        self.last = (self.plan.sizes.counts[2] - 1) // self.plan.sizes.depth

    def nodes(self) -> list[Node]:
        """All steps, behind the nest's code before the reduction."""
        out = self.unit.buffers()
        reduction = self.plan.sizes.parts.reduction
        (value,), (total,) = reduction.loops[0].inits, reduction.loops[0].results
        # The first tile frees no place, and behind the last one nothing is under way.
        value = over_tiles(range(min(1, self.last)), value, out, partial(self._tile, frees=False))
        value = over_tiles(range(1, self.last), value, out, self._tile)
        over_tiles(range(self.last, self.last + 1), value, out, partial(self._tile, result=total))
        return out

    def _tile(
        self,
        number: Number,
        total: Value,
        out: list[Node],
        frees: bool = True,
        result: Value | None = None,
    ) -> Value:
        """The copies of a tile, and its products.

        Args:
            number: of the tile.
            total: the sum before.
            out: gets the nodes.
            frees: whether the place of the tile before is free then.
            result: the sum behind the last tile.
        """
        out.append(Wait(self.plan.stages - 1, of=USES))
        out += [*self.unit.starts(number), Commit(), Wait(0)]
        total = self.unit.products(number, total, out, result)
        if result is None:
            out.append(Wait(IN_FLIGHT, of=PRODUCTS))
            out += [Commit(of=USES)] * frees
            return total
        if self.plan.persistent and self.last:
            out += [Wait(IN_FLIGHT, of=PRODUCTS), Commit(of=USES)]
        out.append(Wait(0, of=PRODUCTS))
        # The block's next tile has other operands.
        out += [Commit(of=USES)] * self.plan.persistent
        return total
