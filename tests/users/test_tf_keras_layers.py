"""Keras on TensorFlow: compiled layers in models that are classes; methods; masks; quantization."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from tf_compare import floats  # noqa: E402

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

strict = polyblocks_jit_tf(compile_options={"strict_target": True})

WORDS = np.array([[1, 2, 0, 0, 0], [3, 4, 5, 0, 0]], np.int32)


def plain(layer):
    return layer


@pytest.fixture(autouse=True)
def on_tensorflow():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras runs on another framework here")
    keras.utils.set_random_seed(0)


class Outer(keras.Model):
    def __init__(self, wrap=plain, built=True):
        super().__init__(name="outer")
        inner = keras.layers.Dense(3, "tanh", kernel_regularizer="l2", name="inner")
        if built:
            inner.build((None, 4))
        self.inner = wrap(inner)
        self.blocks = [wrap(keras.Sequential([keras.layers.Dense(2)], name="block"))]

    def call(self, x):
        return self.blocks[0](self.inner(x))


@pytest.mark.parametrize("built", sweep([True, False], False))
def test_a_subclassed_model_has_the_weights_of_compiled_layers(built):
    def trained(wrap):
        keras.utils.set_random_seed(0)
        outer = Outer(wrap, built)
        outer.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
        x = floats(8, 4).numpy()
        outer.fit(x, x[:, :2], epochs=2, batch_size=4, shuffle=False, verbose=0)
        return [outer(x), *outer.trainable_variables, *outer.losses]

    ours, theirs = trained(strict), trained(plain)
    assert len(theirs) == 6
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_weights_of_compiled_layers_are_saved_as_those_of_layers(tmp_path):
    first, second, third = Outer(strict), Outer(strict), Outer()
    x = floats(5, 4)
    expected = first(x)
    assert isinstance(first.inner, keras.layers.Dense)
    first.save_weights(tmp_path / "outer.weights.h5")
    for other in (second, third):
        other(x)
        other.load_weights(tmp_path / "outer.weights.h5")
        np.testing.assert_allclose(other(x), expected, rtol=1e-5, atol=1e-6)


def test_a_sequential_model_takes_compiled_layers():
    inner = strict(keras.layers.Dense(3, "tanh"))
    model = keras.Sequential([keras.Input((4,)), inner, keras.layers.Dense(2)])
    x = floats(5, 4)
    expected = model.layers[1](inner.polyblocks_original(x))
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-6)
    assert len(model.trainable_variables) == 4
    assert inner.polyblocks_report().whole


def test_attributes_that_are_set_are_the_layers():
    layer = keras.layers.Dense(3)
    compiled = strict(layer)
    compiled.trainable = False
    assert not layer.trainable
    with pytest.raises(AttributeError, match="has no attribute '__nothing__'"):
        getattr(compiled, "__nothing__")  # noqa: B009


class Encoder(keras.Model):
    def __init__(self):
        super().__init__(name="encoder")
        self.dense = keras.layers.Dense(2)
        self.told = []

    def call(self, x):
        return self.encode(x) + 1

    def encode(self, x):
        return self.dense(x)

    def tell(self, word):
        self.told.append(word)
        return len(self.told)

    def ones(self):
        return tf.ones((2,))

    def compute_mask(self, inputs, previous_mask):
        return previous_mask


def test_a_method_that_is_not_compiled_is_said(caplog):
    model = Encoder()
    compiled = polyblocks_jit_tf(model)
    x = floats(3, 4)
    for _ in range(2):
        np.testing.assert_allclose(compiled.encode(x) + 1, compiled(x), rtol=1e-5, atol=1e-6)
    assert [compiled.tell("a"), compiled.tell("b")] == [1, 2]
    said = [r.getMessage() for r in caplog.records if "TensorFlow runs" in r.getMessage()]
    assert len(said) == 1
    assert "TensorFlow runs encoder (encode): only the call of encoder is compiled" in said[0]
    assert "encoder (encode)" in str(compiled.polyblocks_report())
    hard = strict(model)
    with pytest.raises(FallbackError, match=r"polyblocks_jit_tf\(encoder.encode\); strict_target"):
        hard.encode(x)
    with pytest.raises(FallbackError, match=r"polyblocks_jit_tf\(encoder.ones\)"):
        hard.ones()
    with pytest.raises(FallbackError, match=r"polyblocks_jit_tf\(encoder.call\)"):
        hard.call(x)
    assert hard.tell("c") == 3
    assert hard.compute_mask(x, x) is x  # Keras calls it
    np.testing.assert_allclose(strict(model.encode)(x), model.encode(x), rtol=1e-5, atol=1e-6)


def test_masks_that_are_made_inside_reach_what_comes_after():
    def results(wrap):
        keras.utils.set_random_seed(0)
        given = keras.Input((5,), dtype="int32")
        embedded = keras.layers.Embedding(10, 4, mask_zero=True)(given)
        inner = wrap(keras.Model(given, keras.layers.Dense(3)(embedded), name="inner"))
        words = keras.Input((5,), dtype="int32")
        outer = keras.Model(words, keras.layers.GlobalAveragePooling1D()(inner(words)))
        called = keras.layers.GlobalAveragePooling1D()(inner(tf.constant(WORDS)))
        return outer(WORDS), outer.predict(WORDS, verbose=0), called

    ours, theirs = results(polyblocks_jit_tf), results(plain)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    unmasked = keras.layers.GlobalAveragePooling1D()
    assert not np.allclose(unmasked(floats(2, 5, 3)), theirs[0])


class Masking(keras.Model):
    def __init__(self, wrap):
        super().__init__()
        self.embed = wrap(keras.layers.Embedding(10, 4, mask_zero=True))
        self.dense = wrap(keras.layers.Dense(3))
        self.sequence = wrap(keras.layers.LSTM(2))

    def call(self, words):
        return self.sequence(self.dense(self.embed(words)))


@pytest.mark.extended
@pytest.mark.parametrize(
    "compiled",
    sweep([keras.layers.Dense, keras.layers.LSTM, keras.layers.Layer], keras.layers.Layer),
)
def test_masks_go_through_compiled_layers_of_a_subclassed_model(compiled):
    def results(wrap):
        keras.utils.set_random_seed(0)
        model = Masking(lambda layer: wrap(layer) if isinstance(layer, compiled) else layer)
        with tf.GradientTape() as tape:
            result = model(WORDS)
            loss = tf.reduce_sum(result**2)
        # In another compiled function they are a part of that.
        whole = wrap(lambda words: model(words))(WORDS)
        return result, whole, tape.gradient(loss, model.dense.kernel)

    # TensorFlow runs the loop of a masked LSTM.
    for a, b in zip(results(polyblocks_jit_tf), results(plain), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_masks_in_a_data_set():
    embed = keras.layers.Embedding(10, 4, mask_zero=True)
    dense = polyblocks_jit_tf(keras.layers.Dense(3))
    data = tf.data.Dataset.from_tensors(WORDS).map(lambda words: dense(embed(words)))
    (found,) = data
    np.testing.assert_allclose(found, dense.polyblocks_original(embed(WORDS)), rtol=1e-5, atol=1e-6)


class Noisy(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.drop = keras.layers.Dropout(0.5, seed=1)

    def call(self, x):
        return self.drop(x)


@pytest.mark.parametrize(
    "make",
    [Noisy, pytest.param(lambda: keras.layers.Dropout(0.5, seed=1), marks=pytest.mark.slow)],
)
def test_training_may_be_a_tensor(make):
    def results(wrap):
        inputs = keras.Input((4,))
        outer = keras.Model(inputs, wrap(make())(inputs))
        x = tf.ones((2, 4))
        given = (tf.constant(True), tf.constant(False), np.bool_(True), True)
        return [outer(x, training=training) for training in given]

    for ours, theirs in zip(results(strict), results(plain), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_training_may_be_a_tensor_of_the_call_itself():
    layer = keras.layers.Dropout(0.5, seed=1)
    x = tf.ones((8, 4))
    compiled = strict(layer)
    np.testing.assert_array_equal(compiled(x, training=tf.constant(False)), x)
    assert np.count_nonzero(compiled(x, training=tf.constant(True))) < 32


@pytest.mark.parametrize("make", sweep(["model", "layer"], "model"))
def test_what_is_quantized_is_compiled_anew(make):
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(8)], name="line")
    compiled = polyblocks_jit_tf(model if make == "model" else model.layers[0])
    x = floats(4, 16)
    before = compiled(x)
    if make == "model":
        compiled.predict(x, verbose=0)
    compiled.quantize("int8")
    expected = model(x)
    assert not np.allclose(expected, before, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-5, atol=1e-5)
    if make == "model":
        np.testing.assert_allclose(compiled.predict(x, verbose=0), expected, rtol=1e-5, atol=1e-5)
