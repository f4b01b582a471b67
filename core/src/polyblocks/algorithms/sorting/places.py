"""Which elements come first in sorted rows: the choice among the ways to find them."""

from __future__ import annotations

from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.digits import padded_extent
from polyblocks.algorithms.sorting.network import sort_by_network
from polyblocks.algorithms.sorting.order import Order, create_sort
from polyblocks.algorithms.sorting.rows import Rows, concatenated, first
from polyblocks.algorithms.sorting.selection import plan, select
from polyblocks.algorithms.sorting.words import places_of, words_of

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
        bits = rows.order.bits
        if words is None:
            tensors = _keys_and_places(rows)
            ordered = sort_by_network(tensors) if launches else _sort(tensors, Order(bits))
            return first(ordered[1], wanted)
        # As they lie, equal keys are in the order of their places.
        place = words.type.element_type.width - bits
        (ordered,) = (
            sort_by_network([words]) if launches else _sort([words], Order(place + bits, place))
        )
        return places_of(ordered, wanted, place)

    rows = Rows(keys, dim, order)
    bits = 0 if launches else order.bits
    return select(rows, count, _sort_cost(launches), sorted_places, bits)


def way(extent: int, count: int, bits: int, launches: bool) -> dict[str, Any]:
    """How the first elements are found, for a report: ``how``, with the ``block`` if there is one.

    ``how`` is ``alone``, ``rank``, ``blocks``, ``cut``, ``digits`` or ``network``.
    """
    chosen = plan(extent, count, _sort_cost(launches), 0 if launches else bits)
    if chosen.kind == "sort":
        return {"how": "network" if launches else "digits"}
    return {"how": chosen.kind, **({"block": chosen.block} if chosen.block else {})}


def cycles_of(extent: int, count: int, bits: int, launches: bool) -> float:
    """Predicted cycles of a thread that finds the first elements of a row."""
    return plan(extent, count, _sort_cost(launches), 0 if launches else bits).cycles


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


def sorted_alone(rows: Rows, kind: Any, launches: bool) -> Any:
    """The numbers of sorted rows, where nothing else is sorted with them.

    Args:
        rows: keys that are the numbers, or are these in the total order of floating-point numbers.
        kind: the numbers' type.
        launches: whether the target runs every nest on a grid of threads.

    Returns:
        The numbers, in the dimensions of the keys.
    """
    plain = rows.plain()
    # A network tells the keys apart by themselves.
    (ordered,) = sort_by_network([plain.tensor]) if launches else _sort([plain.tensor], plain.order)
    ordered = first(ordered, rows.extent)
    if (kind, plain.tensor) == (rows.kind, rows.tensor):
        return ordered
    loops = list(range(len(rows.outer) + 1))
    (numbers,) = t.computed(
        list(rows.tensor.type.shape),
        [kind],
        [(ordered, [*loops[: rows.dim], *loops[rows.dim + 1 :], rows.dim])],
        lambda loaded: [rows.element(loaded[0], kind)],
    )
    return numbers


def sorts_alone(rows: Rows, launches: bool) -> bool:
    """Whether :func:`sorted_alone` applies and is the way to sort whole rows of keys."""
    if plan(rows.extent, rows.extent, _sort_cost(launches)).kind != "sort":
        return False
    return not launches or (rows.order.infinity == 0 and not rows.order.descending)


def _sort(tensors: list[Any], order: Order) -> list[Any]:
    """A sort that a later pass writes as loops, of rows that have room for whole parts.

    Elements that come last are behind those of the rows then.
    """
    *outer, extent = tensors[0].type.shape
    more = padded_extent(extent) - extent
    if more:
        kinds = [tensor.type.element_type for tensor in tensors]
        last = [t.greatest(kind) for kind in kinds]
        if order.descending:
            last[0] = -1 - (order.infinity or last[0])
        behind = [t.filled([*outer, more], *each) for each in zip(kinds, last, strict=True)]
        tensors = [concatenated(*pair) for pair in zip(tensors, behind, strict=True)]
    return create_sort(tensors, len(outer), order)
