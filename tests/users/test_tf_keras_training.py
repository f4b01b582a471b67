"""Keras on TensorFlow: fit, evaluate, predict and the *_on_batch methods of a compiled model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402
from polyblocks_tf.tracing import structure  # noqa: E402

strict = polyblocks_jit_tf(compile_options={"strict_target": True})

X = np.random.default_rng(0).random((24, 3), np.float32)
Y = X.sum(1, keepdims=True)


@pytest.fixture(autouse=True)
def on_tensorflow():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras runs on another framework here")


def regression(**configuration):
    keras.utils.set_random_seed(1)
    # Its variables are made when the first step is traced.
    model = keras.Sequential([keras.layers.Dense(1)], name="line")
    model.compile(keras.optimizers.SGD(0.1), "mse", **configuration)
    return model


def close(ours, theirs):
    for a, b in zip(tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


def use(model):
    history = model.fit(X, Y, batch_size=8, epochs=2, verbose=0, validation_data=(X[:8], Y[:8]))
    return [
        history.history,
        model.evaluate(X, Y, batch_size=8, verbose=0),
        model.predict(X, batch_size=8, verbose=0),
        model.train_on_batch(X[:8], Y[:8]),
        model.test_on_batch(X[:8], Y[:8]),
        model.predict_on_batch(X[:8]),
        model.get_weights(),
    ]


def test_fit_evaluate_predict_and_on_batch():
    expected = use(regression())
    model = regression()
    compiled = strict(model)
    close(use(compiled), expected)
    report = compiled.polyblocks_report()
    assert report.whole
    names = sorted({variant.name for variant in report.variants})
    assert names == ["line.predict_step", "line.test_step", "line.train_step"]
    # The model itself is still Keras's.
    assert model.train_function is None
    assert model.predict_function is None


@pytest.mark.slow
def test_fit_after_the_model_is_configured_anew():
    compiled = strict(regression())
    compiled.train_on_batch(X[:8], Y[:8])
    before = compiled.get_weights()
    compiled.compile(keras.optimizers.SGD(0.0), "mse")
    compiled.train_on_batch(X[:8], Y[:8])
    close(compiled.get_weights(), before)


@pytest.mark.slow
def test_steps_per_execution():
    expected = regression()
    expected.fit(X[:20], Y[:20], batch_size=4, epochs=1, verbose=0, shuffle=False)
    compiled = strict(regression(steps_per_execution=2))
    compiled.fit(X[:20], Y[:20], batch_size=4, epochs=1, verbose=0, shuffle=False)
    close(compiled.get_weights(), expected.get_weights())
    close(
        compiled.predict(X[:20], batch_size=4, verbose=0),
        expected.predict(X[:20], batch_size=4, verbose=0),
    )


def test_fit_of_an_eager_model_is_said(caplog):
    model = regression(run_eagerly=True)
    compiled = polyblocks_jit_tf(model)
    for _ in range(2):
        compiled.fit(X, Y, batch_size=8, epochs=1, verbose=0)
    said = [r.getMessage() for r in caplog.records if "line (fit)" in r.getMessage()]
    assert len(said) == 1
    assert "TensorFlow runs line (fit): the model is configured with run_eagerly=True" in said[0]
    assert "line (fit)" in str(compiled.polyblocks_report())
    with pytest.raises(FallbackError, match="run_eagerly=True.* strict_target forbids"):
        strict(model).fit(X, Y, verbose=0)


def test_what_overrides_the_making_of_steps_is_said():
    class Own(keras.Sequential):
        def make_train_function(self, force=False):
            return super().make_train_function(force)

    model = Own([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(FallbackError, match="Own overrides make_train_function; override train_st"):
        strict(model).fit(X, Y, verbose=0)


def test_predict_of_strings_leaves_what_reads_them(caplog):
    words = keras.Input((1,), dtype="string")
    lookup = keras.layers.StringLookup(vocabulary=["a", "b"])
    model = keras.Model(words, keras.layers.Embedding(3, 2)(lookup(words)), name="words")
    given = tf.constant([["b"], ["a"], ["c"]])
    compiled = polyblocks_jit_tf(model)
    close(compiled.predict(given, verbose=0), model.predict(given, verbose=0))
    assert "TensorFlow runs LookupTableFindV2" in caplog.text
    assert "strings are not compiled" in caplog.text
    with pytest.raises(FallbackError, match="strings are not compiled; strict_target forbids"):
        strict(model).predict(given, verbose=0)


def test_fit_under_a_strategy_is_said():
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        model = regression()
    with pytest.raises(FallbackError, match=r"tf\.distribute runs the steps of this model"):
        strict(model).fit(X, Y, verbose=0)


def test_attributes_that_are_set_are_the_models():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    compiled = strict(model)
    compiled.trainable = False
    assert not model.trainable
    compiled.compile("sgd", "mse")
    before = model.get_weights()
    stop = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: setattr(compiled, "stop_training", True)
    )
    history = compiled.fit(X, Y, epochs=3, verbose=0, callbacks=[stop])
    assert history.epoch == [0]
    close(model.get_weights(), before)
    with pytest.raises(AttributeError, match="polyblocks_original"):
        compiled.polyblocks_original = model


@pytest.mark.extended
def test_calls_in_threads_leave_the_steps_of_keras():
    model = regression()
    expected = model.predict(X, verbose=0)
    before = model.predict_function
    compiled = strict(model)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: compiled.predict(X, verbose=0), range(24)):
            close(found, expected)
    assert model.predict_function is before
    assert model.train_function is None


@pytest.mark.extended
@pytest.mark.parametrize("who", sweep(["compiled", "model", "callback"], "compiled", "callback"))
def test_a_step_is_made_anew_on_demand(who):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    if who == "model":
        model.make_train_function()
    compiled = strict(model)
    compiled.fit(X, Y, verbose=0)
    first, second = (layer.get_weights() for layer in model.layers)

    def freeze(*_):
        model.layers[0].trainable = False
        (model if who in ("model", "callback") else compiled).make_train_function(force=True)

    callbacks = [keras.callbacks.LambdaCallback(on_train_begin=freeze)]
    if who != "callback":
        freeze()
    compiled.fit(X, Y, verbose=0, callbacks=callbacks if who == "callback" else [])
    close(model.layers[0].get_weights(), first)
    assert not np.allclose(model.layers[1].get_weights()[0], second[0])
    assert "make_train_function" not in vars(model)
    report = compiled.polyblocks_report()
    assert report.whole
    assert len(report.variants) == 2


def test_other_threads_always_have_a_step_while_one_is_made(monkeypatch):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    given = tf.constant(X[:3])
    expected = model.predict(given, verbose=0)
    compiled = polyblocks_jit_tf(model)
    # No program takes what the step is given: Keras runs its own.
    monkeypatch.setattr(structure, "DTYPE_NAMES", {})
    leave, seen = tf.autograph.experimental.do_not_convert, []

    def spy(function):
        # Keras says so of each function that a step is made of.
        if "make_predict_function" in function.__qualname__:
            seen.append(model.predict_function)
        return leave(function)

    monkeypatch.setattr(tf.autograph.experimental, "do_not_convert", spy)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: compiled.predict(given, verbose=0), range(8)):
            close(found, expected)
    assert seen
    assert None not in seen


def test_fit_with_mixed_float16():
    def trained(wrap):
        keras.utils.set_random_seed(1)
        policy = keras.mixed_precision.DTypePolicy("mixed_float16")
        layers = [
            keras.Input((3,)),
            keras.layers.Dense(4, "relu", dtype=policy),
            keras.layers.BatchNormalization(dtype=policy),
            keras.layers.Dense(1, dtype="float32"),
        ]
        model = wrap(keras.Sequential(layers))
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
        model.compile(optimizer, "mse")
        history = model.fit(X, Y, batch_size=8, epochs=2, verbose=0, shuffle=False)
        return history.history, model.get_weights()

    ours, theirs = (tf.nest.flatten(trained(wrap)) for wrap in (strict, lambda model: model))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-3)


@pytest.mark.slow
def test_fit_with_dropout_normalization_metrics_and_adam():
    def trained(wrap):
        keras.utils.set_random_seed(1)
        model = keras.Sequential(
            [
                keras.layers.Dense(8, "relu"),
                keras.layers.Dropout(0.3),
                keras.layers.BatchNormalization(),
                keras.layers.Dense(3, "softmax"),
            ]
        )
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        labels = (X.sum(1) * 1.3).astype("int32") % 3
        wrapped = wrap(model)
        history = wrapped.fit(X, labels, batch_size=8, epochs=3, verbose=0, shuffle=False)
        return [history.history, model.get_weights()], wrapped

    expected, _ = trained(lambda model: model)
    found, compiled = trained(strict)
    close(found, expected)
    assert compiled.polyblocks_report().whole
