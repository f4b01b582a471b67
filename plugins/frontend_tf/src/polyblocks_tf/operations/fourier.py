"""Fourier transforms of fixed sizes as products with small matrices.

A transform of n = r * m points is r-point transforms of every m-th number, factors of absolute
value 1, and m-point transforms of what comes out (Cooley and Tukey, An algorithm for the machine
calculation of complex Fourier series, Math. Comp. 19, 1965). Real and imaginary parts are two
planes of one array, so that a step is one contraction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

#: Sizes of the products, best first. Longer sums lose accuracy, shorter ones need more steps.
RADICES = (8, 4, 2)
#: A prime factor above this would make a product too large.
LARGEST_PRIME = 64


def fft(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``FFT`` and ``IFFT``, also of two and three dimensions."""
    rank = _rank(op)
    values = inputs[0]
    if not _is_possible(values, values.shape[-rank:].as_list()):
        return None
    sign = 1 if op.type.startswith("I") else -1
    planes = [tf.math.real(values), tf.math.imag(values)]
    for axis in range(-rank, 0):
        planes = _along(planes, axis, sign)
    return [tf.complex(*planes)]


def rfft(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``RFFT``, also of two and three dimensions: half of the last one."""
    rank = _rank(op)
    lengths = tf.get_static_value(inputs[1])
    if lengths is None or not _is_possible(inputs[0], [int(n) for n in lengths]):
        return None
    values = _fitted(inputs[0], lengths)
    planes = _along([values], -1, -1)
    planes = [plane[..., : int(lengths[-1]) // 2 + 1] for plane in planes]
    for axis in range(-rank, -1):
        planes = _along(planes, axis, -1)
    return [tf.complex(*planes)]


def irfft(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    """``IRFFT``, also of two and three dimensions."""
    rank = _rank(op)
    lengths = tf.get_static_value(inputs[1])
    if lengths is None or not _is_possible(inputs[0], [int(n) for n in lengths]):
        return None
    last = int(lengths[-1])
    values = _fitted(inputs[0], [*lengths[:-1], last // 2 + 1])
    planes = [tf.math.real(values), tf.math.imag(values)]
    for axis in range(-rank, -1):
        planes = _along(planes, axis, 1)
    real, imaginary = planes
    # The other half is the conjugate of this one, backwards.
    mirrored = slice(1, (last + 1) // 2)
    real = tf.concat([real, tf.reverse(real[..., mirrored], [-1])], -1)
    imaginary = tf.concat([imaginary, -tf.reverse(imaginary[..., mirrored], [-1])], -1)
    return [_along([real, imaginary], -1, 1)[0]]


def _rank(op: Any) -> int:
    return int(op.type[-2]) if op.type.endswith("D") else 1


def _is_possible(values: tf.Tensor, lengths: Sequence[int]) -> bool:
    fits = all(n and max(_factors(n)) <= LARGEST_PRIME for n in lengths)
    return fits and values.shape.is_fully_defined() and bool(values.shape.num_elements())


def _fitted(values: tf.Tensor, lengths: Any) -> tf.Tensor:
    """Cut, or padded with zeros, to these lengths of the last dimensions."""
    start = len(values.shape) - len(lengths)
    wanted = [*values.shape[:start], *(int(n) for n in lengths)]
    values = values[tuple(slice(n) for n in wanted)]
    short = [n - have for n, have in zip(wanted, values.shape, strict=True)]
    return tf.pad(values, [(0, n) for n in short]) if any(short) else values


def _along(planes: list[tf.Tensor], axis: int, sign: int) -> list[tf.Tensor]:
    """The transform along one axis; with sign 1 the inverse one. One plane alone is real."""
    shape = planes[0].shape.as_list()
    order = list(range(len(shape)))
    order.append(order.pop(axis))
    moved = [tf.transpose(plane, order) for plane in planes]
    length = shape[axis]
    flat = tf.stack([tf.reshape(plane, (-1, length)) for plane in moved], 1)
    result = _transformed(flat, _factors(length), sign)
    if sign > 0:
        result = result / tf.constant(length, result.dtype)
    back = np.argsort(order)
    kept = [shape[i] for i in order]
    return [tf.transpose(tf.reshape(result[:, i], kept), back) for i in (0, 1)]


def _factors(length: int) -> list[int]:
    """Factors of a length: radices, then odd primes."""
    found = []
    for radix in RADICES:
        while length % radix == 0:
            found.append(radix)
            length //= radix
    prime = 3
    while length > 1:
        if prime * prime > length:
            prime = length
        while length % prime == 0:
            found.append(prime)
            length //= prime
        prime += 2
    return found or [1]


def _transformed(values: tf.Tensor, factors: Sequence[int], sign: int) -> tf.Tensor:
    """Of [batch, 1 or 2 planes, n] along the last dimension; the result has two planes."""
    batch, planes, length = values.shape.as_list()
    radix, *rest = factors
    others = length // radix
    grouped = tf.reshape(values, (batch, planes * radix, others))
    matrix = tf.constant(_matrix(radix, planes, sign), values.dtype)
    mixed = tf.reshape(tf.einsum("kn,bnm->bkm", matrix, grouped), (batch, 2, radix, others))
    if not rest:
        return tf.reshape(mixed, (batch, 2, length))
    angle = sign * 2 * np.pi * np.outer(np.arange(radix), np.arange(others)) / length
    c, s = (tf.constant(f(angle), values.dtype) for f in (np.cos, np.sin))
    real, imaginary = mixed[:, 0], mixed[:, 1]
    turned = tf.stack([real * c - imaginary * s, real * s + imaginary * c], 2)
    inner = _transformed(tf.reshape(turned, (batch * radix, 2, others)), rest, sign)
    ordered = tf.transpose(tf.reshape(inner, (batch, radix, 2, others)), (0, 2, 3, 1))
    return tf.reshape(ordered, (batch, 2, length))


def _matrix(radix: int, planes: int, sign: int) -> np.ndarray:
    """A transform of ``radix`` points on planes of real and imaginary parts."""
    turns = np.outer(np.arange(radix), np.arange(radix)) % radix
    # Quarter turns are exact.
    c = np.array([_cosine(float(turn), radix) for turn in turns.ravel()]).reshape(turns.shape)
    s = sign * np.array([_cosine(float(turn) - radix / 4, radix) for turn in turns.ravel()])
    s = s.reshape(turns.shape)
    return np.block([[c, -s], [s, c]]) if planes == 2 else np.block([[c], [s]])


def _cosine(turn: float, radix: int) -> float:
    quarters = 4 * turn / radix
    if quarters == int(quarters):
        return (1.0, 0.0, -1.0, 0.0)[int(quarters) % 4]
    return math.cos(2 * math.pi * turn / radix)
