"""The epilogue of a matrix unit's sums, several neighbouring columns at a time.

The unit leaves a column or two of a row in each lane. Lanes exchange them through the shared memory
that the operands no longer need, a row of units at a time, so that each lane has neighbouring
columns of one row. The epilogue's operands are loaded, and results stored, with one access each.
"""

from __future__ import annotations

from typing import Any

from polyblocks.affine.access import address
from polyblocks.affine.expr import Var
from polyblocks.affine.gpu.plans.fragments import outers_of, steps_of
from polyblocks.affine.gpu.plans.units import COLUMNS_AT_ONCE
from polyblocks.affine.model import AffineAccess, Load, Store
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.emission.wide_body import WideBody
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.mlir import ir

#: Numbers of 32 bits in one access of shared memory, and accesses in a line of it.
_QUAD, _LINE = 4, 8


class WideEpilogue:
    """Writes the end of a matrix kernel at the current insertion point.

    Args:
        scope: of the kernel, behind its reduction.
        thread: the thread's number.
    """

    def __init__(self, scope: UnitScope, thread: Any) -> None:
        self.scope, self.code, plan = scope, scope.code, scope.plan
        self.plan = plan
        self.tile, self.nodes = scope.tile, scope.tile.nodes
        self.memory = self.nodes.row(scope.tiles[plan.largest_operand])
        self.element = self.memory.type.element_type
        warp = self.code.quotient(thread, plan.warp)
        self.begin = self.code.times(warp, plan.exchanged_bytes // 4)
        self.pitch = plan.of_warp[1] * plan.unit.shape[1]
        self.sum_type: Any = None

    def emit(self, sums: list[Any]) -> None:
        """Exchange the sums between lanes, and emit the epilogue.

        Args:
            sums: of the lane, rows by columns.
        """
        code, plan = self.code, self.plan
        self.sum_type = sums[0].type
        m, n, _ = plan.unit.shape
        pieces = m * plan.of_warp[1] * n // COLUMNS_AT_ONCE
        for unit in range(plan.of_warp[0]):
            barrier(code)
            self._put(unit, sums)
            barrier(code)
            for round_ in range(-(-pieces // plan.warp)):
                number, mine = code.round_of(self.scope.lane, round_, pieces, plan.warp)

                def piece(number: Any = number, unit: int = unit) -> list[Any]:
                    self._piece(number, unit)
                    return []

                code.when(mine, piece)

    def _put(self, unit: int, sums: list[Any]) -> None:
        """The lane's sums of a row of units."""
        code, plan = self.code, self.plan
        fragment = self.scope.fragments[2]
        rows, columns = outers_of(fragment), steps_of(fragment)
        width = plan.sizes.of_thread[1]
        first = [self.scope.of_lane([adds[side] for adds in fragment.lanes]) for side in range(2)]
        run = len(columns) if columns == tuple(range(len(columns))) else 1
        for i, row in enumerate(rows):
            line = code.add(first[0], code.integer(row))
            for unit_column in range(plan.of_warp[1]):
                for j in range(0, len(columns), run):
                    at = unit_column * plan.unit.shape[1] + columns[j]
                    place = self._place_in(line, code.add(first[1], code.integer(at)))
                    begin = (unit * len(rows) + i) * width + unit_column * len(columns) + j
                    self._store(place, sums[begin : begin + run])

    def _place_in(self, row: Any, column: Any) -> Any:
        """Where a column of a row is in shared memory, in numbers of 32 bits.

        Four columns are together, and the fours of a line are swizzled: warps write pairs of
        columns of four rows one after the other, or sixteen columns of two rows that are one or
        eight apart, and read fours of eight.
        """
        code = self.code
        fours = min(self.pitch // _QUAD, _LINE)
        line = code.quotient(row, _LINE // fours)
        # The line's number with its bits in the other order.
        by, bit = code.integer(0), 1
        while bit < fours:
            digit = code.remainder(code.quotient(line, bit), 2)
            by = code.add(by, code.times(digit, fours // (2 * bit)))
            bit *= 2
        eight = code.quotient(row, _LINE)
        if fours == _LINE:
            half = code.times(code.remainder(eight, 2), fours // 2)
            by = code.value("arith.xori", code.index, by, half)
        else:
            # The rows of a line change places.
            other = code.remainder(eight, _LINE // fours)
            row = code.value("arith.xori", code.index, row, other)
        column = code.value("arith.xori", code.index, column, code.times(by, _QUAD))
        return code.add(self.begin, code.add(code.times(row, self.pitch), column))

    def _store(self, place: Any, values: list[Any]) -> None:
        """Put numbers of 32 bits into memory of narrower ones."""
        code, times = self.code, 4 // self.plan.element_bytes
        vector = code.value(
            "vector.from_elements", ir.VectorType.get([len(values)], values[0].type), *values
        )
        type_ = ir.VectorType.get([len(values) * times], self.element)
        narrow = code.value("vector.bitcast", type_, vector)
        code.op("vector.store", [], [narrow, self.memory, code.times(place, times)])

    def _piece(self, number: Any, unit: int) -> None:
        """Neighbouring columns of one row."""
        code, plan, scope = self.code, self.plan, self.scope
        m, n, _ = plan.unit.shape
        beside = plan.of_warp[1] * n // COLUMNS_AT_ONCE
        # Eight rows at a time, for the banks; the pieces of each of them fill sectors.
        row = code.remainder(number, _LINE)
        rest = code.quotient(number, _LINE)
        column = code.times(code.remainder(rest, beside), COLUMNS_AT_ONCE)
        row = code.add(row, code.times(code.quotient(rest, beside), _LINE))
        sums = self._taken(row, column)
        row = code.add(code.add(scope.corner[0], row), code.integer(unit * m))
        column = code.add(scope.corner[1], column)
        at = [code.add(self.tile.first[0], row), code.add(self.tile.first[1], column)]
        conditions = [self.tile.inside(number, side) for side, number in enumerate(at)]

        def body() -> list[Any]:
            parts = plan.sizes.parts
            self.nodes.decode(at[0], parts.rows)
            self.nodes.decode(at[1], parts.columns)
            columns = _Columns(scope, parts.columns[-1], COLUMNS_AT_ONCE)
            columns.nodes(parts.before)
            columns.values[parts.reduction.loops[0].results[0]] = sums
            columns.nodes(parts.after)
            return []

        code.when(code.both([c for c in conditions if c is not None]), body)

    def _taken(self, row: Any, column: Any) -> list[Any]:
        """Numbers of 32 bits from memory of narrower ones."""
        code, times = self.code, 4 // self.plan.element_bytes
        type_ = self.sum_type
        found = []
        for k in range(0, COLUMNS_AT_ONCE, _QUAD):
            at = self._place_in(row, code.add(column, code.integer(k)) if k else column)
            narrow = code.value(
                "vector.load",
                ir.VectorType.get([_QUAD * times], self.element),
                self.memory,
                code.times(at, times),
            )
            four = code.value("vector.bitcast", ir.VectorType.get([_QUAD], type_), narrow)
            found += code.elements(four)
        return found


class _Columns(WideBody):
    """Writes nodes for neighbouring columns; every buffer is one row of elements."""

    def __init__(self, scope: UnitScope, var: Var, width: int) -> None:
        super().__init__(scope.tile.nodes, var, width)
        self.scope = scope

    def _place(self, node: Load | Store) -> list[Any] | None:
        value = node.result if isinstance(node, Load) else node.value
        one_by_one = self.scope.plan.column_stride(node) != 1 or str(value.type) == "i1"
        return None if one_by_one else self._element(node)

    def _element(self, node: AffineAccess) -> list[Any]:
        place = self.emitter.expr(address(node.buffer, node.index))
        return [self.scope.flat(node.buffer), place]

    def _load_one(self, node: Load) -> Any:
        place = self._element(node)
        return self.code.op("memref.load", [node.result.type], place, None, node.location).results[
            0
        ]

    def _store_one(self, node: Store, value: Any) -> None:
        self.code.op("memref.store", [], [value, *self._element(node)], None, node.location)
