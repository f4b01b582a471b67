"""Elements of fragments as arrays."""

from __future__ import annotations

import functools

import numpy as np

from polyblocks.simt.types import Array
from polyblocks.target import Fragment


def from_bits(bits: Array, dtype: str) -> Array:
    """Numbers of 16 bits as float64."""
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.astype(np.uint16).view(np.float16).astype(np.float64)


@functools.cache
def fragment_table(fragment: Fragment, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Row and column of each place of each lane, shape (places, lanes)."""
    lanes = range(1 << len(fragment.lanes))
    table = np.array([[fragment.at(p, lane) for lane in lanes] for p in range(fragment.elements)])
    rows, columns = table[..., 0], table[..., 1]
    assert (rows.max() + 1, columns.max() + 1) == shape
    return rows, columns
