"""Ragged tensors as dense ones: gathers whose places the row splits tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf


def ragged_to_tensor(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``RaggedTensorToTensor`` of a static result shape, for any number of ragged dimensions.

    A size that the shape leaves open is that of the longest row, which has to be static then.
    """
    shape = tf.get_static_value(inputs[0])
    values, default, *partitions = inputs[1:]
    kinds = [kind.decode() for kind in op.get_attr("row_partition_types")]
    splits = _splits(kinds, partitions)
    if shape is None or splits is None or not values.shape.is_fully_defined():
        return None
    inner = values.shape[1:].as_list()
    wanted = [-1] * (1 + len(splits) + len(inner)) if np.ndim(shape) == 0 else shape.tolist()
    if any(n not in (-1, m) for n, m in zip(wanted[1 + len(splits) :], inner, strict=True)):
        return None
    rows = splits[0].shape[0] - 1
    place = tf.range(wanted[0] if wanted[0] >= 0 else rows, dtype=tf.int64)
    inside = place < rows
    for split, size in zip(splits, wanted[1:], strict=False):
        longest = _longest(split) if size < 0 else size
        if longest is None:
            return None
        row = tf.where(inside, place, 0)
        # Without rows there is nothing to read, nor anything inside.
        table = split if split.shape[0] > 1 else tf.zeros([2], tf.int64)
        begin, end = tf.gather(table, row), tf.gather(table, row + 1)
        column = tf.range(longest, dtype=tf.int64)
        place = begin[..., None] + column
        inside = inside[..., None] & (column < (end - begin)[..., None])
    result_shape = [*place.shape, *inner]
    fill = tf.broadcast_to(default, result_shape)
    if not values.shape[0]:
        return [fill]
    found = tf.gather(values, tf.where(inside, place, 0))
    for _ in inner:
        inside = inside[..., None]
    return [tf.where(inside, found, fill)]


def _splits(kinds: Sequence[str], partitions: Sequence[tf.Tensor]) -> list[tf.Tensor] | None:
    """The row splits of each ragged dimension, of dtype int64."""
    if all(kind == "ROW_SPLITS" for kind in kinds):
        return [tf.cast(split, tf.int64) for split in partitions]
    if kinds[0] != "FIRST_DIM_SIZE" or any(kind != "VALUE_ROWIDS" for kind in kinds[1:]):
        return None
    known = [tf.get_static_value(tensor) for tensor in partitions]
    if any(value is None for value in known):
        return None
    count, found = int(known[0]), []
    for rows in known[1:]:
        splits = np.searchsorted(rows, np.arange(count + 1))
        found.append(tf.constant(splits, tf.int64))
        count = len(rows)
    return found


def _longest(split: tf.Tensor) -> int | None:
    known = tf.get_static_value(split)
    if known is not None:
        return int(np.diff(known).max(initial=0))
    return 0 if split.shape[0] == 1 else None
