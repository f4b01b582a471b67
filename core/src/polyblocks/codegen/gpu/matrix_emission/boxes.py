"""Operands of calls that copy boxes between arrays and shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks.affine.gpu.plans.boxed_arrays import BoxedArray
from polyblocks.affine.model import Buffer
from polyblocks.codegen.gpu.accesses.pipeline import GLOBAL
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.mlir import ir
from polyblocks.target import BulkCopies


def operands_of_box(
    scope: UnitScope,
    copies: BulkCopies,
    buffer: Buffer,
    array: BoxedArray,
    places: Sequence[Any],
    box: Sequence[int],
) -> list[Any]:
    """The array's address, where a box begins, and the description of both.

    Args:
        scope: of the kernel.
        copies: how boxes are copied.
        buffer: the program's, whose elements the array has.
        array: as copies see it.
        places: the first element along its first dimensions; batches are the rest.
        box: extents.
    """
    code = scope.code
    memref = scope.aligned(buffer, copies.alignment)
    base = code.pointer(code.address(memref, code.integer(0), buffer.bytes_per_element), GLOBAL)
    numbers = (buffer.bytes_per_element, len(array.extents), array.offset)
    given = (*numbers, *array.extents, *array.strides[1:], *box)
    layout = [code.constant(ir.IntegerAttr.get(code.i64, each)) for each in given]
    nodes, quotients = scope.tile.nodes, array.quotients
    batch = [
        nodes.expr(quotients[var]) if var in quotients else nodes.variables[var]
        for (var,) in array.loops[len(places) :]
    ]
    first = [code.value("arith.index_cast", code.i32, n) for n in (*places, *batch)]
    return [base, *first, *layout]
