"""Instructions on tiles: configuration, loads and stores."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from polyblocks.codegen.units.tile_products import Matrix, index_constant
from polyblocks.mlir import ir
from polyblocks_cpu.instructions.registers import invoke

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

    def scaled(self, value: Any, factor: int) -> Any:
        """A value of type ``index``, times a number."""
        return ir.Operation.create(
            "arith.muli", results=[self._index], operands=[value, index_constant(factor)]
        ).result

    @contextmanager
    def loop(self, count: int) -> Iterator[Any]:
        """A loop around what is written; yields its variable. One iteration has no loop."""
        if count == 1:
            yield index_constant(0)
            return
        bounds = [index_constant(n) for n in (0, count, 1)]
        loop = ir.Operation.create("scf.for", operands=bounds, regions=1)
        block = loop.regions[0].blocks.append(self._index)
        with ir.InsertionPoint(block):
            yield block.arguments[0]
            ir.Operation.create("scf.yield")

    def _place(self, matrix: Matrix, row: Any, column: Any) -> tuple[Any, Any]:
        """The pointer to a word of a matrix, and bytes from its row to the next one."""
        assert matrix.pitch is not None
        address = matrix.address(row, column, WORD_BYTES)
        return self._pointer_to(address), self._constant(matrix.pitch * WORD_BYTES, _integer(64))

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

    def _call(self, name: str, *operands: Any) -> None:
        invoke(f"llvm.x86.{name}", operands)


def _integer(bits: int) -> Any:
    return ir.IntegerType.get_signless(bits)
