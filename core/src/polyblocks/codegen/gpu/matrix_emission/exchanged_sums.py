"""The exchange of a matrix unit's sums as operations, and what uses them.

Lanes store their sums of a row of units to shared memory, and each lane takes neighbouring columns
of one row from there. Other operands are loaded, and results stored, with one access for these.
"""

from __future__ import annotations

from typing import Any

from polyblocks.affine.access import address
from polyblocks.affine.buffers.copies import Barrier
from polyblocks.affine.expr import Var
from polyblocks.affine.gpu.plans.fragments import outers_of, steps_of
from polyblocks.affine.gpu.plans.kernel import Exchange
from polyblocks.affine.gpu.plans.units import COLUMNS_AT_ONCE
from polyblocks.affine.gpu.staged.exchange import LINE, QUAD
from polyblocks.affine.gpu.staged.warp_units import WarpUnits
from polyblocks.affine.model import AffineAccess, Load, Store
from polyblocks.codegen.gpu.accesses.swizzles import exchanged
from polyblocks.codegen.gpu.emission.wide_body import WideBody
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.mlir import ir


class ExchangedSums:
    """Writes the end of a matrix kernel at the current insertion point.

    Args:
        scope: of the kernel, behind its reduction.
        exchange: the nodes. The buffer gets the memory of the operand that has the most: nothing
            of that is read behind the first barrier.
        thread: the thread's number.
    """

    def __init__(self, scope: UnitScope, exchange: Exchange, thread: Any) -> None:
        self.scope, self.code, self.plan = scope, scope.code, scope.plan
        self.exchange, self.buffer = exchange, exchange.buffer
        self.tile, self.nodes = scope.tile, scope.tile.nodes
        self.memory = self.nodes.row(scope.tiles[self.plan.largest_operand])
        self.element = self.memory.type.element_type
        _, rows, self.pitch = self.buffer.shape
        warp = self.code.quotient(thread, self.plan.warp)
        self.begin = self.code.times(warp, rows * self.pitch)

    def emit(self, sums: list[Any]) -> None:
        """Exchange the sums between lanes, and emit the nodes that use them.

        Args:
            sums: of the lane, rows by columns.
        """
        for unit in WarpUnits(self.plan, 0).with_elements():
            for node in self.exchange.nodes:
                if isinstance(node, Barrier):
                    self.scope.meet()
                elif isinstance(node, Store) and node.buffer is self.buffer:
                    self._put(unit, sums)
                elif isinstance(node, Load) and node.buffer is self.buffer:
                    # The nodes behind it are those that use the sums.
                    self._take(unit)

    def _take(self, unit: int) -> None:
        """All neighbouring columns of a row of units."""
        code, plan = self.code, self.plan
        _, rows, columns = self.buffer.shape
        pieces = rows * columns // COLUMNS_AT_ONCE
        for round_ in range(-(-pieces // plan.warp)):
            number, mine = code.round_of(self.scope.lane, round_, pieces, plan.warp)

            def piece(number: Any = number) -> list[Any]:
                self._piece(number, unit)
                return []

            code.when(mine, piece)

    def _put(self, unit: int, sums: list[Any]) -> None:
        """The lane's sums of a row of units."""
        code, plan = self.code, self.plan
        fragment = self.scope.sums
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
        """Where a column of a row is in shared memory, in numbers of 32 bits."""
        code, layout = self.code, self.buffer.layout
        column = exchanged(code, layout, 2, row, column)
        row = exchanged(code, layout, 1, row, row)
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
        beside = self.pitch // COLUMNS_AT_ONCE
        # Eight rows at a time, for the banks; the pieces of each of them fill sectors.
        row = code.remainder(number, LINE)
        rest = code.quotient(number, LINE)
        column = code.times(code.remainder(rest, beside), COLUMNS_AT_ONCE)
        row = code.add(row, code.times(code.quotient(rest, beside), LINE))
        sums = self._taken(row, column)
        row = code.add(code.add(scope.corner[0], row), code.integer(unit * self.buffer.shape[1]))
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
        type_ = self.buffer.element
        found = []
        for k in range(0, COLUMNS_AT_ONCE, QUAD):
            at = self._place_in(row, code.add(column, code.integer(k)) if k else column)
            narrow = code.value(
                "vector.load",
                ir.VectorType.get([QUAD * times], self.element),
                self.memory,
                code.times(at, times),
            )
            four = code.value("vector.bitcast", ir.VectorType.get([QUAD], type_), narrow)
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
