"""Which elements of a short row to put in order so that one of them comes to its place."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple


class Exchange(NamedTuple):
    """Two places of a row; the lesser element goes to the first one.

    Attributes:
        first, second: the places.
        lesser, greater: whether the element that comes there is needed.
    """

    first: int
    second: int
    lesser: bool
    greater: bool


@cache
def exchanges(count: int, place: int) -> tuple[Exchange, ...]:
    """Exchanges that bring the element of a rank to its place, for any elements.

    Of a network that sorts whole rows the part that the place depends on: for the median of 25
    elements 113 exchanges of 138, and of their 226 elements 202.

    Args:
        count: elements of a row.
        place: in the sorted row, from 0 on.
    """
    needed = {place}
    found = []
    for first, second in reversed(_sorting(count)):
        lesser, greater = first in needed, second in needed
        if lesser or greater:
            needed |= {first, second}
            found.append(Exchange(first, second, lesser, greater))
    return tuple(reversed(found))


def _sorting(count: int) -> list[tuple[int, int]]:
    """Pairs of places that are put in order, one after the other, so that all are.

    Batcher's merge exchange (Knuth, The Art of Computer Programming, volume 3, algorithm 5.2.2M).
    """
    pairs = []
    top = 1 << max(count - 1, 0).bit_length() >> 1
    step = top
    while step:
        distance, offset, other = step, 0, top
        while True:
            pairs += [(i, i + distance) for i in range(count - distance) if i & step == offset]
            if other == step:
                break
            distance, offset, other = other - step, step, other >> 1
        step >>= 1
    return pairs
