"""Reductions, windows and scans."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.stablehlo import code
from polyblocks.stablehlo.arg_extremum import arg_extremum
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.attributes import integers, pairs
from polyblocks.stablehlo.convert import convert
from polyblocks.stablehlo.element import F32, F64, Element
from polyblocks.stablehlo.lowering import Lowering, Operand
from polyblocks.stablehlo.rules import rule
from polyblocks.stablehlo.shapes import broadcast, pad, reshape, reverse
from polyblocks.stablehlo.spread import spread


@rule("stablehlo.reduce")
def _reduce(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    count = len(arguments) // 2
    inputs, inits = arguments[:count], arguments[count:]
    dims = integers(op, "dimensions")
    kept = [d for d in range(inputs[0].rank) if d not in dims]
    shape = tuple(inputs[0].shape[d] for d in kept)
    if not prod(shape) or not inputs[0].numel:
        return [broadcast(init, shape, []) for init in inits]
    found = arg_extremum(lowering, op, inputs, inits, dims)
    if found is not None:
        return found
    rank = inputs[0].rank
    kinds = ["reduction" if d in dims else "parallel" for d in range(rank)]
    operands, scalars = spread(lowering, inputs, range(rank))
    outs = [(start(lowering, shape, init), kept) for init in inits]

    def body(loaded: list[Any]) -> list[Any]:
        carried = loaded[len(operands) :]
        return lowering.region(op.regions[0], [*carried, *scalars(loaded)])

    tensors = lowering.loops(kinds, operands, outs, body, inputs[0].shape)
    return [Array(shape, init.element, tensor) for init, tensor in zip(inits, tensors, strict=True)]


def start(lowering: Lowering, shape: Sequence[int], init: Array) -> Any:
    """A tensor full of the first value of a reduction."""
    return lowering.filled(shape, init.element, init.splat if init.splat is not None else init)


@rule("stablehlo.reduce_window")
def _reduce_window(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    count = len(arguments) // 2
    inputs, inits = arguments[:count], arguments[count:]
    rank = inputs[0].rank
    window = integers(op, "window_dimensions")
    strides = integers(op, "window_strides", [1] * rank)
    base = integers(op, "base_dilations", [1] * rank)
    gaps = integers(op, "window_dilations", [1] * rank)
    padding = pairs(op, "padding", rank)
    shape, _ = lowering.type_of(op.results[0])
    if not prod(shape):
        return [Array(shape, init.element, splat=0) for init in inits]
    along = _cumulative(inputs[0].shape, window, [strides, base, gaps], padding)
    if along is not None:
        dim, backwards = along
        return scan(lowering, op.regions[0], inputs, inits, dim, backwards)
    low, high = [p[0] for p in padding], [p[1] for p in padding]
    padded = [
        pad(lowering, x, init, low, high, [g - 1 for g in base])
        for x, init in zip(inputs, inits, strict=True)
    ]
    wide = [d for d in range(rank) if window[d] != 1]
    loops: list[Any] = []
    for d in range(rank):
        index = ir.AffineDimExpr.get(d) * strides[d]
        if d in wide:
            index = index + ir.AffineDimExpr.get(rank + wide.index(d)) * gaps[d]
        loops.append(index)
    operands, scalars = spread(lowering, padded, loops)
    outs = [(start(lowering, shape, init), range(rank)) for init in inits]

    def body(loaded: list[Any]) -> list[Any]:
        carried = loaded[len(operands) :]
        return lowering.region(op.regions[0], [*carried, *scalars(loaded)])

    kinds = ["parallel"] * rank + ["reduction"] * len(wide)
    extents = [*shape, *(window[d] for d in wide)]
    tensors = lowering.loops(kinds, operands, outs, body, extents)
    return [Array(shape, init.element, tensor) for init, tensor in zip(inits, tensors, strict=True)]


def _cumulative(
    shape: Sequence[int],
    window: Sequence[int],
    ones: Sequence[Sequence[int]],
    padding: Sequence[tuple[int, int]],
) -> tuple[int, bool] | None:
    """(dimension, from its end) if every window reaches from one end of a dimension to a place."""
    wide = [d for d in range(len(shape)) if window[d] != 1 or padding[d] != (0, 0)]
    if len(wide) != 1 or any(v != 1 for values in ones for v in values):
        return None
    (d,) = wide
    if window[d] != shape[d] or shape[d] < 2:
        return None
    if padding[d] == (shape[d] - 1, 0):
        return d, False
    return (d, True) if padding[d] == (0, shape[d] - 1) else None


def scan(
    lowering: Lowering,
    region: Any,
    inputs: Sequence[Array],
    inits: Sequence[Array],
    dim: int,
    backwards: bool,
) -> list[Array]:
    """Running values along a dimension, in the form that ``form-scans`` reads.

    Sums and products of float32 are carried in float64, of 16-bit floats in float32.
    """
    if backwards:
        inputs = [reverse(lowering, x, [dim]) for x in inputs]
    shape = inputs[0].shape
    others = [d for d in range(len(shape)) if d != dim]
    wide = [_carried(region, x.element) for x in inputs]
    every = list(range(len(shape)))
    operands, scalars = spread(lowering, inputs, every)
    outs: list[Operand] = [(lowering.empty(shape, x.element), every) for x in inputs]
    for init, kind in zip(inits, wide, strict=True):
        first = Array((), kind, splat=init.splat)
        if init.splat is None:
            first = Array((), kind, scalar=convert(lowering.scalar(init), init.element, kind))
        outs.append((start(lowering, [shape[d] for d in others], first), others))
    kinds = ["reduction" if d == dim else "parallel" for d in every]

    def body(loaded: list[Any]) -> list[Any]:
        running = loaded[len(operands) + len(inputs) :]
        elements = scalars(loaded)
        if wide[0] != inputs[0].element:
            (name,) = _single(region)
            wider = convert(elements[0], inputs[0].element, wide[0])
            new = [code.emit(_WIDENED[name], [running[0], wider])]
        else:
            new = lowering.region(region, [*running, *elements])
        shown = [convert(v, k, x.element) for v, k, x in zip(new, wide, inputs, strict=True)]
        return [*shown, *new]

    tensors = lowering.loops(kinds, operands, outs, body, shape)
    results = [Array(shape, x.element, tensor) for x, tensor in zip(inputs, tensors, strict=False)]
    return [reverse(lowering, r, [dim]) for r in results] if backwards else results


_WIDENED = {"stablehlo.add": "arith.addf", "stablehlo.multiply": "arith.mulf"}


def _single(region: Any) -> list[str]:
    """The name of the only operation of a region on its two arguments; empty if it has others."""
    operations = [op.operation for op in region.blocks[0].operations]
    if len(operations) != 2:
        return []
    first, end = operations
    whole = list(first.operands) in (
        list(region.blocks[0].arguments),
        list(region.blocks[0].arguments)[::-1],
    )
    return [first.name] if whole and list(end.operands) == list(first.results) else []


def _carried(region: Any, element: Element) -> Element:
    """The type in which a running value is carried."""
    sums = _single(region)
    if not element.is_float or not sums or sums[0] not in _WIDENED:
        return element
    return F64 if element.width == F32.width else F32 if element.width < F32.width else element


@rule("stablehlo.select_and_scatter")
def _select_and_scatter(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    from polyblocks.stablehlo.scatters import scatter_flat

    x, source, init = arguments
    rank = x.rank
    window = integers(op, "window_dimensions", [1] * rank)
    strides = integers(op, "window_strides", [1] * rank)
    padding = pairs(op, "padding", rank)
    out = broadcast(init, x.shape, [])
    if not source.numel or not x.numel:
        return out
    low, high = [p[0] for p in padding], [p[1] for p in padding]
    filler = Array((), x.element, splat=_any(x.element))
    padded = pad(lowering, x, filler, low, high)
    loops: list[Any] = [
        ir.AffineDimExpr.get(d) * strides[d] + ir.AffineDimExpr.get(rank + d) for d in range(rank)
    ]
    operands, scalars = spread(lowering, [padded], loops)
    integer = Element("i64")
    outs = [
        (lowering.filled(source.shape, x.element, _any(x.element)), range(rank)),
        (lowering.filled(source.shape, integer, -1), range(rank)),
    ]

    def body(loaded: list[Any]) -> list[Any]:
        best, place = loaded[len(operands) :]
        (candidate,) = scalars(loaded)
        at: Any = None
        valid: Any = code.constant(Element("i1"), True)
        for d in range(rank):
            position = _position(d, rank + d, strides[d], low[d])
            inside_ = code.compare_int("ult", position, code.constant(integer, x.shape[d]))
            valid = code.both(valid, inside_)
            extent = code.constant(integer, x.shape[d])
            at = (
                position
                if at is None
                else code.emit("arith.addi", [code.emit("arith.muli", [at, extent]), position])
            )
        if at is None:
            at = code.constant(integer, 0)
        (keeps,) = lowering.region(op.regions[0], [best, candidate])
        first = code.compare_int("slt", place, code.constant(integer, 0))
        takes = code.either(first, code.negated(keeps))
        takes = code.both(valid, takes)
        return [code.select(takes, candidate, best), code.select(takes, at, place)]

    kinds = ["parallel"] * rank + ["reduction"] * rank
    _, places = lowering.loops(kinds, operands, outs, body, [*source.shape, *window])
    flat = scatter_flat(
        lowering,
        reshape(lowering, out, (x.numel,)),
        reshape(lowering, Array(source.shape, integer, places), (source.numel,)),
        reshape(lowering, source, (source.numel,)),
        op.regions[1],
    )
    return reshape(lowering, flat, x.shape)


def _any(element: Element) -> Any:
    if element.is_complex:
        raise UnsupportedError("an order of complex numbers")
    return False if element.is_bool else 0 if element.is_integer else 0.0


def _position(outer: int, inner: int, stride: int, low: int) -> Any:
    """``outer * stride + inner - low`` as an i64."""
    i64 = Element("i64")

    def at(dim: int) -> Any:
        number = ir.IntegerAttr.get(i64.type, dim)
        return code.emit(
            "arith.index_cast",
            [code.emit("linalg.index", [], ir.IndexType.get(), dim=number)],
            i64.type,
        )

    start_ = code.emit("arith.muli", [at(outer), code.constant(i64, stride)])
    place = code.emit("arith.addi", [start_, at(inner)])
    return code.emit("arith.subi", [place, code.constant(i64, low)])


@rule("stablehlo.map")
def _map(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    shape, element = lowering.type_of(op.results[0])
    operands, scalars = spread(lowering, arguments, range(len(shape)))
    return lowering.generic(
        shape, operands, [element], lambda loaded: lowering.region(op.regions[0], scalars(loaded))
    )
