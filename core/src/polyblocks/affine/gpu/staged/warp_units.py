"""Which of its warp's units an element belongs to, and nodes that are for some of them.

The warp's units multiply one after the other, so that some have their operands, or their products,
before others. A node for a range of them has bounds that leave no iteration to other elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.staged.steps import number_of, values_at
from polyblocks.affine.model import For


@dataclass(frozen=True)
class WarpUnits:
    """The units of a warp: along rows or columns, or all of them row by row.

    Attributes:
        plan: whose they are.
        side: 0 for the rows of units, 1 for the columns; None for all units, row by row.
    """

    plan: UnitPlan
    side: int | None = None

    @property
    def count(self) -> int:
        """Units."""
        rows, columns = self.plan.of_warp
        return rows * columns if self.side is None else self.plan.of_warp[self.side]

    @property
    def number(self) -> Expr:
        """That of an element's unit."""
        if self.side is not None:
            return self._along(self.side)
        return self._along(0) * self.plan.of_warp[1] + self._along(1)

    def _along(self, side: int) -> Expr:
        size = self.plan.unit.shape[side]
        outer = number_of(self._outers(side)) % (self.plan.of_warp[side] * size)
        return outer // size

    def _outers(self, side: int) -> list[Var]:
        parts = self.plan.sizes.parts
        return (parts.rows, parts.columns)[side]

    def with_elements(self) -> Iterator[int]:
        """The units that any element belongs to: where there are few rows, not all do."""
        for number in range(self.count):
            places = self._places(number)
            if all(self.plan.sizes.counts[side] > place for side, place in places.items()):
                yield number

    def _places(self, number: int) -> dict[int, int]:
        """The first row and column of a unit, by side."""
        columns, (m, n, _) = self.plan.of_warp[1], self.plan.unit.shape
        if self.side is not None:
            return {self.side: number * (m, n)[self.side]}
        return {0: number // columns * m, 1: number % columns * n}

    def bounds(
        self, units: range, begin: Expr, count: int
    ) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """Bounds of a loop over ``count`` steps from ``begin`` on, for elements of ``units``."""
        own = self.number
        lower, upper = [begin], [begin + count]
        if (before := Expr(units.start) - own).range()[1] > 0:
            lower.append(begin + before * count)
        if (behind := Expr(units.stop) - own).range()[0] < 1:
            upper.append(begin + behind * count)
        return tuple(lower), tuple(upper)

    def of(self, loop: For) -> tuple[int, ...]:
        """The units whose elements have iterations of a loop over steps; of those with elements."""
        if not loop.lower and not loop.upper:
            return tuple(self.with_elements())
        return tuple(n for n in self.with_elements() if self._runs(loop, n))

    def _runs(self, loop: For, number: int) -> bool:
        at: dict[Var, Expr] = {}
        for side, place in self._places(number).items():
            at |= values_at(Expr(place), self._outers(side))
        rooms = [
            end.substitute(at) - begin.substitute(at)
            for begin in (Expr(0), *loop.lower)
            for end in (Expr(loop.var.extent), *loop.upper)
        ]
        # Those of a step and the extent are not constant.
        return all(room.const > 0 for room in rooms if room.is_constant)
