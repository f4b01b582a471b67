"""The first few elements of sorted rows, exactly and without control flow.

A row is cut into columns: column ``j`` has the elements ``j``, ``j + columns``, ``j + 2 * columns``
and so on, so that the least elements of all columns are found in vectors, in one sweep. The first
``k`` elements of the row are in the ``k`` columns with the least elements. These columns are
gathered, and both selections, of columns and among what was gathered, are again selections from
shorter rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.ranks import first_by_rank
from polyblocks.algorithms.sorting.words import Rows
from polyblocks.mlir import dialect, ir

#: Rows and count to the places of the first elements.
Sorted = Callable[[Rows, int], Any]


@dataclass(frozen=True)
class Costs:
    """Cycles of the parts of a selection on one thread, for words of 64 bits.

    Attributes:
        compare: one comparison of two words for a rank, or of a rank with a place.
        sweep: an element of the least elements of columns.
        gather: an element of a column that is gathered.
        nest: of starting the loops of one row.
        sort: an element of a row that is sorted as a whole.
        sort_row: a row that is sorted as a whole.
    """

    compare: float = 0.3
    sweep: float = 0.8
    gather: float = 3.0
    nest: float = 60.0
    sort: float = 14.0
    sort_row: float = 2500.0


COSTS = Costs()


@dataclass(frozen=True)
class Plan:
    """How the first ``count`` of ``extent`` elements are selected.

    Attributes:
        cycles: predicted cycles for a row.
        kind: ``rank``, ``sort`` or ``columns``.
        columns: columns of a row that is cut into such.
    """

    cycles: float
    kind: str
    columns: int = 0


@cache
def plan(extent: int, count: int, whole_row: float) -> Plan:
    """The cheapest way to select.

    Args:
        extent: elements of a row.
        count: how many are wanted.
        whole_row: the cost of sorting whole rows relative to that of :data:`COSTS`.
    """
    c = COSTS
    best = Plan(2 * c.nest + c.compare * extent * (extent + count), "rank")
    full = whole_row * (c.sort_row + c.sort * extent)
    if full < best.cycles:
        best = Plan(full, "sort")
    if count < extent:
        # Column counts that leave the fewest elements for the two selections, and around them.
        ideal = (extent * count) ** 0.5
        for factor in (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0):
            columns = _even(extent, round(ideal * factor))
            if not count < columns < extent:
                continue
            gathered = count * -(-extent // columns)
            if gathered >= extent:
                continue
            cycles = (
                2 * c.nest
                + c.sweep * extent
                + c.gather * (gathered + count)
                + plan(columns, count, whole_row).cycles
                + plan(gathered, count, whole_row).cycles
            )
            if cycles < best.cycles:
                best = Plan(cycles, "columns", columns)
    return best


def _even(extent: int, columns: int) -> int:
    """A number of columns near this one that divides the row, if there is one."""
    nearby = range(max(columns * 9 // 10, 1), columns * 11 // 10 + 1)
    dividing = [c for c in nearby if extent % c == 0]
    return min(dividing, key=lambda c: abs(c - columns)) if dividing else max(columns, 1)


def select(rows: Rows, count: int, whole_row: float, sorted_places: Sorted) -> Any:
    """Places of the first ``count`` elements of the sorted rows.

    Args:
        rows: keys that fit into words, or words.
        count: at least 1 and at most the elements of a row.
        whole_row: see :func:`plan`.
        sorted_places: selects by sorting whole rows.

    Returns:
        int32 of the outer dimensions and ``count``.
    """
    chosen = plan(rows.extent, count, whole_row)
    if chosen.kind == "rank":
        return first_by_rank(rows, count)
    if chosen.kind == "sort":
        return sorted_places(rows, count)
    columns = chosen.columns
    least = _least_of_columns(rows, columns)
    ours = select(least, count, whole_row, sorted_places)
    gathered = _gather(rows, ours, columns)
    theirs = select(gathered, count, whole_row, sorted_places)
    return _places(ours, theirs, columns)


def _least_of_columns(rows: Rows, columns: int) -> Rows:
    """The least word of each column."""
    tensor = dialect("tensor")
    steps, more = divmod(rows.extent, columns)
    shape = [*rows.outer, columns]
    if not more:
        return Rows(_sweep(rows, 0, columns, steps, columns), len(rows.outer), None, rows.word)
    # The first columns have an element more than the others.
    made = tensor.EmptyOp(shape, rows.word).result
    for begin, width, length in ((0, more, steps + 1), (more, columns - more, steps)):
        part = _sweep(rows, begin, width, length, columns)
        offsets = [0] * len(rows.outer) + [begin]
        sizes = list(part.type.shape)
        ones = [1] * len(shape)
        made = tensor.InsertSliceOp(part, made, [], [], [], offsets, sizes, ones).result
    return Rows(made, len(rows.outer), None, rows.word)


def _sweep(rows: Rows, begin: int, width: int, length: int, columns: int) -> Any:
    arith = dialect("arith")
    last = len(rows.outer)
    column, step = ir.AffineDimExpr.get(last), ir.AffineDimExpr.get(last + 1)
    place = step * columns + column + begin
    largest = (1 << (rows.word.width - 1)) - 1

    def body(loaded: list[Any], best: list[Any]) -> list[Any]:
        linalg = dialect("linalg")
        at = arith.MulIOp(
            linalg.IndexOp(last + 1).result, t.constant(ir.IndexType.get(), columns)
        ).result
        at = arith.AddIOp(at, linalg.IndexOp(last).result).result
        if begin:
            at = arith.AddIOp(at, t.constant(ir.IndexType.get(), begin)).result
        return [arith.MinSIOp(best[0], rows.to_word(loaded[0], at)).result]

    start = t.filled([*rows.outer, width], rows.word, largest)
    here = list(range(last + 1))
    (made,) = t.generic(
        [*rows.outer, width, length], 1, [rows.operand(place)], [(start, here)], body
    )
    return made


def _gather(rows: Rows, chosen: Any, columns: int) -> Rows:
    """The words of the chosen columns, all first elements before all second ones."""
    arith = dialect("arith")
    last = len(rows.outer)
    count = chosen.type.shape[-1]
    steps = -(-rows.extent // columns)
    i32 = t.integer(32)
    largest = (1 << (rows.word.width - 1)) - 1

    def body(loaded: list[Any]) -> list[Any]:
        step = t.loop_index(last, i32)
        at = arith.MulIOp(step, t.constant(i32, columns)).result
        at = arith.AddIOp(at, loaded[0]).result
        index = t.as_index(at, rows.extent)
        word = rows.to_word(rows.element(index), index)
        if rows.extent % columns:
            exists = t.compare("ult", at, t.constant(i32, rows.extent))
            word = t.select(exists, word, t.constant(rows.word, largest))
        return [word]

    (made,) = t.computed(
        [*rows.outer, steps, count],
        [rows.word],
        [(chosen, [*range(last), last + 1])],
        body,
    )
    groups = [[d] for d in range(last)] + [[last, last + 1]]
    i64 = t.integer(64)
    indices = ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in group]) for group in groups]
    )
    flat = ir.RankedTensorType.get([*rows.outer, steps * count], rows.word)
    collapsed = ir.Operation.create(
        "tensor.collapse_shape",
        results=[flat],
        operands=[made],
        attributes={"reassociation": indices},
    )
    return Rows(collapsed.results[0], last, None, rows.word)


def _places(chosen: Any, places: Any, columns: int) -> Any:
    """Places in the rows of places among what was gathered."""
    arith = dialect("arith")
    shape = list(places.type.shape)
    last = len(shape) - 1
    count = chosen.type.shape[-1]
    i32 = t.integer(32)

    def body(loaded: list[Any]) -> list[Any]:
        linalg = dialect("linalg")
        number = t.constant(i32, count)
        step = arith.DivUIOp(loaded[0], number).result
        which = arith.RemUIOp(loaded[0], number).result
        index = [linalg.IndexOp(loop).result for loop in range(last)]
        column = t.extract(chosen, [*index, t.as_index(which, count)])
        at = arith.MulIOp(step, t.constant(i32, columns)).result
        return [arith.AddIOp(at, column).result]

    (made,) = t.computed(shape, [i32], [(places, list(range(last + 1)))], body)
    return made
