"""TensorFlow: factorizations, what is computed from them, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")

from polyblocks.errors import ExecutionError, FallbackError  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

STRICT = {"target": "cpu", "strict_target": True}


def compiled(function: Any, *arguments: Any) -> Any:
    return polyblocks_jit_tf(function, compile_options=STRICT)(*arguments)


def cholesky(a):
    return tf.linalg.cholesky(a)


def solved(a):
    return tf.linalg.cholesky_solve(tf.linalg.cholesky(a), a + 1)


def triangular(a):
    return tf.linalg.triangular_solve(a, a + 1, lower=False, adjoint=True)


@pytest.mark.each_choice
@pytest.mark.parametrize("function", [cholesky, solved, triangular])
@pytest.mark.parametrize("shape", sweep([(5, 5), (2, 3, 3)], (2, 3, 3), extended=[(5, 5)]), ids=str)
def test_factorizations(shape: tuple[int, ...], function: Any) -> None:
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    a = tf.constant(a @ a.swapaxes(-1, -2) + np.eye(shape[-1], dtype=np.float32))
    np.testing.assert_allclose(compiled(function, a), function(a), rtol=1e-3, atol=1e-4)


def test_a_matrix_that_is_not_positive_definite_gives_nan() -> None:
    a = np.stack([np.diag([1.0, -1.0, 2.0]), np.eye(3)])
    found = compiled(cholesky, tf.constant(a)).numpy()
    assert np.isnan(found[0][np.tril_indices(3)]).all()
    np.testing.assert_array_equal(found[1], np.eye(3))


def test_a_zero_on_the_diagonal_is_divided_by() -> None:
    a = tf.constant(np.diag([1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(compiled(triangular, a), triangular(a))


def inverse(a):
    return tf.linalg.inv(a), tf.linalg.inv(a, adjoint=True)


def system(a):
    return tf.linalg.solve(a, a + 1), tf.linalg.solve(a, a[..., :1], adjoint=True)


def determinants(a):
    return tf.linalg.det(a), *tf.linalg.slogdet(a)


def lu(a):
    return tuple(tf.linalg.lu(a, output_idx_type=tf.int64))


def qr(a):
    tall = a[..., :2]
    return *tf.linalg.qr(a), *tf.linalg.qr(tall, full_matrices=True), *tf.linalg.qr(tall)


def eigenvalues(a):
    values, vectors = tf.linalg.eigh(a)
    product = tf.matmul(vectors * values[..., None, :], vectors, transpose_b=True)
    return values, product, tf.linalg.eigvalsh(a)


def singular(a):
    wide = a[..., :2, :]
    s, u, v = tf.linalg.svd(wide)
    _, whole, right = tf.linalg.svd(a, full_matrices=True)
    square = tf.matmul(right, right, transpose_a=True)
    return (
        s,
        tf.matmul(u * s[..., None, :], v, transpose_b=True),
        tf.matmul(whole, whole, transpose_a=True),
        square,
        tf.linalg.svd(a, compute_uv=False),
    )


@pytest.mark.parametrize("function", [inverse, system, determinants, lu, qr, eigenvalues, singular])
@pytest.mark.parametrize(
    "shape", sweep([(5, 5), (2, 9, 3, 3)], (5, 5), extended=[(2, 9, 3, 3)]), ids=str
)
def test_as_the_kernels_compute_them(shape: tuple[int, ...], function: Any) -> None:
    a = np.random.default_rng(0).standard_normal(shape) + 3 * np.eye(shape[-1])
    a = tf.constant(a)
    for x, y in zip(compiled(function, a), function(a), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


def loss(a):
    return tf.reduce_sum(tf.linalg.inv(a) ** 2) + tf.reduce_sum(tf.linalg.slogdet(a)[1])


def gradient(a):
    with tf.GradientTape() as tape:
        tape.watch(a)
        value = loss(a)
    return tape.gradient(value, a)


def test_gradients() -> None:
    a = tf.constant(np.random.default_rng(1).standard_normal((3, 4, 4)) + 3 * np.eye(4))
    np.testing.assert_allclose(compiled(gradient, a), gradient(a), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (inverse, "Input is not invertible"),
        (system, "Input matrix is not invertible"),
        (lu, "Input is not invertible"),
    ],
)
def test_singular_matrices_fail_as_in_eager_mode(function: Any, message: str) -> None:
    a = tf.constant(np.diag([1.0, 0.0, 2.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        function(a)
    with pytest.raises(ExecutionError, match=message):
        compiled(function, a)


def test_the_determinant_of_a_singular_matrix_is_zero() -> None:
    a = tf.constant(np.diag([1.0, 0.0, 2.0]))
    for x, y in zip(compiled(determinants, a), determinants(a), strict=True):
        np.testing.assert_array_equal(x, y)


def eigenvalues_alone(a):
    return tf.linalg.eigvalsh(a)


def singular_values_alone(a):
    return tf.linalg.svd(a, compute_uv=False)


def test_matrices_with_nan() -> None:
    a = tf.constant(np.full((3, 3), np.nan))
    with pytest.raises(tf.errors.InvalidArgumentError, match="decomposition was not successful"):
        eigenvalues_alone(a)
    with pytest.raises(ExecutionError, match="decomposition was not successful"):
        compiled(eigenvalues_alone, a)
    np.testing.assert_array_equal(compiled(singular_values_alone, a), singular_values_alone(a))


def test_one_of_many_matrices_has_nan() -> None:
    a = np.eye(3, dtype=np.float32) + np.zeros((37, 3, 3), np.float32)
    unit = np.abs(compiled(eigenvectors, tf.constant(a)))
    np.testing.assert_array_equal(unit, a)
    a[36, 1, 1] = np.nan
    with pytest.raises(ExecutionError, match="decomposition was not successful"):
        compiled(eigenvectors, tf.constant(a))


def eigenvectors(a):
    return tf.linalg.eigh(a)[1]


def singular_vectors(a):
    return tf.linalg.svd(a)[1]


@pytest.mark.parametrize("function", [eigenvalues_alone, singular_values_alone])
def test_values_of_large_matrices(function: Any) -> None:
    a = tf.constant(np.random.default_rng(2).standard_normal((20, 20)))
    np.testing.assert_allclose(compiled(function, a), function(a), rtol=1e-9, atol=1e-12)


@pytest.mark.cpu  # Other targets have other limits.
@pytest.mark.parametrize(
    ("function", "rows", "reason"),
    [
        (eigenvectors, 513, "more than 512 rows and columns"),
        (singular_vectors, 513, "more than 512 rows and columns"),
    ],
)
def test_large_matrices_are_left_to_tensorflow(function: Any, rows: int, reason: str) -> None:
    a = tf.constant(np.eye(rows))
    with pytest.raises(FallbackError, match=reason):
        compiled(function, a)
