"""TensorFlow's factorizations, and what its kernels compute from them, by the core's algorithms.

As the kernels do, the program fails for a matrix without an inverse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from polyblocks.algorithms.factorizations.limits import (
    refused_decomposition,
    refused_reflections,
)
from polyblocks_tf.operations.algorithms import call
from polyblocks_tf.operations.checks import checked

#: The attribute that says whether an operation computes vectors.
_VECTORS = {"SelfAdjointEigV2": "compute_v", "Svd": "compute_uv"}

Tensors = Sequence[tf.Tensor] | None
_Write = Callable[[Any, list[tf.Tensor]], Tensors]


def refusal(op: Any) -> str | None:
    """Why an operation is left to TensorFlow for the size of its matrices; None if it is not."""
    shape = op.inputs[0].shape
    if not shape.is_fully_defined():
        return None
    if op.type == "Qr":
        return refused_reflections(shape)
    if op.type in _VECTORS:
        vectors = op.get_attr(_VECTORS[op.type])
        return refused_decomposition(shape, vectors=vectors)
    return None


def _of_real_matrices(write: _Write) -> _Write:
    """For matrices of a size and type that algorithms are for."""

    def written(op: Any, inputs: list[tf.Tensor]) -> Tensors:
        real = all(x.dtype in (tf.float32, tf.float64) for x in inputs)
        if not real or not all(x.shape.num_elements() for x in inputs):
            return None
        return None if refusal(op) else write(op, inputs)

    return written


def _transposed(x: tf.Tensor) -> tf.Tensor:
    return tf.linalg.matrix_transpose(x)


def _lu(a: tf.Tensor) -> list[tf.Tensor]:
    """L and U in one, pivots from 1, and the number of the first pivot of zero."""
    *batch, rows, columns = a.shape
    least = min(rows, columns)
    kinds = [(a.shape, a.dtype), ([*batch, least], tf.int32), (batch, tf.int32)]
    return call("lu", [a], kinds)


def _regular(value: tf.Tensor, info: tf.Tensor, message: str) -> tf.Tensor:
    """The value; the program fails unless all of ``info`` are zero."""
    holds = tf.reshape(info == 0, [*info.shape, *[1] * (value.shape.rank - info.shape.rank)])
    return checked(value, tf.broadcast_to(holds, value.shape), message)


@_of_real_matrices
def inverse(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``MatrixInverse``."""
    (a,) = inputs
    a = _transposed(a) if op.get_attr("adjoint") else a
    x, info = call("invert", [a], [(a.shape, a.dtype), (a.shape[:-2], tf.int32)])
    return [_regular(x, info, "Input is not invertible.")]


@_of_real_matrices
def solve(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``MatrixSolve``."""
    a, b = inputs
    a = _transposed(a) if op.get_attr("adjoint") else a
    *batch, n, _ = a.shape
    kinds = [(b.shape, b.dtype), (a.shape, a.dtype), ([*batch, n], tf.int32), (batch, tf.int32)]
    x, _, _, info = call("solve", [a, b], kinds)
    return [_regular(x, info, "Input matrix is not invertible.")]


@_of_real_matrices
def factorize(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``Lu``."""
    (a,) = inputs
    factors, pivots, info = _lu(a)
    kind = ([*a.shape[:-2], a.shape[-2]], tf.int32)
    order, _ = call("permutation", [pivots], [kind, kind])
    factors = _regular(factors, info, "Input is not invertible.")
    return [factors, tf.cast(order, op.get_attr("output_idx_type"))]


@_of_real_matrices
def determinant(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``MatrixDeterminant``."""
    del op
    diagonal, sign = _signed_diagonal(inputs[0])
    return [tf.reduce_prod(diagonal, -1) * sign]


@_of_real_matrices
def log_determinant(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``LogMatrixDeterminant``."""
    del op
    diagonal, sign = _signed_diagonal(inputs[0])
    signs = tf.reduce_prod(tf.sign(diagonal), -1) * sign
    return [signs, tf.reduce_sum(tf.math.log(tf.abs(diagonal)), -1)]


def _signed_diagonal(a: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The diagonal of U, and the sign of the permutation."""
    factors, pivots, _ = _lu(a)
    own = tf.range(1, pivots.shape[-1] + 1, dtype=tf.int32)
    exchanges = tf.reduce_sum(tf.cast(pivots != own, tf.int32), -1)
    sign = 1 - 2 * tf.math.floormod(exchanges, 2)
    return tf.linalg.diag_part(factors), tf.cast(sign, a.dtype)


@_of_real_matrices
def orthogonalize(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``Qr``."""
    (a,) = inputs
    rows, columns = a.shape[-2:]
    width = rows if op.get_attr("full_matrices") else min(rows, columns)
    packed, q = _reflected(a, width)
    return [q, tf.linalg.band_part(packed[..., :width, :], 0, -1)]


def _reflected(a: tf.Tensor, width: int) -> tuple[tf.Tensor, tf.Tensor]:
    """R with the vectors of reflections below, and the first columns of their product."""
    *batch, rows, columns = a.shape
    kinds = [(a.shape, a.dtype), ([*batch, min(rows, columns)], a.dtype)]
    packed, scales = call("householder", [a], kinds)
    (q,) = call("reflections", [packed, scales], [([*batch, rows, width], a.dtype)])
    return packed, q


@_of_real_matrices
def symmetric_eigen(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``SelfAdjointEigV2``."""
    (a,) = inputs
    message = "Self-adjoint eigen decomposition was not successful. The input might not be valid."
    a = checked(a, tf.math.is_finite(a), message)
    kinds = [(a.shape[:-1], a.dtype), (a.shape, a.dtype)]
    if not op.get_attr("compute_v"):
        (values,) = call("symmetric_values", [a], kinds[:1])
        return [values, tf.zeros([0], a.dtype)]
    values, rows = call("symmetric_eigen", [a], kinds)
    return [values, _transposed(rows)]


@_of_real_matrices
def singular_values(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``Svd``."""
    (a,) = inputs
    *batch, rows, columns = a.shape
    wide = rows < columns
    source = a if wide else _transposed(a)
    least, longer = source.shape[-2:]
    kinds = [([*batch, least], a.dtype)]
    finite = tf.reduce_all(tf.math.is_finite(a), [-2, -1], keepdims=True)

    def known(x: tf.Tensor, holds: tf.Tensor) -> tf.Tensor:
        return tf.where(holds, x, tf.constant(math.nan, x.dtype))

    if not op.get_attr("compute_uv"):
        (lengths,) = call("singular_values", [source], kinds)
        none = tf.zeros([0], a.dtype)
        return [known(lengths, finite[..., 0]), none, none]
    width = longer if op.get_attr("full_matrices") else least
    kinds += [([*batch, least, least], a.dtype), ([*batch, width, longer], a.dtype)]
    lengths, left, right = call("singular_vectors", [source], kinds)
    lengths = known(lengths, finite[..., 0])
    left, right = (known(_transposed(x), finite) for x in (left, right))
    return [lengths, *((left, right) if wide else (right, left))]


SUBSTITUTIONS: dict[str, _Write] = {
    "LogMatrixDeterminant": log_determinant,
    "Lu": factorize,
    "MatrixDeterminant": determinant,
    "MatrixInverse": inverse,
    "MatrixSolve": solve,
    "Qr": orthogonalize,
    "SelfAdjointEigV2": symmetric_eigen,
    "Svd": singular_values,
}
