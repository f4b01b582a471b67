"""Elements of fragments as arrays."""

from __future__ import annotations

import functools

import numpy as np

from polyblocks.simt.types import Array
from polyblocks.target import UNIT_BITS, Fragment


def from_words(words: Array, dtype: str) -> Array:
    """Numbers of 8 or 16 bits in words of 32, the lowest one first, as float64.

    Args:
        words: shape ``(words, lanes)``.
        dtype: of the numbers.

    Returns:
        shape ``(numbers, lanes)``.
    """
    bits = UNIT_BITS[dtype]
    parts = [words >> shift & (1 << bits) - 1 for shift in range(0, 32, bits)]
    numbers = np.stack(parts, axis=1).reshape(-1, words.shape[-1])
    if dtype == "int8":
        return numbers.astype(np.uint8).view(np.int8).astype(np.float64)
    if dtype == "bfloat16":
        return (numbers.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return numbers.astype(np.uint16).view(np.float16).astype(np.float64)


@functools.cache
def fragment_table(fragment: Fragment, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Row and column of each place of each lane, shape (places, lanes)."""
    lanes = range(1 << len(fragment.lanes))
    table = np.array([[fragment.at(p, lane) for lane in lanes] for p in range(fragment.elements)])
    rows, columns = table[..., 0], table[..., 1]
    assert (rows.max() + 1, columns.max() + 1) == shape
    return rows, columns
