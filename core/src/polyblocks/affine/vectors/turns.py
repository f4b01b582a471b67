"""Lanes that take turns in memory, put in order and back by shuffles of two vectors each.

A stride that is a product is taken apart factor by factor: nine vectors of every ninth element
take 36 shuffles in two rounds of threes, and 72 one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks.affine.vectors.vector_ops import shuffle


def deinterleave(vectors: Sequence[Any], width: int) -> list[Any]:
    """Deinterleave n consecutive vectors with stride n.

    Args:
        vectors: as many as the stride is long, of ``width`` lanes each.
        width: lanes.

    Returns:
        as many vectors; the first one starts with the first element, the next one with the next.
    """
    step = len(vectors)
    if step == 1:
        return list(vectors)
    factor = _smallest_factor(step)
    rest = step // factor
    result: list[Any] = [None] * step
    for first in range(factor):
        lanes = [first + factor * lane for lane in range(width)]
        runs = [vectors[run * factor : (run + 1) * factor] for run in range(rest)]
        parts = [gathered(run, lanes, width) for run in runs]
        result[first::factor] = deinterleave(parts, width)
    return result


def interleave(vectors: Sequence[Any], width: int) -> list[Any]:
    """The inverse of :func:`deinterleave`."""
    step = len(vectors)
    if step == 1:
        return list(vectors)
    factor = _smallest_factor(step)
    parts = [interleave(vectors[first::factor], width) for first in range(factor)]
    result = []
    for run in zip(*parts, strict=True):
        for number in range(factor):
            places = range(number * width, (number + 1) * width)
            lanes = [p % factor * width + p // factor for p in places]
            result.append(gathered(run, lanes, width))
    return result


def gathered(vectors: Sequence[Any], lanes: Sequence[int], width: int) -> Any:
    """These lanes of several vectors, counted from the first one's on."""
    result = vectors[0]
    # Where the lanes of the result so far are: in the first vector, before the first shuffle.
    at = [lane % width for lane in lanes]
    for k, vector in enumerate(vectors[1:], 1):
        mine = [lane // width == k for lane in lanes]
        picked = [
            width + lane % width if m else at[i]
            for i, (lane, m) in enumerate(zip(lanes, mine, strict=True))
        ]
        result = shuffle(result, vector, picked)
        at = list(range(width))
    return result


def _smallest_factor(number: int) -> int:
    return next(k for k in range(2, number + 1) if number % k == 0)
