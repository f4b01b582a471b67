"""Operands of calls that copy boxes between arrays and shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks.affine.gpu.plans.boxed_arrays import BoxedArray
from polyblocks.affine.gpu.plans.windowed_arrays import (
    WindowedArray,
    steps_before,
    windows_before,
)
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
    numbers = (buffer.bytes_per_element, len(array.extents), array.offset)
    given = (*numbers, *array.extents, *array.strides[1:], *box)
    nodes, quotients = scope.tile.nodes, array.quotients
    batch = [
        nodes.expr(quotients[var]) if var in quotients else nodes.variables[var]
        for (var,) in array.loops[len(places) :]
    ]
    return _operands(scope, copies, buffer, (*places, *batch), given)


def operands_of_windows(
    scope: UnitScope,
    copies: BulkCopies,
    buffer: Buffer,
    array: WindowedArray,
    row: Any,
    step: Any,
    box: Sequence[int],
) -> list[Any]:
    """The array's address, the first pixel and the window's element, and the description of all.

    Args:
        scope, copies, buffer: see :func:`operands_of_box`.
        array: as copies see it.
        row: the first window.
        step: the first step, of an element of windows.
        box: channels and pixels, and 1 for each other dimension.
    """
    code = scope.code
    *before, of_image = windows_before(array)
    places, offsets = [code.remainder(step, array.channel.extent)], []
    for each, rows in zip(array.pixels, before, strict=True):
        window = code.remainder(code.quotient(row, rows), each.windows)
        places.append(code.plus(code.times(window, each.step), each.low))
        offset = code.integer(0)
        if each.tap is not None:
            number = code.quotient(step, steps_before(array, each.tap))
            if each.tap is not array.steps[0]:
                number = code.remainder(number, each.tap.extent)
            offset = code.times(number, each.apart)
        offsets.append(offset)
    places.append(code.quotient(row, of_image))
    numbers = (buffer.bytes_per_element, len(array.extents), 0)
    corners = [number for each in array.pixels for number in (each.low, each.corner, each.step)]
    given = (*numbers, *array.extents, *array.strides, *box[:2], *corners)
    return _operands(scope, copies, buffer, (*places, *offsets), given)


def _operands(
    scope: UnitScope,
    copies: BulkCopies,
    buffer: Buffer,
    places: Sequence[Any],
    numbers: Sequence[int],
) -> list[Any]:
    code = scope.code
    memref = scope.aligned(buffer, copies.alignment)
    base = code.pointer(code.address(memref, code.integer(0), buffer.bytes_per_element), GLOBAL)
    layout = [code.constant(ir.IntegerAttr.get(code.i64, each)) for each in numbers]
    return [base, *(code.value("arith.index_cast", code.i32, n) for n in places), *layout]
