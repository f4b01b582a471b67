"""TensorFlow: functions and signatures of a loaded SavedModel."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, floats  # noqa: E402

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

strict = polyblocks_jit_tf(compile_options={"strict_target": True})


class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable(floats(4, 3))
        self.calls = tf.Variable(0)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def predict(self, x):
        return {"scores": tf.tanh(x @ self.w)}

    @tf.function
    def scale(self, x, twice=True):
        return x * 2 if twice else x

    @tf.function(
        input_signature=[tf.TensorSpec([None, 4], tf.float32), tf.TensorSpec([], tf.int32)]
    )
    def iterate(self, x, steps):
        self.calls.assign_add(1)
        y = x @ self.w
        for _ in tf.range(steps):
            y = tf.reshape(tf.tanh(y), (tf.shape(x)[0], 3))
        values = tf.abs(tf.linalg.eigvals(tf.matmul(y, y, transpose_a=True)))
        return y * 2, values + 1, tf.shape(y)[0]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    model = Model()
    model.scale(floats(2))
    folder = str(tmp_path_factory.mktemp("saved"))
    tf.saved_model.save(model, folder, signatures=model.predict)
    return model, tf.saved_model.load(folder)


def test_a_function_of_a_loaded_saved_model(saved):
    model, loaded = saved
    compiled = strict(loaded.predict)
    for rows in (1, 5):
        x = floats(rows, 4)
        assert_same(compiled(x), model.predict(x))
    report = compiled.polyblocks_report()
    assert report.whole
    assert str(report).startswith("predict: 1 kernel")
    # A SavedModel has no source; lines of TensorFlow's own are none of the user's.
    assert "tensorflow" not in str(report)


@pytest.mark.slow
def test_defaults_of_a_function_of_a_loaded_saved_model(saved):
    _, loaded = saved
    assert_same(strict(loaded.scale)(floats(2)), floats(2) * 2)


def test_a_signature_of_a_loaded_saved_model(saved):
    model, loaded = saved
    compiled = strict(loaded.signatures["serving_default"])
    x = floats(3, 4)
    assert_same(compiled(x=x), model.predict(x))
    assert_same(compiled(x), model.predict(x))
    assert compiled.polyblocks_report().whole
    assert repr(compiled) == "<polyblocks predict>"


@pytest.mark.slow
def test_what_a_loaded_function_cannot_compile_is_cut_out(saved, caplog):
    model, loaded = saved
    compiled = polyblocks_jit_tf(loaded.iterate)
    model.calls.assign(0)
    for rows in (2, 5):
        x = floats(rows, 4)
        assert_same(compiled(x, 3), model.iterate(x, tf.constant(3)))
    assert loaded.calls.numpy() == model.calls.numpy() == 2
    # The loop was traced for any number of rows, and is compiled for those that come.
    assert {f.op for f in compiled.polyblocks_report().fallbacks} == {"Eig"}
    assert (
        "iterate: TensorFlow runs Eig: it is a factorization that is not generated" in caplog.text
    )


@pytest.mark.slow
def test_a_tape_around_a_loaded_function(saved):
    model, loaded = saved
    x, found = floats(2, 4), []
    for f, w in ((model.predict, model.w), (strict(loaded.predict), loaded.w)):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(f(x)["scores"] ** 2)
        found.append(tape.gradient(loss, w))
    assert_same(found[1], found[0])


@pytest.mark.slow
def test_a_concrete_function():
    concrete = tf.function(lambda x: x * 2).get_concrete_function(tf.TensorSpec([None]))
    compiled = strict(concrete)
    assert_same(compiled(floats(3)), floats(3) * 2)
    assert compiled.polyblocks_report().whole


@pytest.mark.slow
def test_an_exported_keras_model(tmp_path):
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras runs on another framework here")
    model = keras.Sequential(
        [keras.Input((8,)), keras.layers.Dense(4), keras.layers.BatchNormalization()]
    )
    model.export(str(tmp_path), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path))
    x = floats(3, 8).numpy()
    compiled = strict(loaded.serve)
    np.testing.assert_allclose(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    assert compiled.polyblocks_report().whole


def test_another_function_after_a_gradient_through_an_inner_one():
    @tf.function
    def inner(x):
        return tf.tanh(x) * tf.sigmoid(x)

    compiled = strict(lambda x: inner(x) * 2)
    x = tf.constant(floats(3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = compiled(x)
    with tf.GradientTape() as plain:
        plain.watch(x)
        expected = inner(x) * 2
    assert_same(tape.gradient(y, x), plain.gradient(expected, x))
    again = strict(lambda x: inner(x) + 1)
    assert_same(again(x), inner(x) + 1)


def test_another_call_after_a_gradient_through_a_loaded_function(saved):
    _, loaded = saved
    compiled = strict(lambda x: loaded.predict(x)["scores"])
    for rows in (2, 3):
        x = tf.constant(floats(rows, 4))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = compiled(x)
        with tf.GradientTape() as plain:
            plain.watch(x)
            expected = loaded.predict(x)["scores"]
        assert_same(y, expected)
        assert_same(tape.gradient(y, x), plain.gradient(expected, x))
