"""Calls of a matrix unit by a warp."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import product
from typing import Any

from polyblocks.codegen.gpu.matrix_emission.operand_reads import Action, OperandReads
from polyblocks.codegen.gpu.matrix_emission.sums import sum_location
from polyblocks.mlir import ir


class UnitCalls:
    """Writes calls at the current insertion point.

    Args:
        reads: of the operands.
    """

    def __init__(self, reads: OperandReads) -> None:
        self.reads, self.code, self.plan = reads, reads.code, reads.plan

    def multiply(
        self, operands: list[Any], sums: list[Any], beside: Sequence[tuple[float, Action]] = ()
    ) -> list[Any]:
        """The products of a call of all units of the warp, added to the sums.

        Args:
            operands, sums: registers.
            beside: what else is done, in order, and after which part of the products.
        """
        rows, columns = self.plan.of_warp
        split = rows * self.reads.of_operand(0)
        first, second = (
            [part[i : i + size] for i in range(0, len(part), size)]
            for part, size in (
                (operands[:split], self.reads.of_operand(0)),
                (operands[split:], self.reads.of_operand(1)),
            )
        )
        rest = deque(beside)
        places = list(product(range(rows), range(columns)))
        if self.plan.loads is not None:
            places.sort(key=lambda place: place[1])
        for number, (i, j) in enumerate(places):
            while rest and rest[0][0] * len(places) <= number:
                rest.popleft()[1]()
            sums = self.multiplied(first[i], second[j], sums, i, j)
        for _, action in rest:
            action()
        return sums

    def multiplied(
        self, first: list[Any], second: list[Any], sums: list[Any], i: int, j: int
    ) -> list[Any]:
        """The sums with the product of one unit of the warp added, that of a row and a column."""
        rows, columns = self.plan.of_warp
        of_sums = len(sums) // (rows * columns)
        at = (i * columns + j) * of_sums
        pair = (second, first) if self.plan.unit.second_first else (first, second)
        added = self._call([*pair[0], *pair[1]], sums[at : at + of_sums])
        return [*sums[:at], *added, *sums[at + of_sums :]]

    def _call(self, operands: list[Any], sums: list[Any]) -> list[Any]:
        code = self.code
        types = [v.type for v in sums]
        result = types[0]
        if len(types) > 1:
            result = ir.Type.parse(f"!llvm.struct<({', '.join(map(str, types))})>")
        given = [*operands, *sums]
        for position, yes in self.plan.unit.immediates:
            given.insert(position, code.constant(ir.IntegerAttr.get(code.i1, int(yes))))
        made = code.intrinsic(self.plan.unit.intrinsic, [result], given, sum_location(self.plan))
        return made if len(types) == 1 else code.fields(made[0], types)
