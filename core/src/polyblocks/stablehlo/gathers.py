"""Reading at indices that are computed at run time; what is out of range is clamped."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from polyblocks import mlir
from polyblocks.mlir import ir
from polyblocks.stablehlo import code
from polyblocks.stablehlo.array import Array, known_array
from polyblocks.stablehlo.attributes import integers
from polyblocks.stablehlo.element import BOOL, Element
from polyblocks.stablehlo.extensions import CHECKED
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule
from polyblocks.stablehlo.shapes import extract, insert, reshape, static_slice


def to_index(scalar: Any, element: Element) -> Any:
    """A scalar integer as an index."""
    name = "arith.index_castui" if element.is_unsigned else "arith.index_cast"
    return code.emit(name, [scalar], ir.IndexType.get())


def clamped(scalar: Any, element: Element, highest: int) -> Any:
    """A scalar integer as an index from 0 to ``highest``."""
    if highest == 0:
        return code.index(0)
    return to_index(clamped_number(scalar, element, highest), element)


def clamped_number(scalar: Any, element: Element, highest: int) -> Any:
    """The nearest number from 0 to ``highest``, of the same type."""
    limit = code.constant(element, min(highest, element.highest))
    if element.is_unsigned:
        return code.emit("arith.minui", [scalar, limit])
    below = code.emit("arith.minsi", [scalar, limit])
    return code.emit("arith.maxsi", [below, code.constant(element, 0)])


def checked_index(scalar: Any, element: Element, highest: int) -> Any:
    """A scalar integer as an index; the program fails unless it is from 0 to ``highest``."""
    # As an unsigned number, a negative one is too large as well.
    limit = code.constant(element, min(highest, element.highest))
    fits = code.compare_int("ule", scalar, limit) if highest >= 0 else code.constant(BOOL, False)
    message = f"an index must be at least 0 and less than {highest + 1}"
    mlir.dialect("cf").AssertOp(fits, message)
    return to_index(scalar, element)


def start_index(lowering: Lowering, start: Array, highest: int) -> Any:
    """Where a slice starts: a number where it is known, else a value of type index."""
    number = start.number
    if number is not None:
        return min(max(number, 0), highest)
    if highest == 0:
        return 0
    bounds = start.bounds
    scalar = lowering.scalar(start)
    if bounds is not None and bounds[0] >= 0 and bounds[1] <= highest:
        return to_index(scalar, start.element)
    return clamped(scalar, start.element, highest)


@rule("stablehlo.dynamic_slice")
def _dynamic_slice(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    x, *starts = arguments
    return dynamic_slice(lowering, x, starts, integers(op, "slice_sizes"))


def dynamic_slice(
    lowering: Lowering, x: Array, starts: Sequence[Array | None], sizes: Sequence[int]
) -> Array:
    """A part of an array; None starts at 0."""
    shape = tuple(sizes)
    if shape == x.shape:
        return x
    if x.splat is not None:
        return Array(shape, x.element, splat=x.splat)
    where = [
        0 if start is None else start_index(lowering, start, extent - size)
        for start, extent, size in zip(starts, x.shape, sizes, strict=True)
    ]
    if all(isinstance(w, int) for w in where):
        return static_slice(lowering, x, where, shape)
    part = extract(lowering.tensor(x), where, list(shape), [1] * len(shape))
    return Array(shape, x.element, part)


@rule("stablehlo.dynamic_update_slice")
def _dynamic_update_slice(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    x, part, *starts = arguments
    if not part.numel:
        return x
    where = [
        start_index(lowering, start, extent - size)
        for start, extent, size in zip(starts, x.shape, part.shape, strict=True)
    ]
    if part.shape == x.shape:
        return part
    return Array(x.shape, x.element, insert(lowering.tensor(part), lowering.tensor(x), where))


@rule("stablehlo.gather")
def _gather(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    x, indices = arguments
    shape, element = lowering.type_of(op.results[0])
    numbers = mlir.stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    sizes = integers(op, "slice_sizes")
    offset_dims = list(numbers.offset_dims)
    start_map = list(numbers.start_index_map)
    batching = dict(
        zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    )
    hidden = {*numbers.collapsed_slice_dims, *batching}
    vector = numbers.index_vector_dim
    if not prod(shape):
        return Array(shape, element, splat=0)
    checks = CHECKED in op.attributes
    if x.splat is not None and not checks:
        return Array(shape, element, splat=x.splat)
    batch = [d for d in range(len(shape)) if d not in offset_dims]
    if prod(shape[d] for d in batch) == 1 and not batching and not checks:
        starts: list[Array | None] = [None] * x.rank
        for k, d in enumerate(start_map):
            starts[d] = component(lowering, indices, vector, k)
        return reshape(lowering, dynamic_slice(lowering, x, starts, sizes), shape)

    # For each dimension of the indices without the vector's the loop that it is indexed by.
    places = list(batch)
    if vector < indices.rank:
        places.insert(vector, -1)
    operands = []
    for k in range(len(start_map)):
        index = [ir.AffineConstantExpr.get(k) if p < 0 else p for p in places]
        operands.append(lowering.operand(indices, index))
    windows = iter(offset_dims)
    within = {d: next(windows) for d in range(x.rank) if d not in hidden}
    source = lowering.tensor(x)

    def body(loaded: list[Any]) -> list[Any]:
        where: list[Any] = [None] * x.rank
        for d, start in zip(start_map, loaded, strict=True):
            as_index = checked_index if checks else clamped
            where[d] = as_index(start, indices.element, x.shape[d] - sizes[d])
        for d, own in batching.items():
            where[d] = _loop(places[own])
        for d, loop in within.items():
            if sizes[d] == 1:
                continue
            offset = _loop(loop)
            where[d] = offset if where[d] is None else code.emit("arith.addi", [where[d], offset])
        where = [code.index(0) if w is None else w for w in where]
        return [code.emit("tensor.extract", [source, *where], element.type)]

    return lowering.generic(shape, operands, [element], body)[0]


def component(lowering: Lowering, indices: Array, vector: int, k: int) -> Array:
    """Number ``k`` of the only index vector, as an array of rank 0."""
    if vector < indices.rank:
        starts = [k if d == vector else 0 for d in range(indices.rank)]
        if indices.numbers is not None:
            return known_array(indices.element, indices.numbers[tuple(starts)])
        indices = static_slice(lowering, indices, starts, [1] * indices.rank)
    base = indices.base if indices.tensor is None else None
    if base is not None and base.rank == 0:
        return base
    return reshape(lowering, indices, ())


def _loop(dim: int) -> Any:
    i64 = ir.IntegerType.get_signless(64)
    return code.emit("linalg.index", [], ir.IndexType.get(), dim=ir.IntegerAttr.get(i64, dim))
