"""Sorting, with any comparator, of any number of arrays; the largest elements of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyblocks import mlir
from polyblocks.algorithms.sorting.network import partner_masks
from polyblocks.algorithms.sorting.order import Order, create_sort
from polyblocks.mlir import ir
from polyblocks.stablehlo import code
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.attributes import boolean, integer
from polyblocks.stablehlo.comparators import SortKey, compares_numbers, sort_keys
from polyblocks.stablehlo.element import I32, I64, Element
from polyblocks.stablehlo.elementwise import total_order
from polyblocks.stablehlo.expand import expand
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule
from polyblocks.stablehlo.shapes import iota, static_slice

#: Narrower keys are extended.
KEY_WIDTH = 8
#: The bits of infinity.
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}
#: Up to here every element is compared with every other one, which needs no loop around.
SHORT = 128


@rule("stablehlo.sort")
def _sort(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    dim = integer(op, "dimension", -1) % max(arguments[0].rank, 1)
    return sort(lowering, op.regions[0], arguments, dim, boolean(op, "is_stable"))


@rule("chlo.top_k")
def _top_k(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    (x,) = arguments
    index = Element.of(op.results[1].type)
    if not (x.element.is_float or x.element.is_integer) or not x.numel or index != I32:
        return expand(lowering, op, arguments)
    dim = x.rank - 1
    arrays = [x, iota(lowering, x.shape, I32, dim)]
    ordered = by_key(lowering, _keys(lowering, x), arrays, dim, True, keyed=0)
    shape, _ = lowering.type_of(op.results[0])
    return [static_slice(lowering, array, [0] * x.rank, shape) for array in ordered]


def sort(
    lowering: Lowering, region: Any, arrays: list[Array], dim: int, stable: bool
) -> list[Array]:
    """Arrays of one shape in the order that a comparator of their elements says."""
    x = arrays[0]
    if not x.rank or x.shape[dim] <= 1 or not x.numel:
        return arrays
    keys = sort_keys(region)
    if keys is not None and len(keys) == 1:
        return _by_one_key(lowering, keys[0], arrays, dim)
    if keys is not None and x.shape[dim] > SHORT:
        return _by_keys(lowering, keys, arrays, dim)
    if x.shape[dim] <= SHORT:
        return _by_rank(lowering, region, arrays, dim)
    return _by_network(lowering, region, arrays, dim, stable)


def _by_one_key(lowering: Lowering, key: SortKey, arrays: list[Array], dim: int) -> list[Array]:
    x, value = arrays[key.operand], key.value
    numbers = isinstance(value, ir.BlockArgument)
    infinity = _INFINITY[x.element.name] if compares_numbers(value) else 0
    keyed = key.operand if numbers or infinity else None
    keys = _keys(lowering, x, None if infinity else value)
    return by_key(lowering, keys, arrays, dim, key.descending, infinity, keyed)


def _by_keys(lowering: Lowering, keys: list[SortKey], arrays: list[Array], dim: int) -> list[Array]:
    """Sort by one key after the other, the most significant one last."""
    order = iota(lowering, arrays[0].shape, I32, dim)
    for number, key in enumerate(reversed(keys)):
        numbers = _keys(lowering, arrays[key.operand], key.value)
        if number:
            (numbers,) = _at(lowering, [numbers], order, dim)
        (order,) = by_key(lowering, numbers, [order], dim, key.descending)
    return _at(lowering, arrays, order, dim)


def _keys(lowering: Lowering, array: Array, value: Any = None) -> Array:
    """Integers in the order of an array's elements, or of a value that is computed of each."""
    element = array.element if value is None else lowering.type_of(value)[1]
    width = max(element.width, KEY_WIDTH)
    kind = Element(f"ui{width}" if element.is_unsigned or element.is_bool else f"i{width}")

    def body(loaded: list[Any]) -> list[Any]:
        (x,) = loaded if value is None else [lowering.expression(value, loaded[0])]
        if element.is_float:
            return [total_order(x, element)]
        if x.type == kind.type:
            return [x]
        extend = "arith.extui" if kind.is_unsigned else "arith.extsi"
        return [code.emit(extend, [x], kind.type)]

    source = lowering.operand(array, range(array.rank))
    return lowering.generic(array.shape, [source], [kind], body)[0]


def by_key(
    lowering: Lowering,
    keys: Array,
    arrays: list[Array],
    dim: int,
    descending: bool,
    infinity: int = 0,
    keyed: int | None = None,
) -> list[Array]:
    """Arrays in the order of their keys, those with equal ones in the order in which they lie.

    How they are sorted is chosen when it is known how much of the sorted arrays is read.

    Args:
        lowering: in progress.
        keys: integers.
        arrays: of the same shape.
        dim: the dimension along which rows lie.
        descending: whether large keys come first.
        infinity: see :class:`~polyblocks.algorithms.sorting.order.Order`.
        keyed: the number of the array whose elements the keys are, if there is one.
    """
    tensors = [lowering.tensor(a) for a in (keys, *arrays)]
    signed = not keys.element.is_unsigned
    order = Order(keys.element.width, 0, signed, descending, infinity)
    results = create_sort(tensors, dim, order, None if keyed is None else keyed + 1)
    return [
        Array(a.shape, a.element, result) for a, result in zip(arrays, results[1:], strict=True)
    ]


def _by_rank(lowering: Lowering, region: Any, arrays: list[Array], dim: int) -> list[Array]:
    """An element's place is the number of elements that come before it.

    The places are a permutation; its inverse says which element comes to a place.
    """
    shape = arrays[0].shape
    rank = len(shape)
    here = list(range(rank))
    there = [rank if d == dim else d for d in here]
    operands = []
    for a in arrays:
        operands += [lowering.operand(a, there), lowering.operand(a, here)]

    def count(loaded: list[Any]) -> list[Any]:
        pairs = loaded[: 2 * len(arrays)]
        swapped = [v for i in range(0, len(pairs), 2) for v in (pairs[i + 1], pairs[i])]
        (before,) = lowering.region(region, pairs)
        (behind,) = lowering.region(region, swapped)
        earlier = code.compare_int("ult", _loop(rank), _loop(dim))
        tie = code.both(code.negated(behind), earlier)
        precedes = code.either(before, tie)
        one = code.emit("arith.extui", [precedes], I32.type)
        return [code.emit("arith.addi", [loaded[-1], one])]

    kinds = ["parallel"] * rank + ["reduction"]
    outs = [(lowering.filled(shape, I32, 0), here)]
    extents = [*shape, shape[dim]]
    (ranks,) = lowering.loops(kinds, operands, outs, count, extents)

    def invert(loaded: list[Any]) -> list[Any]:
        place = code.emit("arith.index_cast", [_loop(dim)], I32.type)
        source = code.emit("arith.index_cast", [_loop(rank)], I32.type)
        hit = code.compare_int("eq", loaded[0], place)
        chosen = code.select(hit, source, code.constant(I32, 0))
        return [code.emit("arith.addi", [loaded[-1], chosen])]

    outs = [(lowering.filled(shape, I32, 0), here)]
    (places,) = lowering.loops(kinds, [(ranks, there)], outs, invert, extents)
    return _at(lowering, arrays, Array(shape, I32, places), dim)


def _at(lowering: Lowering, arrays: list[Array], order: Array, dim: int) -> list[Array]:
    """The elements of arrays at places along a dimension."""
    shape = order.shape
    here = list(range(len(shape)))
    operand = lowering.operand(order, here)
    sources = [lowering.tensor(a) for a in arrays]

    def pick(loaded: list[Any]) -> list[Any]:
        last = code.constant(I32, shape[dim] - 1)
        safe = code.emit("arith.minui", [loaded[0], last])
        chosen = code.emit("arith.index_cast", [safe], ir.IndexType.get())
        where = [chosen if d == dim else _loop(d) for d in here]
        return [
            code.emit("tensor.extract", [source, *where], a.element.type)
            for source, a in zip(sources, arrays, strict=True)
        ]

    return lowering.generic(shape, [operand], [a.element for a in arrays], pick)


def _by_network(
    lowering: Lowering, region: Any, arrays: list[Array], dim: int, stable: bool
) -> list[Array]:
    """A bitonic network (Batcher 1968), one of whose stages is one iteration of a loop.

    In every stage element ``i`` meets ``i ^ mask``, and the earlier one gets what comes first.
    Runs are merged with the mirrored other run, so that all comparators point the same way; then
    elements beyond the end can be thought of as coming last, and are never moved.
    """
    shape = arrays[0].shape
    extent = shape[dim]
    rank = len(shape)
    if stable:
        arrays = [*arrays, iota(lowering, shape, I32, dim)]
    masks = partner_masks(extent)
    table = _table(masks)
    starts = [lowering.tensor(a) for a in arrays]
    scf = mlir.dialect("scf")
    loop = scf.ForOp(code.index(0), code.index(len(masks)), code.index(1), starts)
    with lowering.inside(loop.body):
        mask = code.emit("tensor.extract", [table, loop.induction_variable], I64.type)
        mask_tensor = code.emit("tensor.from_elements", [mask], I64.tensor(()))
        carried = list(loop.inner_iter_args)

        def exchange(loaded: list[Any]) -> list[Any]:
            own = code.emit("arith.index_cast", [_loop(dim)], I64.type)
            other = code.emit("arith.xori", [own, loaded[0]])
            exists = code.compare_int("ult", other, code.constant(I64, extent))
            other = code.emit("arith.minui", [other, code.constant(I64, extent - 1)])
            place = code.emit("arith.index_cast", [other], ir.IndexType.get())
            where = [place if d == dim else _loop(d) for d in range(rank)]
            mine = loaded[1 : 1 + len(arrays)]
            theirs = [
                code.emit("tensor.extract", [t, *where], a.element.type)
                for t, a in zip(carried, arrays, strict=True)
            ]
            first = code.compare_int("ult", own, other)
            low = [code.select(first, m, t) for m, t in zip(mine, theirs, strict=True)]
            high = [code.select(first, t, m) for m, t in zip(mine, theirs, strict=True)]
            keys = len(arrays) - stable
            (swaps,) = lowering.region(region, [v for i in range(keys) for v in (high[i], low[i])])
            if stable:
                (ordered,) = lowering.region(
                    region, [v for i in range(keys) for v in (low[i], high[i])]
                )
                later = code.compare_int("ult", high[-1], low[-1])
                tie = code.both(code.negated(ordered), later)
                swaps = code.either(swaps, tie)
            swaps = code.both(swaps, exists)
            return [code.select(swaps, t, m) for m, t in zip(mine, theirs, strict=True)]

        every = list(range(rank))
        operands = [(mask_tensor, ()), *((t, every) for t in carried)]
        results = lowering.generic(shape, operands, [a.element for a in arrays], exchange)
        scf.YieldOp([r.tensor for r in results])
    count = len(arrays) - stable
    return [
        Array(shape, a.element, value)
        for a, value in zip(arrays[:count], loop.results, strict=False)
    ]


def _table(masks: list[int]) -> Any:
    from polyblocks.stablehlo.constants import dense

    return dense(I64, (len(masks),), np.array(masks, dtype=object))


def _loop(dim: int) -> Any:
    return code.emit("linalg.index", [], ir.IndexType.get(), dim=ir.IntegerAttr.get(I64.type, dim))
