"""Products of matrices and convolutions, as one nest with a sum of products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from polyblocks import mlir
from polyblocks.affine.padding.padded import Padded
from polyblocks.mlir import ir
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.attributes import booleans, integer, integers, pairs
from polyblocks.stablehlo.convert import convert
from polyblocks.stablehlo.element import Element
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule
from polyblocks.stablehlo.scalar_math import plus, times
from polyblocks.stablehlo.shapes import pad, padded_by, reassociate, reverse


def contract(
    lowering: Lowering,
    kinds: Sequence[str],
    operands: Sequence[tuple[Array, Sequence[Any]]],
    shape: tuple[int, ...],
    loops: Sequence[int],
    element: Element,
    padded: Padded | None = None,
) -> Array:
    """The sum of products of two arrays.

    Args:
        lowering: where to append.
        kinds: of the loops.
        operands: two arrays, each with what its dimensions are indexed by.
        shape: of the result.
        loops: those that are the result's dimensions.
        element: of the result; operands are converted to it before they are multiplied.
        padded: how the first array has been padded for this.
    """
    if not prod(shape):
        return Array(shape, element, splat=0)
    if any(not array.numel for array, _ in operands):
        return Array(shape, element, splat=_zero(element))
    # The result is no narrower than the operands while it is summed up.
    widest = max((array.element for array, _ in operands), key=lambda e: e.width)
    total = element if element.width >= widest.width else widest
    out = lowering.filled(shape, total, _zero(total))
    inputs = [lowering.operand(array, index) for array, index in operands]
    extents = [0] * len(kinds)
    for array, index in operands:
        for extent, loop in zip(array.shape, index, strict=True):
            if isinstance(loop, int):
                extents[loop] = extent

    def body(scalars: list[Any]) -> list[Any]:
        factors = [
            convert(x, array.element, total)
            for x, (array, _) in zip(scalars, operands, strict=False)
        ]
        product = times(total, *factors)
        if padded is not None and product.owner.name in ("arith.mulf", "arith.muli"):
            padded.mark(product.owner)
        return [plus(total, scalars[-1], product)]

    (tensor,) = lowering.loops(kinds, inputs, [(out, loops)], body, extents)
    result = Array(shape, total, tensor)
    if total == element:
        return result
    source = lowering.operand(result, range(len(shape)))
    return lowering.generic(
        shape, [source], [element], lambda loaded: [convert(loaded[0], total, element)]
    )[0]


def _zero(element: Element) -> Any:
    return False if element.is_bool else 0 if element.is_integer else 0.0


@rule("stablehlo.dot_general")
def _dot_general(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    numbers = mlir.stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    shape, element = lowering.type_of(op.results[0])
    return dot(
        lowering,
        arguments,
        (list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)),
        (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)),
        shape,
        element,
    )


@rule("stablehlo.dot")
def _dot(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    shape, element = lowering.type_of(op.results[0])
    return dot(lowering, arguments, ([], []), ([arguments[0].rank - 1], [0]), shape, element)


def dot(
    lowering: Lowering,
    arguments: list[Array],
    batch: tuple[list[int], list[int]],
    summed: tuple[list[int], list[int]],
    shape: tuple[int, ...],
    element: Element,
) -> Array:
    """A product over some dimensions; the result has the batch's ones, then those left over."""
    rank = len(shape)
    kinds = ["parallel"] * rank + ["reduction"] * len(summed[0])
    at = len(batch[0])
    operands = []
    for array, own_batch, own_summed in zip(arguments, batch, summed, strict=True):
        index: list[int] = [0] * array.rank
        for i, d in enumerate(own_batch):
            index[d] = i
        for i, d in enumerate(own_summed):
            index[d] = rank + i
        for d in range(array.rank):
            if d not in own_batch and d not in own_summed:
                index[d] = at
                at += 1
        operands.append((array, index))
    return contract(lowering, kinds, operands, shape, range(rank), element)


@rule("stablehlo.convolution")
def _convolution(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    x, w = arguments
    shape, element = lowering.type_of(op.results[0])
    numbers = mlir.stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    x_space = list(numbers.input_spatial_dimensions)
    w_space = list(numbers.kernel_spatial_dimensions)
    y_space = list(numbers.output_spatial_dimensions)
    count = len(x_space)
    padding = pairs(op, "padding", count)
    strides = integers(op, "window_strides", [1] * count)
    x_dilation = integers(op, "lhs_dilation", [1] * count)
    w_dilation = integers(op, "rhs_dilation", [1] * count)
    reversal = booleans(op, "window_reversal", count)
    groups = integer(op, "feature_group_count", 1)
    batches = integer(op, "batch_group_count", 1)
    if not prod(shape) or not x.numel or not w.numel:
        return Array(shape, element, splat=_zero(element))

    low, high, inner = ([0] * x.rank for _ in range(3))
    for d, (before, behind), gap in zip(x_space, padding, x_dilation, strict=True):
        low[d], high[d], inner[d] = before, behind, gap - 1
    padded = padded_by(x.shape, low, high, inner)
    x = pad(lowering, x, Array((), x.element, splat=_zero(x.element)), low, high, inner)
    flipped = [d for d, yes in zip(w_space, reversal, strict=True) if yes]
    if flipped:
        w = reverse(lowering, w, flipped)

    # One loop for every dimension of the result, its features cut into groups; then the sums.
    parts = max(groups, batches)
    y_batch, y_feature = numbers.output_batch_dimension, numbers.output_feature_dimension
    x_batch, x_feature = numbers.input_batch_dimension, numbers.input_feature_dimension
    w_in, w_out = numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension
    y_shape: list[int] = []
    place: dict[int, int] = {}
    group = None
    for d, extent in enumerate(shape):
        if d == y_feature and parts > 1:
            group = len(y_shape)
            y_shape.append(parts)
            extent //= parts
        place[d] = len(y_shape)
        y_shape.append(extent)
    rank = len(y_shape)
    windows = list(range(rank, rank + count))
    channel = rank + count
    if x_feature < min(x_space, default=x_feature):
        channel, windows = rank, [v + 1 for v in windows]

    x_index: list[Any] = [None] * x.rank
    x_index[x_batch], x_index[x_feature] = place[y_batch], channel
    for d, own, window, stride, gap in zip(
        x_space, y_space, windows, strides, w_dilation, strict=True
    ):
        outer, within = ir.AffineDimExpr.get(place[own]), ir.AffineDimExpr.get(window)
        x_index[d] = outer * stride + within * gap
    w_index: list[Any] = [None] * w.rank
    w_index[w_in], w_index[w_out] = channel, place[y_feature]
    for d, window in zip(w_space, windows, strict=True):
        w_index[d] = window
    if group is not None:
        x, x_index = _split(
            lowering, x, x_index, x_feature if groups > 1 else x_batch, parts, group
        )
        w, w_index = _split(lowering, w, w_index, w_out, parts, group)
    kinds = ["parallel"] * rank + ["reduction"] * (count + 1)
    operands = [(x, x_index), (w, w_index)]
    y = contract(lowering, kinds, operands, tuple(y_shape), range(rank), element, padded)
    if group is None:
        return y
    return Array(shape, element, reassociate(lowering.tensor(y), shape, element))


def _split(
    lowering: Lowering, x: Array, index: list[Any], dim: int, parts: int, loop: int
) -> tuple[Array, list[Any]]:
    """Cut a dimension into parts, the first of two that ``loop`` indexes."""
    shape = [*x.shape[:dim], parts, x.shape[dim] // parts, *x.shape[dim + 1 :]]
    tensor = expand_dimension(lowering.tensor(x), dim, shape, x.element)
    return Array(tuple(shape), x.element, tensor), [*index[:dim], loop, *index[dim:]]


def expand_dimension(source: Any, dim: int, shape: list[int], element: Element) -> Any:
    """``tensor.expand_shape`` that splits one dimension in two."""
    from polyblocks.stablehlo.code import emit

    i64 = ir.IntegerType.get_signless(64)
    groups = [
        [d] if d < dim else [d, d + 1] if d == dim else [d + 1] for d in range(len(shape) - 1)
    ]
    attribute = ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in g]) for g in groups]
    )
    return emit(
        "tensor.expand_shape",
        [source],
        element.tensor(shape),
        reassociation=attribute,
        static_output_shape=ir.DenseI64ArrayAttr.get(shape),
    )
