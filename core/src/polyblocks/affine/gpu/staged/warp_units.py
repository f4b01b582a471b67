"""Which of its warp's units an element belongs to, and nodes that are for some of them.

The warp's units multiply one after the other, so that some have their operands, or their products,
before others. A node for a range of them has bounds that leave no iteration to other elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.staged.steps import number_of, values_at


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

    @cached_property
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

    def between(self, lower: Iterable[Expr], upper: Iterable[Expr]) -> tuple[int, ...]:
        """The units whose elements have iterations of a loop with these bounds, counted from 0.

        Bounds that depend on more than rows and columns leave iterations to all of them.
        """
        ends, starts = (self._of_elements(bounds) for bounds in (upper, lower))
        return tuple(
            number
            for number, at in self._elements.items()
            if min((e.evaluate(at) for e in ends), default=1)
            > max((0, *(e.evaluate(at) for e in starts)))
        )

    def _of_elements(self, bounds: Iterable[Expr]) -> list[Expr]:
        outers = {*self._outers(0), *self._outers(1)}
        return [e for e in bounds if outers.issuperset(e.variables())]

    @cached_property
    def _elements(self) -> dict[int, dict[Var, int]]:
        """The variables of the first element of each unit that has any."""
        found: dict[int, dict[Var, int]] = {}
        for number in self.with_elements():
            at = found[number] = {}
            for side, place in self._places(number).items():
                variables = self._outers(side)
                for var, value in values_at(Expr(place), variables).items():
                    at[var] = value.const
        return found
