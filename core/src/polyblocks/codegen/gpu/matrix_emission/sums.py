"""Sums of a warp: the elements of each lane, and the registers of the unit that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from polyblocks.affine.gpu.plans.fragments import outers_of, steps_of
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.model import Op
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.mlir import ir


def sum_location(plan: UnitPlan) -> Any:
    """Where the sum of a product is in the source, for findings and errors."""
    inner = plan.sizes.parts.reduction.loops[-1]
    ops = (n for n in inner.body if isinstance(n, Op))
    return next(op.location for op in ops if inner.yields[0] in op.results)


class Sums:
    """Writes their conversions at the current insertion point.

    Args:
        scope: of the kernel.
    """

    def __init__(self, scope: UnitScope) -> None:
        self.code, self.plan, self.fragment = scope.code, scope.plan, scope.sums

    def _order(self) -> Iterator[list[tuple[int, int]]]:
        """For each register of the warp's sums the lane's elements that are in it."""
        plan, sums = self.plan, self.fragment
        rows, columns = outers_of(sums), steps_of(sums)
        per = sums.register_width
        for i in range(plan.of_warp[0]):
            for j in range(plan.of_warp[1]):
                for first in range(0, sums.elements, per):
                    places = [sums.at(first + k) for k in range(per)]
                    yield [
                        (i * len(rows) + rows.index(row), j * len(columns) + columns.index(column))
                        for row, column in places
                    ]

    def packed(self, values: list[Any]) -> list[Any]:
        """The sums of all elements, in the order of these, as registers."""
        code, width = self.code, self.plan.sizes.of_thread[1]
        register = ir.Type.parse(self.fragment.register)
        found = []
        for elements in self._order():
            given = [values[i * width + j] for i, j in elements]
            if isinstance(register, ir.VectorType):
                found.append(code.value("vector.from_elements", register, *given))
            else:
                found += given
        return found

    def unpacked(self, registers: list[Any]) -> list[Any]:
        """The sums in registers, in the order of the elements."""
        code, width = self.code, self.plan.sizes.of_thread[1]
        found: list[Any] = [None] * prod(self.plan.sizes.of_thread)
        for elements, register in zip(self._order(), registers, strict=True):
            is_vector = isinstance(register.type, ir.VectorType)
            values = code.elements(register) if is_vector else [register]
            for (i, j), value in zip(elements, values, strict=True):
                found[i * width + j] = value
        return found
