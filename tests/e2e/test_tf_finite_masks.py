"""Causal attention of TensorFlow and Keras leaves out what is masked, however it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from polyblocks.events import Event, listening
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

pytestmark = pytest.mark.cpu

LENGTH, SIZE = 512, 32


def _written(mask: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = tf.matmul(q, k, transpose_b=True) * SIZE**-0.5
        keep = tf.range(LENGTH)[:, None] >= tf.range(LENGTH)[None]
        return tf.matmul(tf.nn.softmax(mask(scores, keep), -1), v)

    return attention


def _chosen(low: float) -> Callable[..., Any]:
    return _written(lambda scores, keep: tf.where(keep, scores, low))


added = _written(lambda scores, keep: scores + (1.0 - tf.cast(keep, tf.float32)) * -1e9)


def _run(function: Callable[..., Any], inputs: list[Any]) -> tuple[int, int]:
    """How many loops have bounds of masks, and the number of kernels."""
    events: list[Event] = []
    with listening(events.append):
        fast = polyblocks_jit_tf(function, compile_options={"strict_target": True})
        ours = fast(*inputs)
    np.testing.assert_allclose(ours, function(*inputs), rtol=1e-4, atol=2e-5)
    cut = sum(e.data["loops"] for e in events if e.data.get("what") == "bounds of masks")
    return cut, len(fast.polyblocks_report().to_json()["parts"][-1]["kernels"])


def _normal(*shape: int) -> Any:
    return tf.constant(np.random.default_rng(0).standard_normal(shape, np.float32))


def test_spellings_have_the_same_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    inputs = [_normal(1, 4, LENGTH, SIZE) for _ in range(3)]
    infinite = _run(_chosen(-np.inf), inputs)
    assert infinite[0] >= 5
    for function in (_chosen(tf.float32.min), added):
        assert _run(function, inputs) == infinite


@pytest.mark.extended
def test_layers_of_keras_leave_out_what_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    heads = keras.layers.MultiHeadAttention(4, SIZE)
    alone = keras.layers.Attention()

    def many(x: Any) -> Any:
        return heads(x, x, use_causal_mask=True)

    def one(x: Any) -> Any:
        return alone([x, x], use_causal_mask=True)

    x = _normal(1, LENGTH, 4 * SIZE)
    many(x)
    assert _run(many, [x])[0] >= 5
    assert _run(one, [x])[0] >= 5
