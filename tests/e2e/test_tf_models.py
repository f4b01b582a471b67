"""Keras 3 models on TensorFlow: whole, forward and gradient."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from tf_compare import assert_same, floats  # noqa: E402

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

strict = polyblocks_jit_tf(compile_options={"strict_target": True})


@pytest.fixture(autouse=True)
def same_weights():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras runs on another framework here")
    keras.utils.set_random_seed(0)


def close(ours, theirs):
    """Within 1e-4 of the largest value."""
    for a, b in zip(tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True):
        scale = max(1.0, float(np.abs(b).max()))
        np.testing.assert_allclose(a.numpy() / scale, b.numpy() / scale, atol=1e-4, rtol=0)


def loss_and_gradients(model, x, target):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=False) - target))
    return loss, tape.gradient(loss, model.trainable_variables)


MODELS = {
    "separable convolutions": lambda: (
        keras.Sequential(
            [
                keras.Input((9, 7, 3)),
                keras.layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False),
                keras.layers.BatchNormalization(),
                keras.layers.ReLU(6.0),
                keras.layers.DepthwiseConv2D(3, padding="same"),
                keras.layers.Conv2D(5, 1),
                keras.layers.GlobalAveragePooling2D(),
                keras.layers.Dense(3, activation="softmax"),
            ]
        ),
        (2, 9, 7, 3),
    ),
    "mobilenet": lambda: (
        keras.applications.MobileNetV2((32, 32, 3), alpha=0.35, weights=None, classes=10),
        (2, 32, 32, 3),
    ),
    "lstm": lambda: (
        keras.Sequential(
            [
                keras.Input((6, 4)),
                keras.layers.LSTM(8, return_sequences=True),
                keras.layers.LSTM(8),
                keras.layers.Dense(3, activation="softmax"),
            ]
        ),
        (2, 6, 4),
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        "separable convolutions",
        pytest.param("lstm", marks=pytest.mark.slow),
        pytest.param("mobilenet", marks=[pytest.mark.large, pytest.mark.slow]),
    ],
)
def test_forward_and_gradient(name):
    model, shape = MODELS[name]()
    x = floats(*shape)
    expected = model(x, training=False)
    compiled = strict(model)
    close(compiled(x, training=False), expected)
    assert compiled.polyblocks_report().whole
    assert compiled.trainable_variables is not None
    target = tf.zeros_like(expected)
    step = strict(lambda x, target: loss_and_gradients(model, x, target))
    close(step(x, target), loss_and_gradients(model, x, target))
    assert step.polyblocks_report().whole


def test_a_tape_around_a_model():
    model = keras.Sequential(
        [keras.Input((5,)), keras.layers.Dense(7, activation="gelu"), keras.layers.Dense(2)]
    )
    x = floats(3, 5)
    found = []
    for f in (model, strict(model)):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(f(x) ** 2)
        found.append(tape.gradient(loss, model.trainable_variables))
    close(found[1], found[0])


def test_batch_normalization_updates_its_averages():
    model = keras.Sequential([keras.Input((4,)), keras.layers.BatchNormalization()])
    x = floats(16, 4)
    start = model.get_weights()
    expected = tf.function(model)(x, training=True)
    moved = model.get_weights()
    model.set_weights(start)
    assert_same(strict(model)(x, training=True), expected)
    for ours, theirs in zip(model.get_weights(), moved, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_dropout_draws_what_tensorflow_draws():
    layer = keras.layers.Dropout(0.4, seed=3)
    x = tf.ones((50, 20))
    layer.build(x.shape)
    state = [v.numpy() for v in layer.variables]
    expected = [tf.function(lambda x: layer(x, training=True))(x) for _ in range(2)]
    for variable, value in zip(layer.variables, state, strict=True):
        variable.assign(value)
    compiled = strict(lambda x: layer(x, training=True))
    assert_same([compiled(x), compiled(x)], expected)


def test_embedding_and_attention():
    inputs = keras.Input((9,), dtype="int32")
    x = keras.layers.Embedding(30, 8)(inputs)
    x = keras.layers.MultiHeadAttention(2, 4)(x, x)
    x = keras.layers.LayerNormalization()(x)
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(x))
    tokens = tf.constant(np.random.default_rng(0).integers(0, 30, (2, 9)), tf.int32)
    compiled = strict(model)
    close(compiled(tokens), model(tokens))


def test_a_training_step_with_an_optimizer():
    def train(compile_):
        keras.utils.set_random_seed(1)
        model = keras.Sequential(
            [keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)]
        )
        optimizer = keras.optimizers.Adam(0.05)
        optimizer.build(model.trainable_variables)
        x = floats(32, 3)
        y = tf.reduce_sum(x, 1, keepdims=True)

        @compile_
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        losses = [step(x, y).numpy() for _ in range(8)]
        return losses, model.get_weights()

    (ours, our_weights), (theirs, their_weights) = train(strict), train(tf.function)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    for a, b in zip(our_weights, their_weights, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    assert ours[-1] < ours[0]
