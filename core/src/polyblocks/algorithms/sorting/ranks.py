"""Sorting short rows by rank: an element's place is the number of elements before it.

All comparisons of a row are independent, so they are one vectorized nest without scratch memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.order import Order
from polyblocks.algorithms.sorting.words import Rows, ascending
from polyblocks.mlir import dialect


def first_by_rank(rows: Rows, count: int) -> Any:
    """Places of the first ``count`` elements of the sorted rows of distinct words.

    Returns:
        int32 of the outer dimensions and ``count``.
    """

    def precedes(loaded: list[Any], mine: int, other: int) -> Any:
        linalg = dialect("linalg")
        words = [
            rows.to_word(value, linalg.IndexOp(loop).result)
            for value, loop in zip(loaded, (mine, other), strict=True)
        ]
        return t.compare("slt", words[1], words[0])

    return _first(rows, count, precedes)


def first_by_key_rank(rows: Rows, order: Order, count: int) -> Any:
    """The same for rows of keys, in their order, equal ones in that of their places."""

    def precedes(loaded: list[Any], mine: int, other: int) -> Any:
        arith, linalg = dialect("arith"), dialect("linalg")
        own, theirs = (ascending(value, order) for value in loaded)
        before = t.compare("slt", theirs, own)
        equal = t.compare("eq", theirs, own)
        earlier = t.compare("ult", linalg.IndexOp(other).result, linalg.IndexOp(mine).result)
        return arith.OrIOp(before, arith.AndIOp(equal, earlier).result).result

    return _first(rows, count, precedes)


def _first(rows: Rows, count: int, precedes: Callable[[list[Any], int, int], Any]) -> Any:
    arith = dialect("arith")
    outer, extent = rows.outer, rows.extent
    last = len(outer)
    i32 = t.integer(32)
    here = list(range(last + 1))

    def rank(loaded: list[Any], sums: list[Any]) -> list[Any]:
        one = arith.ExtUIOp(i32, precedes(loaded, last, last + 1)).result
        return [arith.AddIOp(sums[0], one).result]

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
