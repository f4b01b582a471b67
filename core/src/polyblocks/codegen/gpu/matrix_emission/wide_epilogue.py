"""The epilogue of a matrix unit's sums, several neighbouring columns at a time.

The unit leaves a column or two of a row in each lane. Lanes exchange them through the shared memory
that the operands no longer need, a row of units at a time, so that each lane has neighbouring
columns of one row. The epilogue's operands are loaded, and results stored, with one access each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyblocks.affine.access import address, stride_along
from polyblocks.affine.model import AffineAccess, Index, Load, Op, Store
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.emission.wide_body import WideBody
from polyblocks.codegen.gpu.matrix.fragments import outers_of, steps_of
from polyblocks.codegen.gpu.matrix.kernel import MatrixKernel
from polyblocks.mlir import ir

if TYPE_CHECKING:
    from polyblocks.codegen.gpu.matrix_emission.emit_matrix import MatrixEmitter

#: Columns that a lane has at once.
WIDTH = 8
#: Numbers of 32 bits in one access of shared memory, and accesses in a line of it.
_QUAD, _LINE = 4, 8


def is_wide(kernel: MatrixKernel) -> bool:
    """Whether a kernel stores neighbouring columns, whole pieces of them, and has room for it."""
    parts = kernel.parts
    last = parts.columns[-1]
    nodes = [*parts.before, *parts.after]
    if last.extent % WIDTH or not all(isinstance(n, (Op, Index, AffineAccess)) for n in nodes):
        return False
    if any(isinstance(n, Load) and n.where for n in nodes):
        return False
    stores = [n for n in nodes if isinstance(n, Store)]
    if not any(_walk(store, kernel) == 1 and str(store.value.type) != "i1" for store in stores):
        return False
    size, _ = _room(kernel)
    columns = kernel.of_warp[1] * kernel.unit.shape[1]
    # Swizzles are for powers of two.
    fits = columns % WIDTH == 0 and columns & (columns - 1) == 0
    return fits and size >= _bytes_of_warp(kernel) * kernel.threads // kernel.warp


def _walk(node: AffineAccess, kernel: MatrixKernel) -> int | None:
    """Elements from an access to that of the next column."""
    return stride_along(node.buffer, node.index, kernel.parts.columns[-1])


def _room(kernel: MatrixKernel) -> tuple[int, int]:
    """Bytes of the larger operand's tiles, and which one it is."""
    sizes = []
    for number, operand in enumerate(kernel.product.operands):
        size = kernel.element_bytes
        for extent in kernel.shape(operand):
            size *= extent
        sizes.append((size, number))
    return max(sizes)


def _bytes_of_warp(kernel: MatrixKernel) -> int:
    m, n, _ = kernel.unit.shape
    return 4 * m * kernel.of_warp[1] * n


class WideEpilogue:
    """Writes the end of a matrix kernel at the current insertion point.

    Args:
        emitter: of the kernel, behind its reduction.
        thread: the thread's number.
    """

    def __init__(self, emitter: MatrixEmitter, thread: Any) -> None:
        self.emitter, self.code, self.kernel = emitter, emitter.code, emitter.kernel
        kernel = self.kernel
        _, number = _room(kernel)
        self.memory = emitter._row(emitter.tiles[kernel.product.operands[number]])
        self.element = self.memory.type.element_type
        warp = self.code.quotient(thread, kernel.warp)
        self.begin = self.code.times(warp, _bytes_of_warp(kernel) // 4)
        self.pitch = kernel.of_warp[1] * kernel.unit.shape[1]
        self.sum_type: Any = None

    def emit(self, sums: list[Any]) -> None:
        """Exchange the sums between lanes, and emit the epilogue.

        Args:
            sums: of the lane, rows by columns.
        """
        code, kernel = self.code, self.kernel
        self.sum_type = sums[0].type
        m, n, _ = kernel.unit.shape
        pieces = m * kernel.of_warp[1] * n // WIDTH
        for unit in range(kernel.of_warp[0]):
            barrier(code)
            self._put(unit, sums)
            barrier(code)
            for round_ in range(-(-pieces // kernel.warp)):
                number, mine = code.round_of(self.emitter.lane, round_, pieces, kernel.warp)

                def piece(number: Any = number, unit: int = unit) -> list[Any]:
                    self._piece(number, unit)
                    return []

                code.when(mine, piece)

    def _put(self, unit: int, sums: list[Any]) -> None:
        """The lane's sums of a row of units."""
        code, kernel = self.code, self.kernel
        fragment = self.emitter.fragments[2]
        rows, columns = outers_of(fragment), steps_of(fragment)
        width = kernel.of_thread[1]
        first = [self.emitter.of_lane([adds[side] for adds in fragment.lanes]) for side in range(2)]
        run = len(columns) if columns == tuple(range(len(columns))) else 1
        for i, row in enumerate(rows):
            line = code.add(first[0], code.integer(row))
            for unit_column in range(kernel.of_warp[1]):
                for j in range(0, len(columns), run):
                    at = unit_column * kernel.unit.shape[1] + columns[j]
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
        code, times = self.code, 4 // self.kernel.element_bytes
        vector = code.value(
            "vector.from_elements", ir.VectorType.get([len(values)], values[0].type), *values
        )
        type_ = ir.VectorType.get([len(values) * times], self.element)
        narrow = code.value("vector.bitcast", type_, vector)
        code.op("vector.store", [], [narrow, self.memory, code.times(place, times)])

    def _piece(self, number: Any, unit: int) -> None:
        """Neighbouring columns of one row."""
        code, kernel, emitter = self.code, self.kernel, self.emitter
        m, n, _ = kernel.unit.shape
        beside = kernel.of_warp[1] * n // WIDTH
        # Eight rows at a time, for the banks; the pieces of each of them fill sectors.
        row = code.remainder(number, _LINE)
        rest = code.quotient(number, _LINE)
        column = code.times(code.remainder(rest, beside), WIDTH)
        row = code.add(row, code.times(code.quotient(rest, beside), _LINE))
        sums = self._taken(row, column)
        row = code.add(code.add(emitter.corner[0], row), code.integer(unit * m))
        column = code.add(emitter.corner[1], column)
        at = [code.add(emitter.first[0], row), code.add(emitter.first[1], column)]
        conditions = [emitter._inside(number, side) for side, number in enumerate(at)]

        def body() -> list[Any]:
            parts = kernel.parts
            emitter._decode(at[0], parts.rows)
            emitter._decode(at[1], parts.columns)
            columns = _Columns(emitter, parts.columns[-1], WIDTH)
            columns.nodes(parts.before)
            columns.values[parts.reduction.loops[0].results[0]] = sums
            columns.nodes(parts.after)
            return []

        code.when(code.both([c for c in conditions if c is not None]), body)

    def _taken(self, row: Any, column: Any) -> list[Any]:
        """Numbers of 32 bits from memory of narrower ones."""
        code, times = self.code, 4 // self.kernel.element_bytes
        type_ = self.sum_type
        found = []
        for k in range(0, WIDTH, _QUAD):
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

    emitter: MatrixEmitter

    def _place(self, node: Load | Store) -> list[Any] | None:
        value = node.result if isinstance(node, Load) else node.value
        one_by_one = _walk(node, self.emitter.kernel) != 1 or str(value.type) == "i1"
        return None if one_by_one else self._element(node)

    def _element(self, node: AffineAccess) -> list[Any]:
        place = self.emitter.expr(address(node.buffer, node.index))
        return [self.emitter.flat(node.buffer), place]

    def _load_one(self, node: Load) -> Any:
        place = self._element(node)
        return self.code.op("memref.load", [node.result.type], place, None, node.location).results[
            0
        ]

    def _store_one(self, node: Store, value: Any) -> None:
        self.code.op("memref.store", [], [value, *self._element(node)], None, node.location)
