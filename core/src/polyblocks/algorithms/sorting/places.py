"""Which elements come first in sorted rows: the choice among the ways to find them."""

from __future__ import annotations

from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.network import sort_by_network
from polyblocks.algorithms.sorting.order import Order
from polyblocks.algorithms.sorting.rows import Rows, first
from polyblocks.algorithms.sorting.selection import plan, select
from polyblocks.algorithms.sorting.words import places_of, words_of
from polyblocks.mlir import dialect, ir

#: The cost of sorting whole rows by a network on a grid of threads, relative to that of sorting
#: them by digits on a thread: a launch for each of its stages.
NETWORK_COST = 20.0


def first_places(keys: Any, dim: int, order: Order, count: int, launches: bool) -> Any:
    """Places of the first elements of sorted rows; equal ones keep their order.

    Args:
        keys: integers.
        dim: the dimension along which rows lie.
        order: of the keys.
        count: at least 1 and at most the elements of a row.
        launches: whether the target runs every nest on a grid of threads.

    Returns:
        int32 of the other dimensions and ``count``.
    """

    def sorted_places(rows: Rows, wanted: int) -> Any:
        words = words_of(rows)
        if words is None:
            tensors = _keys_and_places(rows)
            ordered = sort_by_network(tensors) if launches else _sort(tensors, 0)
            return first(ordered[1], wanted)
        # As they lie, equal keys are in the order of their places.
        half = words.type.element_type.width // 2
        (ordered,) = sort_by_network([words]) if launches else _sort([words], half)
        return places_of(ordered, wanted)

    return select(Rows(keys, dim, order), count, _sort_cost(launches), sorted_places)


def way(extent: int, count: int, launches: bool) -> dict[str, Any]:
    """How the first elements are found, for a report: ``how``, with the ``block`` if there is one.

    ``how`` is ``alone``, ``rank``, ``blocks``, ``digits`` or ``network``.
    """
    chosen = plan(extent, count, _sort_cost(launches))
    if chosen.kind == "sort":
        return {"how": "network" if launches else "digits"}
    return {"how": chosen.kind, **({"block": chosen.block} if chosen.block else {})}


def _sort_cost(launches: bool) -> float:
    return NETWORK_COST if launches else 1.0


def _keys_and_places(rows: Rows) -> list[Any]:
    last = len(rows.outer)
    shape = [*rows.outer, rows.extent]
    (keys,) = t.computed(
        shape, [rows.kind], [rows.operand(last)], lambda loaded: [rows.key(loaded[0])]
    )
    i32 = t.integer(32)
    (places,) = t.computed(shape, [i32], [], lambda _: [t.loop_index(last, i32)])
    return [keys, places]


def _sort(tensors: list[Any], shift: int) -> list[Any]:
    """A sort by the first tensor's bits from ``shift`` on, which a later pass writes as loops."""
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
