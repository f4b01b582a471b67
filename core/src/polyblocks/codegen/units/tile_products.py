"""Products of tiles by matrix units, as lowerings see them: extents, and where operands are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.affine_maps import expr_of
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir, with_dims

#: Assumed values of a variable with unknown ones.
_ANY = 1 << 31


@dataclass(frozen=True)
class Matrix:
    """A tile in memory.

    Attributes:
        memref: the buffer.
        maps: the affine map of each index; the last two dimensions are row and column of the tile.
        operands: of the other dimensions.
        pitch: elements from a row to the next one; None if rows are not evenly apart.
        along: elements from a column to the next one; None as above.
    """

    memref: Any
    maps: tuple[Any, ...]
    operands: tuple[Any, ...]
    pitch: int | None
    along: int | None

    @classmethod
    def of(cls, memref: Any, map_: Any, operands: tuple[Any, ...]) -> Matrix:
        """The tile that an operand of a ``polyblocks.multiply`` is."""
        strides, _ = ir.MemRefType(memref.type).get_strides_and_offset()
        row, column = Var(_ANY), Var(_ANY)
        around = [Var(_ANY) for _ in operands]
        given = [Expr.of(v) for v in around]
        index = [expr_of(e, given, [Expr.of(row), Expr.of(column)]) for e in map_.results]
        place = sum((e * s for e, s in zip(index, strides, strict=True)), Expr(0))
        count = len(operands)
        exprs = [with_dims(e, count) for e in map_.results]
        maps = tuple(ir.AffineMap.get(count + 2, 0, [e]) for e in exprs)
        return cls(memref, maps, operands, place.coefficient(row), place.coefficient(column))

    @property
    def element(self) -> Any:
        """The MLIR type of an element: a word, or a sum."""
        return ir.MemRefType(self.memref.type).element_type

    def indices(self, row: Any, column: Any) -> Iterator[Any]:
        """The indices of the buffer at a row and a column, written at the insertion point.

        Args:
            row, column: numbers, or values of type ``index``.
        """
        at = [index_constant(v) if isinstance(v, int) else v for v in (row, column)]
        operands = [*self.operands, *at]
        for map_ in self.maps:
            yield ir.Operation.create(
                "affine.apply",
                results=[ir.IndexType.get()],
                operands=operands,
                attributes={"map": ir.AffineMapAttr.get(map_)},
            ).result

    def place(self, row: Any, column: Any) -> Any:
        """Elements from the start of memory to a row and a column, see :meth:`indices`.

        Returns:
            A value of type ``index``, written at the insertion point.
        """
        strides, offset = ir.MemRefType(self.memref.type).get_strides_and_offset()
        at = self.indices(row, column)
        place = self._offset(offset)
        for stride, index in zip(strides, at, strict=True):
            place = _arith("addi", place, _arith("muli", index, index_constant(stride)))
        return place

    def address(self, row: Any, column: Any, element_bytes: int) -> Any:
        """The address of a row and a column, a value of type ``index``; see :meth:`place`."""
        place = self.place(row, column)
        start = ir.Operation.create(
            "memref.extract_aligned_pointer_as_index",
            results=[ir.IndexType.get()],
            operands=[self.memref],
        ).result
        return _arith("addi", start, _arith("muli", place, index_constant(element_bytes)))

    def _offset(self, offset: int) -> Any:
        if offset != ir.ShapedType.get_dynamic_stride_or_offset():
            return index_constant(offset)
        rank = ir.MemRefType(self.memref.type).rank
        base = ir.MemRefType.get([], self.element)
        return ir.Operation.create(
            "memref.extract_strided_metadata",
            results=[base, *[ir.IndexType.get()] * (1 + 2 * rank)],
            operands=[self.memref],
        ).results[1]


@dataclass(frozen=True)
class TileProduct:
    """``accumulator[row, column] = sum over steps of a[row, step] x b[step, column]``.

    Attributes:
        op: the ``polyblocks.multiply``.
        unit: name of the unit.
        rows, columns, steps: extents; steps in words.
        accumulator, a, b: the tiles.
    """

    op: Any
    unit: str
    rows: int
    columns: int
    steps: int
    accumulator: Matrix
    a: Matrix
    b: Matrix

    @classmethod
    def of(cls, op: Any) -> TileProduct:
        """Read a ``polyblocks.multiply``.

        Raises:
            UnsupportedError: steps of ``a``, or columns of the others, are not neighbours.
        """
        unit = ir.StringAttr(op.attributes["unit"]).value
        memrefs, indices = list(op.operands)[:3], tuple(op.operands)[3:]
        a, b, accumulator = (
            Matrix.of(memref, ir.AffineMapAttr(op.attributes[name]).value, indices)
            for memref, name in zip(memrefs, ("a", "b", "accumulator"), strict=True)
        )
        rows, columns, steps = ir.DenseI64ArrayAttr(op.attributes["shape"])
        for matrix, extent in ((a, steps), (b, columns), (accumulator, columns)):
            if matrix.pitch is None or (matrix.along != 1 and extent > 1):
                raise UnsupportedError(
                    f"internal error: tiles of the matrix unit '{unit}' must have rows evenly "
                    "apart and columns side by side; please report this program"
                )
        return cls(op, unit, rows, columns, steps, accumulator, a, b)


def index_constant(number: int) -> Any:
    """A constant of type ``index``, written at the insertion point."""
    type_ = ir.IndexType.get()
    value = ir.IntegerAttr.get(type_, number)
    return ir.Operation.create(
        "arith.constant", results=[type_], attributes={"value": value}
    ).result


def _arith(name: str, *operands: Any) -> Any:
    return ir.Operation.create(
        f"arith.{name}", results=[ir.IndexType.get()], operands=operands
    ).result
