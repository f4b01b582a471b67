"""The first few elements of sorted rows, exactly and without control flow.

A row is cut into blocks. A sweep finds the least key of every block. The first ``k`` elements of a
row are in the ``k`` blocks whose least keys come first, where of equal ones the earlier block does:
before an element of any other block come ``k`` elements, the least ones of these blocks. The blocks
are gathered in the order in which they lie, so that equal keys keep their order. Both selections,
of blocks and from what was gathered, are again selections from shorter rows. Elements behind the
last whole block are among what is gathered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.bisection import cut_cycles, first_unordered
from polyblocks.algorithms.sorting.ranks import first_alone, first_by_rank
from polyblocks.algorithms.sorting.rows import (
    Rows,
    ascending,
    concatenated,
    first,
    joined,
    split,
)
from polyblocks.mlir import dialect, ir

#: From rows and a count to the places of the first elements.
Sorted = Callable[[Rows, int], Any]

#: Cycles of a thread with vectors of 16 elements: of comparing two elements for a rank; of an
#: element in a sweep, and of each result of the sweep; of an element that is gathered, and of its
#: block; of starting the loops of a row.
COMPARE, SWEEP, RESULT, GATHER, BLOCK, START = 0.3, 0.5, 20.0, 0.6, 40.0, 60.0
LANES = 16
#: The same of sorting a whole row by digits: of an element, and of the row.
SORT, SORT_ROW = 12.0, 2500.0
#: The cost of sorting keys of 64 bits, beside their places, relative to that of words.
WIDE = 3.0
#: Elements of the longest rows that are cut, by one thread each; several may sort longer ones.
CUT = 1 << 16


@dataclass(frozen=True)
class Plan:
    """How the first elements are selected.

    Attributes:
        cycles: predicted cycles for a row.
        kind: ``alone``, ``rank``, ``sort``, ``blocks`` or ``cut``.
        block: elements of a block.
    """

    cycles: float
    kind: str
    block: int = 0


@cache
def plan(extent: int, count: int, sort_cost: float, bits: int = 0) -> Plan:
    """The cheapest way to select.

    Args:
        extent: elements of a row.
        count: how many are wanted.
        sort_cost: of sorting whole rows, relative to sorting them by digits.
        bits: of a key, where the first elements may be searched for and then sorted; else 0.
    """
    ways = [
        Plan(2 * START + COMPARE * extent * (extent + count), "rank"),
        Plan(sort_cost * (SORT_ROW + SORT * extent), "sort"),
    ]
    if count == 1:
        ways.append(Plan(2 * START + 2 * RESULT + 2 * SWEEP * extent, "alone"))
    if bits > 32:
        ways[1] = Plan(WIDE * ways[1].cycles, "sort")
    if bits and 2 * count < extent <= CUT:
        cycles = plan(count, count, sort_cost, bits).cycles + GATHER * count
        ways.append(Plan(cycles + cut_cycles(extent, bits), "cut"))
    for block in (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256):
        blocks, rest = divmod(extent, block)
        gathered = count * block + rest
        if blocks <= count or 2 * gathered > extent:
            continue
        # Of a few elements the least one takes no steps across a vector.
        cycles = 3 * START + SWEEP * extent + (RESULT if block >= LANES else 2) * blocks
        cycles += COMPARE * count**2 + BLOCK * count + GATHER * gathered
        if cycles < min(way.cycles for way in ways):
            inner = plan(blocks, count, sort_cost), plan(gathered, count, sort_cost)
            ways.append(Plan(cycles + sum(p.cycles for p in inner), "blocks", block))
    return min(ways, key=lambda way: way.cycles)


def select(rows: Rows, count: int, sort_cost: float, sorted_places: Sorted, bits: int = 0) -> Any:
    """Places of the first elements of sorted rows.

    Args:
        rows: the keys.
        count: at least 1 and at most the elements of a row.
        sort_cost, bits: see :func:`plan`.
        sorted_places: selects by sorting whole rows.

    Returns:
        int32 of the outer dimensions and ``count``.
    """
    chosen = plan(rows.extent, count, sort_cost, bits)
    if chosen.kind == "rank":
        return first_by_rank(rows, count)
    if chosen.kind == "alone":
        return first_alone(rows)
    if chosen.kind == "sort":
        return sorted_places(rows, count)
    if chosen.kind == "cut":
        keys = rows.ordered()
        ours = first(first_unordered(keys, count), count)
        kept = ascending(_at(keys, ours))
        return _at(ours, select(kept, count, sort_cost, sorted_places))
    block = chosen.block
    blocks = rows.extent // block
    ours = select(_block_minima(rows, blocks, block), count, sort_cost, sorted_places)
    if count > 1:
        ours = _at(ours, first_by_rank(ascending(ours), count))
    gathered = _gather(rows, ours, blocks, block)
    theirs = select(gathered, count, sort_cost, sorted_places)
    return _places(ours, theirs, blocks, block)


def _block_minima(rows: Rows, blocks: int, block: int) -> Rows:
    """The least key of each block."""
    last = len(rows.outer)
    shape = [*rows.outer, blocks]
    place = ir.AffineDimExpr.get(last) * block + ir.AffineDimExpr.get(last + 1)

    def body(loaded: list[Any], best: list[Any]) -> list[Any]:
        return [dialect("arith").MinSIOp(best[0], rows.key(loaded[0])).result]

    start = t.filled(shape, rows.kind, t.greatest(rows.kind))
    (keys,) = t.generic(
        [*shape, block], 1, [rows.operand(place)], [(start, list(range(last + 1)))], body
    )
    return ascending(keys)


def _gather(rows: Rows, chosen: Any, blocks: int, block: int) -> Rows:
    """The keys of the chosen blocks, and those behind the last block."""
    last, count = len(rows.outer), int(chosen.type.shape[-1])
    cut = split(rows.part(0, blocks * block).tensor, rows.dim, block)

    def body(loaded: list[Any]) -> list[Any]:
        loops = [dialect("linalg").IndexOp(loop).result for loop in range(last + 2)]
        index = [t.as_index(loaded[0], blocks), loops[-1]]
        index = [*loops[: rows.dim], *index, *loops[rows.dim : last]]
        return [rows.key(t.extract(cut, index))]

    (keys,) = t.computed(
        [*rows.outer, count, block], [rows.kind], [(chosen, list(range(last + 1)))], body
    )
    keys = joined(keys)
    rest = rows.extent - blocks * block
    if not rest:
        return ascending(keys)
    (behind,) = t.computed(
        [*rows.outer, rest],
        [rows.kind],
        [rows.part(blocks * block, rest).operand(last)],
        lambda loaded: [rows.key(loaded[0])],
    )
    return ascending(concatenated(keys, behind))


def _at(numbers: Any, places: Any) -> Any:
    """The numbers at places along the last dimension."""
    shape, extent = list(places.type.shape), int(numbers.type.shape[-1])
    last = len(shape) - 1

    def body(loaded: list[Any]) -> list[Any]:
        index = [dialect("linalg").IndexOp(loop).result for loop in range(last)]
        return [t.extract(numbers, [*index, t.as_index(loaded[0], extent)])]

    operands = [(places, list(range(last + 1)))]
    (made,) = t.computed(shape, [numbers.type.element_type], operands, body)
    return made


def _places(chosen: Any, places: Any, blocks: int, block: int) -> Any:
    """Places in the rows, of places among what was gathered."""
    shape, count = list(places.type.shape), int(chosen.type.shape[-1])
    last = len(shape) - 1
    i32 = t.integer(32)

    def body(loaded: list[Any]) -> list[Any]:
        arith = dialect("arith")
        (place,) = loaded
        size = t.constant(i32, block)
        which, step = arith.DivUIOp(place, size).result, arith.RemUIOp(place, size).result
        index = [dialect("linalg").IndexOp(loop).result for loop in range(last)]
        number = t.extract(chosen, [*index, t.as_index(which, count)])
        inside = arith.AddIOp(arith.MulIOp(number, size).result, step).result
        # Behind the gathered blocks lies what was behind the last block.
        behind = arith.AddIOp(place, t.constant(i32, (blocks - count) * block)).result
        gathered = t.compare("ult", place, t.constant(i32, count * block))
        return [t.select(gathered, inside, behind)]

    (made,) = t.computed(shape, [i32], [(places, list(range(last + 1)))], body)
    return made
