"""Searches in sorted rows by bisection; XLA's bridge compares every value with every element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

Tensors = Sequence[tf.Tensor] | None


def bound(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``LowerBound`` and ``UpperBound``: the places of values [B, m] in ascending rows [B, n].

    Comparisons with NaN are false, as in the search of TensorFlow's kernel.
    """
    rows, values = inputs
    batch, extent = rows.shape
    if not extent or extent > tf.int32.max // 2:
        return None
    low = tf.zeros(values.shape, tf.int32)
    step = 1 << (extent.bit_length() - 1)
    while step:
        probe = low + step
        inside = probe <= extent
        at = tf.where(inside, probe, 1) - 1
        # One row needs no number of a row in the index.
        element = (
            tf.gather(rows[0], at) if batch == 1 else tf.gather(rows, at, axis=1, batch_dims=1)
        )
        before = element < values if op.type == "LowerBound" else ~(values < element)
        low = tf.where(inside & before, probe, low)
        step >>= 1
    return [tf.cast(low, op.get_attr("out_type"))]
