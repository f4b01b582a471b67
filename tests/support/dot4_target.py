"""A vendor's target: a CPU with a unit of its own that multiplies tiles of 4 x 4 words of bytes.

The core and the CPU's plugin know nothing of it: it describes the unit and emits its instructions.
Here these are scalars, so that every machine runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from polyblocks import hookimpl
from polyblocks.codegen.units.lower_units import LowerUnitsPass
from polyblocks.codegen.units.tile_products import TileProduct, index_constant
from polyblocks.mlir import ir
from polyblocks.pipeline import PassContext, run_stage
from polyblocks.target import TileUnit
from polyblocks_cpu import describe, load, lower

POLYBLOCKS_API = 2
NAME = "dot4x4x4"
#: Rows and columns of a tile, and bytes of a word.
SIZE = 4
#: Shapes of the products that were emitted in this process.
EMITTED: list[tuple[int, int, int]] = []


class Dot4:
    """Emits the unit: 16 sums are carried over the steps, each of which takes words of 4 bytes."""

    def begin(self, module: Any, products: Sequence[TileProduct]) -> None:
        """There is nothing to set up."""

    def emit(self, product: TileProduct) -> None:
        """Write a product tile by tile."""
        EMITTED.append((product.rows, product.columns, product.steps))
        for row in range(0, product.rows, SIZE):
            for column in range(0, product.columns, SIZE):
                self._tile(product, row, column)

    def _tile(self, product: TileProduct, row: int, column: int) -> None:
        """The sums of a tile, which may be cut off at the ends of the product."""
        rows = range(row, min(row + SIZE, product.rows))
        columns = range(column, min(column + SIZE, product.columns))
        i32 = ir.IntegerType.get_signless(32)
        sums = [_constant(0, i32) for _ in rows for _ in columns]
        bounds = [index_constant(n) for n in (0, product.steps, 1)]
        loop = ir.Operation.create(
            "scf.for", results=[i32] * len(sums), operands=[*bounds, *sums], regions=1
        )
        block = loop.regions[0].blocks.append(ir.IndexType.get(), *[i32] * len(sums))
        with ir.InsertionPoint(block):
            step, *carried = block.arguments
            words = [_load(product.a, r, step) for r in rows]
            others = [_load(product.b, step, c) for c in columns]
            pairs = [(x, y) for x in words for y in others]
            new = [_dot(s, x, y) for s, (x, y) in zip(carried, pairs, strict=True)]
            ir.Operation.create("scf.yield", operands=new)
        for number, total in enumerate(loop.results):
            at = rows[number // len(columns)], columns[number % len(columns)]
            where = list(product.accumulator.indices(*at))
            ir.Operation.create(
                "memref.store", operands=[total, product.accumulator.memref, *where]
            )


def _load(matrix: Any, row: Any, column: Any) -> Any:
    where = list(matrix.indices(row, column))
    return ir.Operation.create(
        "memref.load", results=[matrix.element], operands=[matrix.memref, *where]
    ).result


def _dot(total: Any, x: Any, y: Any) -> Any:
    """A sum with the products of four bytes with signs added to it."""
    for byte in range(4):
        factors = []
        for word in (x, y):
            high = _arith("shli", word, _constant(24 - 8 * byte, word.type))
            factors.append(_arith("shrsi", high, _constant(24, word.type)))
        total = _arith("addi", total, _arith("muli", *factors))
    return total


def _constant(number: int, type_: Any) -> Any:
    value = ir.IntegerAttr.get(type_, number)
    return ir.Operation.create(
        "arith.constant", results=[type_], attributes={"value": value}
    ).result


def _arith(name: str, left: Any, right: Any) -> Any:
    return ir.Operation.create(f"arith.{name}", results=[left.type], operands=[left, right]).result


#: By name of the unit.
EMITTERS = {NAME: Dot4}


@hookimpl
def describe_target(options: Any) -> Any:
    """This machine with vectors of 128 bits, and the unit as its only one."""
    host = describe.describe(options)
    unit = TileUnit(
        NAME, (SIZE, SIZE, SIZE), "int8", "int32", 100 * host.flops["float32"], registers=8
    )
    return replace(host, name="dot4", vector_bits=128, matrix_units=(unit,))


@hookimpl
def lower_program(module: Any, target: Any, options: Any) -> Any:
    """Its own instructions first; all else is the CPU's."""
    own = LowerUnitsPass(EMITTERS)
    run_stage("S4", [own], module, PassContext.create(target, options))
    return lower.lower_program(module, target, options)


@hookimpl
def load_artifact(artifact: Any) -> Any:
    """As the CPU's."""
    return load.load_artifact(artifact)
