"""TensorFlow: Cholesky and triangular systems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

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


@pytest.mark.parametrize("function", [cholesky, solved, triangular])
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 3)], ids=str)
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
