"""Stateless random numbers with the bits of TensorFlow's own kernels.

The generator is Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC'11).
How seeds, counters and numbers of other types are made of it follows ``core/lib/random`` and
``core/kernels/stateless_random_ops.cc`` of TensorFlow's sources. Its bridge to XLA makes other
numbers of the same seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from polyblocks_tf.operations.checks import checked

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
#: The key under which seeds are scrambled.
_SEED_KEY = (0x3EC8F720, 0x02461E29)
_ROUNDS = 10

#: ``tf.random.Algorithm`` (1: Philox, 3: as the device likes best, on a CPU the same).
_PHILOX = (1, 3)

Words = list[tf.Tensor]


def key_and_counter(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``StatelessRandomGetKeyCounter``: of a seed of two integers."""
    del op
    seed = tf.cast(inputs[0], tf.uint64)  # of negative numbers: with their sign
    counter = [*_halves(seed[0]), *_halves(seed[1])]
    key = [tf.constant(word, tf.uint32) for word in _SEED_KEY]
    mixed = _philox(counter, key)
    zero = tf.zeros([], tf.uint64)
    return [_joined(mixed[0], mixed[1])[None], tf.stack([zero, _joined(mixed[2], mixed[3])])]


def algorithm(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``StatelessRandomGetAlg``: which generator the device likes best."""
    del op, inputs
    return [tf.constant(1, tf.int32)]


def uniform(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``StatelessRandomUniformV2``: floats in [0, 1), the mantissa is random bits."""
    dtype = tf.as_dtype(op.get_attr("dtype"))
    wide = dtype == tf.float64
    words = _words(inputs, 2 if wide else 1)
    if words is None:
        return None
    if wide:
        bits = _mantissa(_joined(words[1], words[0]), 52, 1023, tf.uint64)
    elif dtype == tf.float32:
        bits = _mantissa(words[0], 23, 127, tf.uint32)
    elif dtype == tf.float16:
        bits = _mantissa(tf.cast(words[0], tf.uint16), 10, 15, tf.uint16)
    elif dtype == tf.bfloat16:
        bits = _mantissa(tf.cast(words[0], tf.uint16), 7, 127, tf.uint16)
    else:
        return None
    return [tf.bitcast(bits, dtype) - tf.constant(1, dtype)]


def normal(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``StatelessRandomNormalV2``: two normal numbers of two uniform ones (Box and Muller, A note
    on the generation of random normal deviates, 1958).
    """
    dtype = tf.as_dtype(op.get_attr("dtype"))
    shape = tf.get_static_value(inputs[0])
    wide = dtype == tf.float64
    if shape is None or not dtype.is_floating or dtype.size > 8:
        return None
    count = int(np.prod(shape, dtype=np.int64))
    words = _words([tf.constant([-(-count // 2)]), *inputs[1:]], 4 if wide else 2)
    if words is None:
        return None
    if wide:
        ones = [_mantissa(_joined(words[i + 1], words[i]), 52, 1023, tf.uint64) for i in (0, 2)]
    else:
        ones = [_mantissa(word, 23, 127, tf.uint32) for word in words]
    kind = tf.float64 if wide else tf.float32
    first, second = (tf.bitcast(bits, kind) - tf.constant(1, kind) for bits in ones)
    radius = tf.sqrt(-2 * tf.math.log(tf.maximum(first, tf.constant(1e-7, kind))))
    # TensorFlow rounds the angle of a float once.
    angle = tf.cast(tf.cast(second, tf.float64) * (2 * np.pi), kind)
    pairs = tf.stack([tf.sin(angle) * radius, tf.cos(angle) * radius], axis=1)
    flat = tf.reshape(pairs, (-1,))[:count]
    return [tf.cast(tf.reshape(flat, [int(n) for n in shape]), dtype)]


def uniform_integers(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``StatelessRandomUniformIntV2``: integers in the non-empty range [low, high)."""
    *inputs, low, high = inputs
    dtype = tf.as_dtype(op.get_attr("dtype"))
    words = _words(inputs, dtype.size // 4)
    if words is None:
        return None
    bounds = tf.get_static_value(low), tf.get_static_value(high)
    if None in bounds or bounds[0] >= bounds[1]:
        low = checked(low, low < high, "random integers need minval < maxval")
    unsigned = tf.uint64 if dtype.size == 8 else tf.uint32
    value = _joined(words[0], words[1]) if dtype.size == 8 else words[0]
    extent = tf.bitcast(high, unsigned) - tf.bitcast(low, unsigned)
    return [tf.bitcast(tf.bitcast(low, unsigned) + value % extent, dtype)]


def any_integers(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``StatelessRandomUniformFullIntV2``: integers of all bits."""
    dtype = tf.as_dtype(op.get_attr("dtype"))
    words = _words(inputs, dtype.size // 4)
    if words is None:
        return None
    value = _joined(words[0], words[1]) if dtype.size == 8 else words[0]
    return [value if value.dtype == dtype else tf.bitcast(value, dtype)]


def _words(inputs: list[tf.Tensor], each: int) -> Words | None:
    """The ``each`` random words of every element, of the shape that is asked for."""
    shape = tf.get_static_value(inputs[0])
    which = tf.get_static_value(inputs[3])
    if shape is None or which is None or int(which) not in _PHILOX:
        return None
    key, counter = inputs[1], inputs[2]
    count = int(np.prod(shape, dtype=np.int64)) * each
    groups = -(-count // 4)
    step = tf.cast(tf.range(groups, dtype=tf.int64), tf.uint64)
    low = counter[0] + step
    high = counter[1] + tf.cast(low < step, tf.uint64)
    mixed = _philox([*_halves(low), *_halves(high)], list(_halves(key[0])))
    flat = tf.reshape(tf.stack(mixed, axis=1), (groups * 4,))[:count]
    table = tf.reshape(flat, (-1, each)) if each > 1 else flat[:, None]
    return [tf.reshape(table[:, i], [int(n) for n in shape]) for i in range(each)]


def _philox(counter: Words, key: Words) -> Words:
    a, b, c, d = counter
    first, second = key
    for number in range(_ROUNDS):
        if number:
            first = first + tf.constant(_WEYL[0], tf.uint32)
            second = second + tf.constant(_WEYL[1], tf.uint32)
        low_a, high_a = _product(a, _MULTIPLIERS[0])
        low_c, high_c = _product(c, _MULTIPLIERS[1])
        a = tf.bitwise.bitwise_xor(tf.bitwise.bitwise_xor(high_c, b), first)
        c = tf.bitwise.bitwise_xor(tf.bitwise.bitwise_xor(high_a, d), second)
        b, d = low_c, low_a
    return [a, b, c, d]


def _product(word: tf.Tensor, factor: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The lower and the upper half of a product of two words."""
    return _halves(tf.cast(word, tf.uint64) * tf.constant(factor, tf.uint64))


def _halves(value: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    upper = tf.bitwise.right_shift(value, tf.constant(32, tf.uint64))
    return tf.cast(value, tf.uint32), tf.cast(upper, tf.uint32)


def _joined(low: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    upper = tf.bitwise.left_shift(tf.cast(high, tf.uint64), tf.constant(32, tf.uint64))
    return tf.bitwise.bitwise_or(tf.cast(low, tf.uint64), upper)


def _mantissa(bits: tf.Tensor, width: int, exponent: int, dtype: tf.DType) -> tf.Tensor:
    """The number 1.xxx whose mantissa are the lowest bits."""
    kept = tf.bitwise.bitwise_and(bits, tf.constant((1 << width) - 1, dtype))
    return tf.bitwise.bitwise_or(kept, tf.constant(exponent << width, dtype))
