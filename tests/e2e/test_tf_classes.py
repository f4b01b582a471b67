"""Cross-entropies over many classes: no array of all scores, however they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

pytestmark = pytest.mark.cpu

#: Rows, classes in blocks with a shorter last one (a prime number), width.
ROWS, CLASSES, WIDTH = 70, 16411, 5


def operation(x: Any, y: Any, classes: Any) -> Any:
    scores = tf.matmul(x, y, transpose_b=True)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(classes, scores)


def by_hand(x: Any, y: Any, classes: Any) -> Any:
    scores = tf.nn.log_softmax(tf.matmul(x, y, transpose_b=True))
    return -tf.gather(scores, classes, batch_dims=1)


def of_keras(x: Any, y: Any, classes: Any) -> Any:
    scores = tf.matmul(x, y, transpose_b=True)
    return keras.losses.sparse_categorical_crossentropy(classes, scores, from_logits=True)


@pytest.mark.parametrize("function", [operation, by_hand, of_keras], ids=lambda f: f.__name__)
def test_no_array_of_all_scores(function: Callable[..., Any]) -> None:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((n, WIDTH)).astype(np.float32) for n in (ROWS, CLASSES))
    classes = np.arange(ROWS) * 211 % CLASSES
    classes[:2] = 0, CLASSES - 1
    x[2, 0], y[7, 0] = np.nan, -np.inf
    compiled = polyblocks_jit_tf(function, compile_options={"strict_target": True})
    ours = compiled(tf.constant(x), tf.constant(y), tf.constant(classes)).numpy()
    eager = function(tf.constant(x), tf.constant(y), tf.constant(classes)).numpy()
    exact = function(tf.constant(x, tf.float64), tf.constant(y, tf.float64), classes).numpy()
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(eager))
    np.testing.assert_allclose(ours, exact, rtol=4e-6)
    (part,) = compiled.polyblocks_report().parts
    assert part.workspace_bytes < 4 * ROWS * CLASSES // 8


def test_gradients() -> None:
    random = np.random.default_rng(0)
    scores = random.standard_normal((6, 9)).astype(np.float32)
    classes = tf.constant([0, 8, 3, 3, 1, 7])

    def gradient(scores: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(scores)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(classes, scores)
        return loss, tape.gradient(loss, scores)

    compiled = polyblocks_jit_tf(gradient, compile_options={"strict_target": True})
    for ours, exact in zip(
        compiled(tf.constant(scores)), gradient(tf.constant(scores, tf.float64)), strict=True
    ):
        np.testing.assert_allclose(ours.numpy(), exact.numpy(), rtol=2e-6, atol=2e-7)
