"""The networks, and functions that run them once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bench.keras_models.table import CLASSES, FORWARD, SIZE

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Job:
    """One network and what is done with it.

    Attributes:
        function: of ``arguments``.
        arguments: tensors.
        outcome: what is compared after the first call, from what it returned.
        finish: returns when a result is there.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    outcome: Callable[[Any], Array]
    finish: Callable[[Any], Any] = lambda result: result.numpy()


def job(name: str, mode: str, batch: int, dtype: str = "float32") -> Job:
    """A new network with the same weights, seeds and images each time.

    Args:
        name: of ``keras.applications``.
        mode: a forward pass or a training step.
        batch: images at once.
        dtype: of weights, images and arithmetic; values are those of float32.
    """
    keras.utils.set_random_seed(0)
    model = _network(name)
    if dtype != "float32":
        # Initial values are drawn anew for each type.
        weights = model.get_weights()
        policy = keras.config.dtype_policy()
        keras.config.set_dtype_policy(dtype)
        try:
            model = _network(name)
        finally:
            keras.config.set_dtype_policy(policy)
        model.set_weights(weights)
    random = np.random.default_rng(0)
    images = tf.constant(random.random((batch, SIZE, SIZE, 3), np.float32).astype(dtype))
    if mode == FORWARD:
        return Job(lambda x: model(x, training=False), (images,), lambda result: result.numpy())
    labels = tf.constant(random.integers(0, CLASSES, batch), tf.int32)
    optimizer = keras.optimizers.SGD(1e-3, momentum=0.9)
    optimizer.build(model.trainable_variables)
    before = _flat(model)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return Job(step, (images, labels), lambda _: _flat(model) - before)


def exact(name: str, mode: str, batch: int) -> Array:
    """The outcome in float64, by TensorFlow, rounded nowhere to float32."""
    wide = job(name, mode, batch, "float64")
    return wide.outcome(tf.function(wide.function)(*wide.arguments))


def _network(name: str) -> Any:
    """A network with new weights that drops nothing out."""
    model = getattr(keras.applications, name)(
        input_shape=(SIZE, SIZE, 3), weights=None, classes=CLASSES, classifier_activation=None
    )
    for layer in model.layers:
        if isinstance(layer, keras.layers.Dropout):
            # XLA draws other numbers than TensorFlow, and results are compared.
            layer.rate = 0.0
    return model


def _flat(model: Any) -> Array:
    """All weights, statistics of normalizations among them, behind each other."""
    held = [np.ravel(variable.numpy()) for variable in model.variables]
    return np.concatenate([x for x in held if x.dtype in (np.float32, np.float64)])
