"""Instructions on tiles: configuration, loads and stores."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.reader import expr_of
from polyblocks.mlir import ir
from polyblocks_cpu.instructions.registers import invoke

#: Assumed iterations of a loop with an unknown trip count.
_ANY = 1 << 31
#: Bytes of a word, and of the memory that describes tiles.
WORD_BYTES, CONFIGURATION_BYTES = 4, 64


@dataclass(frozen=True)
class TileConfiguration:
    """The sizes of a core's tiles.

    Attributes:
        sizes: rows and columns of each tile, columns in words.
    """

    sizes: tuple[tuple[int, int], ...]

    def packed(self) -> bytes:
        """As ``ldtilecfg`` reads them: palette 1, bytes of a row from 16 on, rows from 48 on."""
        data = bytearray(CONFIGURATION_BYTES)
        data[0] = 1
        for tile, (rows, columns) in enumerate(self.sizes):
            struct.pack_into("<H", data, 16 + 2 * tile, columns * WORD_BYTES)
            data[48 + tile] = rows
        return bytes(data)


@dataclass(frozen=True)
class Matrix:
    """Where the words of an operand are, or the sums.

    Attributes:
        memref: the buffer.
        map: the affine map of its indices.
        operands: of the map.
        variables: those of the operands that count rows and columns of the matrix.
        apart: words from a row to the next one; None if rows are not evenly apart.
        along: words from a column to the next one; None as above.
    """

    memref: Any
    map: Any
    operands: tuple[Any, ...]
    variables: tuple[Any, Any]
    apart: int | None
    along: int | None

    @classmethod
    def of(cls, access: Any, down: Any, across: Any) -> Matrix:
        """The matrix that an ``affine.load`` or ``affine.store`` of two loops accesses."""
        operands = list(access.operands)
        at = 0 if access.name == "affine.load" else 1
        memref, indices = operands[at], operands[at + 1 :]
        map_ = ir.AffineMapAttr(access.attributes["map"]).value
        strides, _ = ir.MemRefType(memref.type).get_strides_and_offset()
        counted = {value: Var(_ANY) for value in indices} | {down: Var(_ANY), across: Var(_ANY)}
        places = [Expr.of(counted[value]) for value in indices]
        index = [expr_of(e, places[: map_.n_dims], places[map_.n_dims :]) for e in map_.results]
        place = sum((e * s for e, s in zip(index, strides, strict=True)), Expr(0))
        apart, along = (place.coefficient(counted[variable]) for variable in (down, across))
        return cls(memref, map_, tuple(indices), (down, across), apart, along)


class Code:
    """Writes instructions at the insertion point.

    Args:
        module: gets the memory that describes tiles.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._names: dict[TileConfiguration, str] = {}
        self._index = ir.IndexType.get()
        self._pointer = ir.Type.parse("!llvm.ptr")

    def configure(self, configuration: TileConfiguration) -> None:
        """Tell the core the sizes of its tiles, which are zero then."""
        type_ = ir.MemRefType.get([CONFIGURATION_BYTES], _integer(8))
        name = self._names.get(configuration) or self._global(configuration, type_)
        memref = ir.Operation.create(
            "memref.get_global",
            results=[type_],
            attributes={"name": ir.FlatSymbolRefAttr.get(name)},
        ).result
        self._call("ldtilecfg", self._pointer_to(self._start(memref)))

    def release(self) -> None:
        """Give the tiles back."""
        self._call("tilerelease")

    def zero(self, tile: int) -> None:
        """Clear a tile."""
        self._call("tilezero", self._byte(tile))

    def multiply(self, name: str, sums: int, first: int, second: int) -> None:
        """Add the products of two tiles to a third one."""
        self._call(name, *map(self._byte, (sums, first, second)))

    def load(self, tile: int, matrix: Matrix, row: Any, column: Any) -> None:
        """Load a tile that begins at a row and a column, numbers or values."""
        self._call("tileloadd64", self._byte(tile), *self._place(matrix, row, column))

    def store(self, tile: int, matrix: Matrix, row: Any, column: Any) -> None:
        """Store a tile as :meth:`load` loads it."""
        self._call("tilestored64", self._byte(tile), *self._place(matrix, row, column))

    def number(self, number: int) -> Any:
        """A number of type ``index``."""
        return self._constant(number, self._index)

    def scaled(self, value: Any, factor: int) -> Any:
        """A value of type ``index``, times a number."""
        return self._arith("muli", value, self.number(factor))

    @contextmanager
    def loop(self, count: int) -> Iterator[Any]:
        """A loop around what is written; yields its variable. One iteration has no loop."""
        if count == 1:
            yield self.number(0)
            return
        bounds = [self.number(n) for n in (0, count, 1)]
        loop = ir.Operation.create("scf.for", operands=bounds, regions=1)
        block = loop.regions[0].blocks.append(self._index)
        with ir.InsertionPoint(block):
            yield block.arguments[0]
            ir.Operation.create("scf.yield")

    def _place(self, matrix: Matrix, row: Any, column: Any) -> tuple[Any, Any]:
        """The pointer to a word of a matrix, and bytes from its row to the next one."""
        assert matrix.apart is not None
        at = [self.number(v) if isinstance(v, int) else v for v in (row, column)]
        down, across = matrix.variables
        operands = [at[0] if v == down else at[1] if v == across else v for v in matrix.operands]
        strides, offset = ir.MemRefType(matrix.memref.type).get_strides_and_offset()
        place = self._offset(matrix.memref, offset)
        for stride, expr in zip(strides, matrix.map.results, strict=True):
            map_ = ir.AffineMap.get(matrix.map.n_dims, matrix.map.n_symbols, [expr])
            index = ir.Operation.create(
                "affine.apply",
                results=[self._index],
                operands=operands,
                attributes={"map": ir.AffineMapAttr.get(map_)},
            ).result
            place = self._arith("addi", place, self.scaled(index, stride))
        start = self._start(matrix.memref)
        address = self._arith("addi", start, self.scaled(place, WORD_BYTES))
        return self._pointer_to(address), self._constant(matrix.apart * WORD_BYTES, _integer(64))

    def _offset(self, memref: Any, offset: int) -> Any:
        if offset != ir.ShapedType.get_dynamic_stride_or_offset():
            return self.number(offset)
        rank = ir.MemRefType(memref.type).rank
        base = ir.MemRefType.get([], ir.MemRefType(memref.type).element_type)
        return ir.Operation.create(
            "memref.extract_strided_metadata",
            results=[base, *[self._index] * (1 + 2 * rank)],
            operands=[memref],
        ).results[1]

    def _start(self, memref: Any) -> Any:
        return ir.Operation.create(
            "memref.extract_aligned_pointer_as_index", results=[self._index], operands=[memref]
        ).result

    def _pointer_to(self, address: Any) -> Any:
        number = ir.Operation.create(
            "arith.index_cast", results=[_integer(64)], operands=[address]
        ).result
        return ir.Operation.create(
            "llvm.inttoptr", results=[self._pointer], operands=[number]
        ).result

    def _global(self, configuration: TileConfiguration, type_: Any) -> str:
        name = f"tiles_{len(self._names)}"
        self._names[configuration] = name
        i8 = _integer(8)
        numbers = [
            ir.IntegerAttr.get(i8, b - 256 if b > 127 else b) for b in configuration.packed()
        ]
        value = ir.DenseElementsAttr.get(
            numbers, ir.RankedTensorType.get([CONFIGURATION_BYTES], i8)
        )
        with ir.InsertionPoint.at_block_begin(self._module.body):
            ir.Operation.create(
                "memref.global",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "type": ir.TypeAttr.get(type_),
                    "initial_value": value,
                    "constant": ir.UnitAttr.get(),
                    "alignment": ir.IntegerAttr.get(_integer(64), CONFIGURATION_BYTES),
                },
            )
        return name

    def _byte(self, number: int) -> Any:
        i8 = _integer(8)
        return ir.Operation.create(
            "llvm.mlir.constant",
            results=[i8],
            attributes={"value": ir.IntegerAttr.get(i8, number)},
        ).result

    def _constant(self, number: int, type_: Any) -> Any:
        value = ir.IntegerAttr.get(type_, number)
        return ir.Operation.create(
            "arith.constant", results=[type_], attributes={"value": value}
        ).result

    def _arith(self, name: str, *operands: Any) -> Any:
        return ir.Operation.create(f"arith.{name}", results=[self._index], operands=operands).result

    def _call(self, name: str, *operands: Any) -> None:
        invoke(f"llvm.x86.{name}", operands)


def _integer(bits: int) -> Any:
    return ir.IntegerType.get_signless(bits)
