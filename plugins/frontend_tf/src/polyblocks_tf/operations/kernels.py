"""Operations that XLA's bridge translates otherwise than TensorFlow's own kernels compute them.

They differ where nothing flows into a gradient, at NaN, at shifts by more bits than there are, and
where a sum needs more bits than its terms. Each function here is one of
:data:`polyblocks_tf.operations.substitutions.SUBSTITUTIONS`. It adds a comparison and a
selection for each element, which go into the loop of the operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from polyblocks_tf.operations import checks
from polyblocks_tf.tracing.graph import only_if, repeat

Tensors = Sequence[tf.Tensor] | None


#: Integers that the bridge does not add up -> those that have the same lower bits.
_ADDED_AS = {
    **dict.fromkeys((tf.int8, tf.uint8, tf.int16, tf.uint16, tf.uint32), tf.int32),
    tf.uint64: tf.int64,
}


def inverse_grad(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``InvGrad``: the bridge knows one of two names of the same."""
    del op
    output, gradient = inputs
    # Where no gradient comes in, none goes out, be a factor infinite.
    return [_where(gradient == 0, 0, tf.raw_ops.ReciprocalGrad(y=output, dy=gradient))]


def _are_ordered(op: Any) -> bool:
    """Whether bounds are constants, the lower one no greater than the upper one."""
    low, high = (tf.get_static_value(tensor) for tensor in op.inputs[1:])
    return low is not None and high is not None and bool(np.all(low <= high))


@only_if(lambda op: not _are_ordered(op))
def clip(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``ClipByValue``: bounds that are NaN are none; of a wrong order the lower one counts."""
    del op
    values, low, high = inputs
    if values.dtype.is_floating:
        low = _where(tf.math.is_nan(low), -math.inf, low)
        high = _where(tf.math.is_nan(high), math.inf, high)
    high = tf.where(high < low, low, high)
    return [tf.raw_ops.ClipByValue(t=values, clip_value_min=low, clip_value_max=high)]


@only_if(lambda op: op.inputs[0].dtype.is_complex and op.outputs[0].dtype == tf.bool)
def cast(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``Cast`` of complex numbers to booleans asks for the real part alone."""
    del op
    return [tf.cast(tf.math.real(inputs[0]), tf.bool)]


@only_if(lambda op: op.inputs[0].dtype.is_integer)
def mean(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``Mean`` of integers: the sum has 64 bits."""
    values, axes = inputs
    dtype, known = values.dtype, tf.get_static_value(axes)
    if not dtype.is_integer or dtype.size >= 8 or known is None or not values.shape.rank:
        return None
    axis = {int(a) % values.shape.rank for a in np.ravel(known)}
    count = math.prod(values.shape[a] for a in axis)
    if count <= 2**31 // 2 ** (8 * dtype.size):
        return None  # the bridge's sum has 32 bits, which are enough
    wide = tf.uint64 if dtype.is_unsigned else tf.int64
    total = tf.raw_ops.Sum(
        input=tf.cast(values, wide), axis=axes, keep_dims=op.get_attr("keep_dims")
    )
    return [tf.cast(tf.truncatediv(total, tf.constant(count, wide)), dtype)]


def euclidean_norm(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``EuclideanNorm`` (``tf.math.reduce_euclidean_norm``), which the bridge does not know."""
    values, axes = inputs
    if values.dtype not in (tf.float32, tf.float64):
        return None
    kept = op.get_attr("keep_dims")
    return [tf.sqrt(tf.reduce_sum(tf.square(values), axes, keepdims=kept))]


def arg_extremum(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``ArgMax`` and ``ArgMin`` begin with the least finite number, and NaN is never beyond.

    The first place of the extremum is a second reduction: a reduction of pairs, as the bridge has
    it, waits for two comparisons at every element.
    """
    values, axis = inputs
    largest = op.type == "ArgMax"
    if values.dtype.is_floating:
        values = _above_least(values) if largest else _below_greatest(values)
    elif not values.dtype.is_integer:
        return None
    dtype, dimension = op.get_attr("output_type"), tf.get_static_value(axis)
    count = 0 if dimension is None else values.shape[int(dimension)]
    if not count or count > tf.int32.max:
        return [getattr(tf.raw_ops, op.type)(input=values, dimension=axis, output_type=dtype)]
    extremum = (tf.reduce_max if largest else tf.reduce_min)(values, dimension, keepdims=True)
    behind = values.shape.rank - 1 - int(dimension) % values.shape.rank
    places = tf.reshape(tf.range(count), [count] + [1] * behind)
    first = tf.reduce_min(tf.where(values == extremum, places, count), dimension)
    return [tf.cast(first, dtype)]


def scatter_extremum(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``TensorScatterMin`` and ``TensorScatterMax``: updates that are NaN change nothing."""
    array, indices, updates = inputs
    if updates.dtype.is_floating:
        neutral = math.inf if op.type == "TensorScatterMin" else -math.inf
        updates = _where(tf.math.is_nan(updates), neutral, updates)
    checked = checks.within(indices, array.shape)
    return repeat(op, [array, indices if checked is None else checked, updates])


@only_if(lambda op: op.inputs[0].dtype in _ADDED_AS)
def cumulative(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``Cumsum`` and ``Cumprod`` of integers: the bridge knows those of 32 and 64 bits with a sign,
    whose sums and products have the same lower bits.
    """
    values, axis = inputs
    raw = getattr(tf.raw_ops, op.type)
    flags = {name: op.get_attr(name) for name in ("exclusive", "reverse")}
    wide = tf.cast(values, _ADDED_AS[values.dtype])
    return [tf.cast(raw(x=wide, axis=axis, **flags), values.dtype)]


def cumulative_logsumexp(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``CumulativeLogsumexp``: a NaN doubles the sum so far.

    With n NaNs up to an element the sum up to it is 2^n times that of exp(x) / 2^m over the
    elements before it, where m counts the NaNs up to each.
    """
    values, axis = inputs
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    dtype = values.dtype
    wide = dtype if dtype.size >= 4 else tf.float32
    odd = tf.math.is_nan(values)
    ones = tf.cast(odd, wide) * tf.constant(math.log(2), wide)
    before = tf.math.cumsum(ones, axis, exclusive=False, reverse=reverse)
    terms = tf.where(odd, tf.constant(-math.inf, wide), tf.cast(values, wide) - before)
    sums = tf.raw_ops.CumulativeLogsumexp(x=terms, axis=axis, exclusive=exclusive, reverse=reverse)
    doubled = before - ones if exclusive else before
    return [tf.cast(sums + doubled, dtype)]


@only_if(lambda op: op.inputs[4].shape.num_elements() == 0)
def strided_slice_grad(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``StridedSliceGrad`` of a slice without elements is zero; the bridge gets its shape wrong."""
    del op
    known = tf.get_static_value(inputs[0])
    if known is None or inputs[4].shape.num_elements() != 0:
        return None
    return [tf.zeros(known, inputs[4].dtype)]


def bucketize(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``Bucketize``: NaN is behind all boundaries, as it is below none."""
    (values,) = inputs
    boundaries = [float(b) for b in op.get_attr("boundaries")]
    if not boundaries or not values.dtype.is_floating or boundaries != sorted(boundaries):
        return None
    limits = tf.constant(boundaries, tf.float32)
    below = tf.cast(values, tf.float32)[..., None] < limits
    return [len(boundaries) - tf.reduce_sum(tf.cast(below, tf.int32), -1)]


def shift(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``LeftShift`` and ``RightShift``: counts below 0 are 0, too large ones all bits but one."""
    values, counts = inputs
    most = 8 * values.dtype.size - 1
    known = tf.get_static_value(counts)
    if known is not None and known.size and known.min() >= 0 and known.max() <= most:
        return None
    raw = getattr(tf.raw_ops, op.type)
    return [raw(x=values, y=tf.clip_by_value(counts, 0, most))]


def _above_least(values: tf.Tensor) -> tf.Tensor:
    """Of NaN and minus infinity the least finite number."""
    least = tf.constant(values.dtype.min, values.dtype)
    return tf.where(values > least, values, least)


def _below_greatest(values: tf.Tensor) -> tf.Tensor:
    greatest = tf.constant(values.dtype.max, values.dtype)
    return tf.where(values < greatest, values, greatest)


def _where(condition: tf.Tensor, number: float, values: tf.Tensor) -> tf.Tensor:
    return tf.where(condition, tf.constant(number, values.dtype), values)


Substitute = Callable[[Any, list[tf.Tensor]], Tensors]

SUBSTITUTIONS: dict[str, Substitute] = {
    "Cast": cast,
    "ClipByValue": clip,
    "InvGrad": inverse_grad,
    "Mean": mean,
    "EuclideanNorm": euclidean_norm,
    **dict.fromkeys(("ArgMax", "ArgMin"), arg_extremum),
    **dict.fromkeys(("TensorScatterMin", "TensorScatterMax"), scatter_extremum),
    **dict.fromkeys(("Cumsum", "Cumprod"), cumulative),
    "CumulativeLogsumexp": cumulative_logsumexp,
    "StridedSliceGrad": strided_slice_grad,
    "Bucketize": bucketize,
    **dict.fromkeys(("LeftShift", "RightShift"), shift),
}
