"""The few largest elements of long rows, one after the other."""

from __future__ import annotations

from typing import Any

from polyblocks.mlir import ir
from polyblocks.stablehlo import code
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.attributes import integer
from polyblocks.stablehlo.element import I32, Element
from polyblocks.stablehlo.elementwise import total_order
from polyblocks.stablehlo.expand import expand
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule
from polyblocks.stablehlo.shapes import concatenate, reshape
from polyblocks.stablehlo.sorting import SHORT

#: Two passes over a row for each element; more of them are sorted.
MOST = 8


@rule("chlo.top_k")
def _top_k(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    (x,) = arguments
    count = integer(op, "k")
    shape, _ = lowering.type_of(op.results[0])
    index = Element.of(op.results[1].type)
    sortable = x.element.is_float or x.element.is_integer
    few = 0 < count <= MOST and x.shape[-1] > SHORT and x.numel
    if not few or not sortable or index != I32:
        return expand(lowering, op, arguments)
    key, keys = _keys(lowering, x)
    places: list[Array] = []
    last: tuple[Array, Array] | None = None
    for _ in range(count):
        last = _next(lowering, key, keys, last)
        places.append(reshape(lowering, last[1], (*x.shape[:-1], 1)))
    where = concatenate(lowering, places, x.rank - 1, shape, I32)
    return [_pick(lowering, x, where), where]


def _keys(lowering: Lowering, x: Array) -> tuple[Element, Array]:
    """Integers in the order of the elements; floats in their total order."""
    if not x.element.is_float:
        return x.element, x
    integer_ = Element(f"i{x.element.width}")
    source = lowering.operand(x, range(x.rank))
    keys = lowering.generic(x.shape, [source], [integer_], lambda v: [total_order(v[0], x.element)])
    return integer_, keys[0]


def _next(
    lowering: Lowering, key: Element, keys: Array, last: tuple[Array, Array] | None
) -> tuple[Array, Array]:
    """Key and place of the first of the largest elements behind ``last``."""
    rank = keys.rank
    every, kept = list(range(rank)), list(range(rank - 1))
    kinds = ["parallel"] * (rank - 1) + ["reduction"]
    shape = keys.shape[:-1]
    sign = "u" if key.is_unsigned else "s"
    before = [lowering.operand(a, kept) for a in last or ()]
    source = lowering.operand(keys, every)

    def here() -> Any:
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), rank - 1)
        place = code.emit("linalg.index", [], ir.IndexType.get(), dim=number)
        return code.emit("arith.index_cast", [place], I32.type)

    def is_behind(number: Any, last_key: Any, last_place: Any) -> Any:
        smaller = code.compare_int(f"{sign}lt", number, last_key)
        equal = code.compare_int("eq", number, last_key)
        later = code.compare_int("sgt", here(), last_place)
        return code.either(smaller, code.both(equal, later))

    def largest(loaded: list[Any]) -> list[Any]:
        number, *previous, best = loaded
        if previous:
            least = code.constant(key, key.lowest)
            number = code.select(is_behind(number, *previous), number, least)
        return [code.emit(f"arith.max{sign}i", [best, number])]

    start = lowering.filled(shape, key, key.lowest), kept
    (best,) = lowering.loops(kinds, [source, *before], [start], largest, keys.shape)

    def first(loaded: list[Any]) -> list[Any]:
        number, *previous, most, place = loaded
        chosen = code.compare_int("eq", number, most)
        if previous:
            chosen = code.both(chosen, is_behind(number, *previous))
        far = code.constant(I32, I32.highest)
        return [code.emit("arith.minsi", [place, code.select(chosen, here(), far)])]

    nowhere = lowering.filled(shape, I32, I32.highest), kept
    (place,) = lowering.loops(kinds, [source, *before, (best, kept)], [nowhere], first, keys.shape)
    return Array(shape, key, best), Array(shape, I32, place)


def _pick(lowering: Lowering, x: Array, where: Array) -> Array:
    """The elements at places along the last dimension."""
    source = lowering.tensor(x)
    rank = x.rank

    def loop(dim: int) -> Any:
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
        return code.emit("linalg.index", [], ir.IndexType.get(), dim=number)

    def body(loaded: list[Any]) -> list[Any]:
        last = code.constant(I32, x.shape[-1] - 1)
        safe = code.emit("arith.minui", [loaded[0], last])
        place = code.emit("arith.index_castui", [safe], ir.IndexType.get())
        at = [*(loop(d) for d in range(rank - 1)), place]
        return [code.emit("tensor.extract", [source, *at], x.element.type)]

    places = lowering.operand(where, range(rank))
    return lowering.generic(where.shape, [places], [x.element], body)[0]
