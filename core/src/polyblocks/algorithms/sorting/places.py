"""Which elements come first in sorted rows: the choice among the ways to find them."""

from __future__ import annotations

from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.network import sort_by_network
from polyblocks.algorithms.sorting.order import Order
from polyblocks.algorithms.sorting.ranks import first_by_key_rank
from polyblocks.algorithms.sorting.selection import select
from polyblocks.algorithms.sorting.words import Rows, ascending, first, places_of, word_bits
from polyblocks.mlir import dialect, ir

#: Rows up to here are sorted by rank.
SHORT = 64
#: The cost of sorting whole rows by a network on a grid of threads, relative to that of sorting
#: them by digits on a thread: a launch for each of its stages.
NETWORK_COST = 20.0


def first_places(keys: Any, dim: int, order: Order, count: int, launches: bool) -> Any:
    """Places of the first ``count`` elements of sorted rows; equal ones keep their order.

    Args:
        keys: integers.
        dim: the dimension along which rows lie.
        order: of the keys.
        count: at least 1 and at most the elements of a row.
        launches: whether the target runs every nest on a grid of threads.

    Returns:
        int32 of the other dimensions and ``count``.
    """
    extent = int(keys.type.shape[dim])
    i32 = t.integer(32)
    if extent <= SHORT:
        return first_by_key_rank(Rows(keys, dim, order, None), order, count)
    bits = word_bits(order, extent)
    if bits is None:
        rows = Rows(keys, dim, order, None)
        tensors = _keys_and_places(rows, order)
        sort = sort_by_network if launches else _sort_pairs
        return first(sort(tensors)[1], count)

    def sorted_places(rows: Rows, wanted: int) -> Any:
        words = rows.words().tensor
        if rows.order is not None:
            ordered = sort_by_network([words]) if launches else _sort_words(words)
            return places_of(ordered[0], wanted, i32)
        # The places in words are those of the row that these are a selection from.
        tensors = [words, _places_along(list(words.type.shape))]
        ordered = sort_by_network(tensors) if launches else _sort_pairs(tensors)
        return first(ordered[1], wanted)

    rows = Rows(keys, dim, order, t.integer(bits))
    return select(rows, count, NETWORK_COST if launches else 1.0, sorted_places)


def _keys_and_places(rows: Rows, order: Order) -> list[Any]:
    last = len(rows.outer)
    shape = [*rows.outer, rows.extent]
    kind = rows.tensor.type.element_type
    (keys,) = t.computed(
        shape, [kind], [rows.operand(last)], lambda loaded: [ascending(loaded[0], order)]
    )
    return [keys, _places_along(shape)]


def _places_along(shape: list[int]) -> Any:
    i32 = t.integer(32)
    (places,) = t.computed(shape, [i32], [], lambda _: [t.loop_index(len(shape) - 1, i32)])
    return places


def _sort_words(words: Any) -> list[Any]:
    """Sort words by their keys: as they lie, equal keys are in the order of their places."""
    width = words.type.element_type.width
    return _sort([words], width // 2)


def _sort_pairs(tensors: list[Any]) -> list[Any]:
    return _sort(tensors, 0)


def _sort(tensors: list[Any], shift: int) -> list[Any]:
    kinds = [each.type for each in tensors]
    op = ir.Operation.create(
        "tm_tensor.sort",
        results=kinds,
        operands=tensors,
        attributes={
            "dimension": ir.IntegerAttr.get(t.integer(64), len(kinds[0].shape) - 1),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(tensors)]),
        },
        regions=1,
    )
    types = [kind.element_type for kind in kinds for _ in range(2)]
    where = ir.Location.current
    block = ir.Block.create_at_start(op.regions[0], types, arg_locs=[where] * len(types))
    with ir.InsertionPoint(block):
        pair = list(block.arguments)[:2]
        if shift:
            amount = t.constant(types[0], shift)
            pair = [dialect("arith").ShRSIOp(each, amount).result for each in pair]
        ir.Operation.create("tm_tensor.yield", operands=[t.compare("slt", *pair)])
    return list(op.results)
