"""Sorting short rows by rank: an element's place is the number of elements before it.

All comparisons of a row are independent, so they are one vectorized nest without scratch memory.
"""

from __future__ import annotations

from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.rows import Rows
from polyblocks.mlir import dialect


def first_by_rank(rows: Rows, count: int) -> Any:
    """Places of the first elements of sorted rows.

    Returns:
        int32 of the outer dimensions and ``count``.
    """
    arith = dialect("arith")
    outer, extent = rows.outer, rows.extent
    last = len(outer)
    i32 = t.integer(32)
    here = list(range(last + 1))

    def rank(loaded: list[Any], sums: list[Any]) -> list[Any]:
        mine, other = (rows.key(element) for element in loaded)
        before = t.compare("slt", other, mine)
        equal = t.compare("eq", other, mine)
        earlier = t.compare("ult", t.loop_index(last + 1, i32), t.loop_index(last, i32))
        before = arith.OrIOp(before, arith.AndIOp(equal, earlier).result).result
        return [arith.AddIOp(sums[0], arith.ExtUIOp(i32, before).result).result]

    (ranks,) = t.generic(
        [*outer, extent, extent],
        1,
        [rows.operand(last), rows.operand(last + 1)],
        [(t.filled([*outer, extent], i32, 0), here)],
        rank,
    )

    def place(loaded: list[Any], sums: list[Any]) -> list[Any]:
        hit = t.compare("eq", loaded[0], t.loop_index(last, i32))
        chosen = t.select(hit, t.loop_index(last + 1, i32), t.constant(i32, 0))
        return [arith.AddIOp(sums[0], chosen).result]

    # The inverse permutation, without a scatter: one element has each rank.
    (places,) = t.generic(
        [*outer, count, extent],
        1,
        [(ranks, [*range(last), last + 1])],
        [(t.filled([*outer, count], i32, 0), here)],
        place,
    )
    return places


def first_alone(rows: Rows) -> Any:
    """Places of the first element of each row.

    Returns:
        int32 of the outer dimensions and 1.
    """
    arith = dialect("arith")
    outer, last = rows.outer, len(rows.outer)
    i32, shape = t.integer(32), [*outer, 1]
    extents, here = [*outer, 1, rows.extent], list(range(last + 1))

    def minimum(loaded: list[Any], best: list[Any]) -> list[Any]:
        return [arith.MinSIOp(best[0], rows.key(loaded[0])).result]

    (keys,) = t.generic(
        extents,
        1,
        [rows.operand(last + 1)],
        [(t.filled(shape, rows.kind, t.greatest(rows.kind)), here)],
        minimum,
    )

    def place(loaded: list[Any], best: list[Any]) -> list[Any]:
        hit = t.compare("eq", rows.key(loaded[0]), loaded[1])
        at = t.select(hit, t.loop_index(last + 1, i32), t.constant(i32, t.greatest(i32)))
        return [arith.MinSIOp(best[0], at).result]

    (places,) = t.generic(
        extents,
        1,
        [rows.operand(last + 1), (keys, here)],
        [(t.filled(shape, i32, t.greatest(i32)), here)],
        place,
    )
    return places
