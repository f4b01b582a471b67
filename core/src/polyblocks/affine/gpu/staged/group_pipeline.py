"""The steps of a product by a unit that reads shared memory, as nodes.

The unit goes on while threads do: products of a tile are waited for behind those of the next one.
So the place of a tile in shared memory is filled again a tile later than it could be if the unit
were waited for: when all groups of warps have passed the barrier of the tile after the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from polyblocks.affine.buffers.copies import BLOCK, PRODUCTS, Barrier, Commit, Wait
from polyblocks.affine.expr import Expr
from polyblocks.affine.gpu.plans.group_units import IN_FLIGHT, GroupUnitPlan
from polyblocks.affine.gpu.staged.tile_loop import over_tiles
from polyblocks.affine.gpu.staged.unit_nodes import Number, UnitNodes
from polyblocks.affine.model import Node, Value


@dataclass
class GroupPipeline:
    """Builds the nodes that compute an element's sum.

    Args:
        plan: copies both operands asynchronously.
        element: the MLIR type of an operand's element as the unit takes it.
    """

    plan: GroupUnitPlan
    element: Any
    unit: UnitNodes = field(init=False)

    def __post_init__(self) -> None:
        self.unit = UnitNodes(self.plan, self.element, ahead=False)
        steps, depth = self.plan.sizes.counts[2], self.plan.sizes.depth
        self.last, rest = divmod(steps - 1, depth)
        self._whole = rest == depth - 1

    def nodes(self) -> list[Node]:
        """All steps, behind the nest's code before the reduction."""
        out = self.unit.buffers()
        reduction = self.plan.sizes.parts.reduction
        (value,), (total,) = reduction.loops[0].inits, reduction.loops[0].results
        for number in range(self.plan.ahead):
            if number <= self.last:
                out += self.unit.starts(Expr(number))
            out.append(Commit())
        # Tiles that start the copy of one whose steps all exist, of one that has fewer, of none.
        quiet = max(self.last - self.plan.ahead + 1, 0)
        whole = quiet if self._whole else max(quiet - 1, 0)
        value = self._tiles(range(whole), value, out)
        value = self._tiles(range(whole, quiet), value, out)
        value = self._tiles(range(quiet, self.last), value, out, quiet=True)
        self._tile(Expr(self.last), value, out, quiet=True, result=total)
        return out

    def _tiles(self, tiles: range, total: Value, out: list[Node], quiet: bool = False) -> Value:
        return over_tiles(tiles, total, out, partial(self._tile, quiet=quiet))

    def _tile(
        self,
        number: Number,
        total: Value,
        out: list[Node],
        quiet: bool,
        result: Value | None = None,
    ) -> Value:
        """The products of a tile, and the start of copies unless it is a quiet one.

        Args:
            number: of the tile.
            total: the sum before.
            out: gets the nodes.
            quiet: whether it starts no copy.
            result: the sum behind the last tile.
        """
        out += self._arrived(self.plan.ahead - 1)
        total = self.unit.products(number, total, out, result)
        if not quiet:
            out += self.unit.starts(number + self.plan.ahead)
        out.append(Commit())
        out.append(Wait(0 if result is not None else IN_FLIGHT, of=PRODUCTS))
        return total

    def _arrived(self, pending: int) -> list[Node]:
        return [Wait(pending), Barrier(BLOCK)]
