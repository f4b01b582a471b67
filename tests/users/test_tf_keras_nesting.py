"""Keras on TensorFlow: a compiled model as a layer of another functional model."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from tf_compare import floats  # noqa: E402

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

strict = polyblocks_jit_tf(compile_options={"strict_target": True})


@pytest.fixture(autouse=True)
def on_tensorflow():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras runs on another framework here")
    keras.utils.set_random_seed(0)


def nested(wrap, inner):
    inputs = keras.Input((4,))
    return keras.Model(inputs, keras.layers.Dense(2)(wrap(inner)(inputs)))


def an_inner_model():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "tanh")], name="inner")


def test_functional_nesting_runs_the_inner_model_compiled():
    inner = an_inner_model()
    compiled = strict(inner)
    inputs = keras.Input((4,))
    # Twice: the layers share their weights.
    both = compiled(inputs) + compiled(inputs * 2)
    outer = keras.Model(inputs, keras.layers.Dense(2)(both))
    assert len(outer.trainable_variables) == 4
    x = floats(5, 4)
    dense = outer.layers[-1]
    np.testing.assert_allclose(outer(x), dense(inner(x) + inner(x * 2)), rtol=1e-5, atol=1e-6)
    report = compiled.polyblocks_report()
    assert report.whole
    assert len(report.variants) == 1


@pytest.mark.slow
def test_functional_nesting_in_a_compiled_model():
    inner = strict(an_inner_model())
    outer = nested(lambda model: model, inner)
    compiled = strict(outer)
    x = floats(5, 4)
    np.testing.assert_allclose(compiled(x), outer(x), rtol=1e-5, atol=1e-6)
    assert compiled.polyblocks_report().whole
    assert inner.polyblocks_report().callers == [outer.name]


@pytest.mark.slow
def test_a_gradient_through_functional_nesting():
    inner = an_inner_model()
    outer = nested(strict, inner)
    x = floats(5, 4)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(outer(x) ** 2)
    ours = tape.gradient(loss, inner.trainable_variables)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(outer.layers[-1](inner(x)) ** 2)
    theirs = tape.gradient(loss, inner.trainable_variables)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_fit_of_an_outer_model_is_said(caplog):
    inner = polyblocks_jit_tf(an_inner_model())
    outer = nested(lambda model: model, inner)
    outer.compile("sgd", "mse", jit_compile=False)
    outer.fit(np.ones((4, 4)), np.ones((4, 2)), verbose=0)
    assert "TensorFlow runs inner (call in a tf.function)" in caplog.text
    assert not inner.polyblocks_report().whole


@pytest.mark.slow
def test_training_reaches_the_inner_model():
    inner = keras.Sequential([keras.Input((4,)), keras.layers.Dropout(0.9)], name="inner")
    compiled = strict(inner)
    inputs = keras.Input((4,))
    outer = keras.Model(inputs, compiled(inputs))
    x = tf.ones((8, 4))
    np.testing.assert_array_equal(outer(x), x)
    assert np.count_nonzero(outer(x, training=True)) < 32


class Block(keras.layers.Layer):
    """Its parts learn of ``training`` from the call of the outer model alone."""

    def __init__(self):
        super().__init__()
        self.drop = keras.layers.Dropout(0.5, seed=1)
        self.normalize = keras.layers.BatchNormalization()

    def call(self, x):
        return self.normalize(self.drop(x))


def test_each_value_of_training_reaches_the_parts_of_a_compiled_layer():
    def outputs(wrap):
        inputs = keras.Input((4,))
        outer = keras.Model(inputs, wrap(Block())(inputs))
        x = tf.ones((2, 4))
        return [outer(x, training=training) for training in (True, False, None, True)]

    for ours, theirs in zip(outputs(strict), outputs(lambda layer: layer), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "whole", [pytest.param(polyblocks_jit_tf, marks=pytest.mark.slow), lambda model: model]
)
def test_predict_after_fit_is_no_training_of_a_compiled_layer(whole):
    def fitted(wrap, whole):
        inputs = keras.Input((4,))
        block = Block()
        outer = whole(keras.Model(inputs, wrap(block)(inputs)))
        outer.compile("sgd", "mse")
        x = np.ones((2, 4), np.float32)
        outer.fit(x, x, epochs=2, verbose=0)
        results = [outer.predict(x, verbose=0), outer.evaluate(x, x, verbose=0)]
        return [*results, *block.normalize.get_weights()]

    expected = fitted(lambda layer: layer, lambda model: model)
    for ours, theirs in zip(fitted(polyblocks_jit_tf, whole), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("compiled", sweep([0, 1, 2], 0, 1))
def test_masks_come_out_of_and_go_through_a_compiled_layer(compiled):
    def pooled(wrap):
        keras.utils.set_random_seed(0)
        given = keras.Input((5,), dtype="int32")
        x = given
        layers = [
            keras.layers.Embedding(10, 4, mask_zero=True),
            keras.layers.Dense(3),
            keras.layers.GlobalAveragePooling1D(),
        ]
        for number, layer in enumerate(layers):
            x = (wrap if number == compiled else lambda layer: layer)(layer)(x)
        outer = keras.Model(given, x)
        words = np.array([[1, 2, 0, 0, 0], [3, 4, 5, 0, 0]], np.int32)
        return outer(words), outer.predict(words, verbose=0)

    for ours, theirs in zip(pooled(polyblocks_jit_tf), pooled(lambda layer: layer), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_layer_that_has_no_weights_yet():
    layer = keras.layers.Dense(3)
    outer = nested(strict, layer)
    x = floats(5, 4)
    expected = outer.layers[-1](layer(x))
    np.testing.assert_allclose(outer(x), expected, rtol=1e-5, atol=1e-6)
    assert len(outer.trainable_variables) == 4


@pytest.mark.slow
def test_a_compiled_function_in_a_lambda_layer():
    f = strict(lambda x: x * 2)
    inputs = keras.Input((4,))
    outer = keras.Model(inputs, keras.layers.Lambda(lambda x: f(x))(inputs))
    np.testing.assert_allclose(outer(floats(5, 4)), floats(5, 4) * 2)
    assert f.polyblocks_report().whole


def test_an_outer_model_is_not_saved_with_what_was_compiled(tmp_path):
    outer = nested(strict, an_inner_model())
    with pytest.raises(NotImplementedError, match="compiled_inner cannot be saved: save the wei"):
        outer.save(tmp_path / "outer.keras")
    outer.save_weights(tmp_path / "outer.weights.h5")
