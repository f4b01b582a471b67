"""Operations on shapes, and those that are given one, where it is static."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from polyblocks_tf.operations.checks import checked

#: The message of TensorFlow's kernel.
_NEGATIVE = "Input arr must be non-negative!"


def ensured(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``EnsureShape``: nothing is left to check where the shape is known and fits."""
    (tensor,) = inputs
    wanted = tf.TensorShape(op.get_attr("shape"))
    if not tensor.shape.is_fully_defined() or not wanted.is_compatible_with(tensor.shape):
        return None
    return [tensor]


def bincount(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``DenseBincount`` of [n] or [b, n] integers: [size] or [b, size] counts, or sums of weights.

    ``tf.math.bincount`` with the same ``minlength`` and ``maxlength`` has a known size. Larger
    elements are left out, negative ones an error.
    """
    values, _, weights = inputs
    size = known_number(op.inputs[1])
    shape = values.shape
    if size is None or not 0 < size < tf.int32.max or not shape.is_fully_defined():
        return None
    if shape.rank not in (1, 2) or not shape.num_elements():
        return None
    kind = weights.dtype
    rows = tf.reshape(values, (-1, shape[-1]))
    rows = checked(rows, rows >= 0, _NEGATIVE)
    counted = rows < tf.cast(size, rows.dtype)
    # One place behind the others for those that are left out.
    places = tf.cast(tf.where(counted, rows, tf.cast(size, rows.dtype)), tf.int32)
    count = rows.shape[0]
    first = tf.range(count)[:, tf.newaxis] * (size + 1)
    places = tf.reshape(places + first, (-1, 1))
    if op.get_attr("binary_output") or weights.shape.num_elements() == 0:
        added = tf.ones(places.shape[0], kind)
    else:
        added = tf.reshape(weights, (-1,))
    found = tf.tensor_scatter_nd_add(tf.zeros(count * (size + 1), kind), places, added)
    if op.get_attr("binary_output"):
        found = tf.cast(found > 0, kind)
    return [tf.reshape(tf.reshape(found, (count, size + 1))[:, :size], (*shape[:-1], size))]


def known_number(tensor: tf.Tensor) -> int | None:
    """A number that is a constant, or is held between two that are equal; None for any other."""
    known = tf.get_static_value(tensor)
    if known is not None:
        return int(known)
    if tensor.op.type != "Minimum":
        return None
    for limit, other in (tensor.op.inputs, reversed(tensor.op.inputs)):
        most = tf.get_static_value(limit)
        if most is None or other.op.type != "Maximum":
            continue
        least = [tf.get_static_value(x) for x in other.op.inputs]
        if any(x is not None and x >= most for x in least):
            return int(most)
    return None
