"""TensorFlow: a compiled function that is called inside tf.function or tf.data.Dataset.map."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, floats  # noqa: E402

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

strict = polyblocks_jit_tf(compile_options={"strict_target": True})


def test_dataset_map_runs_compiled():
    factor = tf.Variable(2.0)

    @strict
    def f(x):
        return {"y": x * factor, "none": None}

    rows = floats(6, 2).numpy()
    data = tf.data.Dataset.from_tensor_slices(rows).batch(4).map(f, num_parallel_calls=2)
    assert data.element_spec["y"] == tf.TensorSpec([None, 2], tf.float32)
    for value in (2.0, 3.0):
        factor.assign(value)
        found = list(data)
        assert found[0]["none"] is None
        np.testing.assert_allclose(np.concatenate([e["y"] for e in found]), rows * value)
    assert f.polyblocks_report().whole
    assert len(f.polyblocks_report().variants) == 2  # of four rows, and of the last two


@pytest.mark.slow
def test_dataset_map_orders_variables():
    count = tf.Variable(0.0)
    f = strict(lambda x: x * 0 + count)
    data = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])
    data = data.map(lambda x: (count.assign_add(1.0), f(x), count.assign_add(1.0)))
    assert [y.numpy() for _, y, _ in data] == [1.0, 3.0, 5.0]


@pytest.mark.slow
def test_dataset_filter_runs_compiled():
    f = strict(lambda x: x > 1)
    assert [int(x) for x in tf.data.Dataset.range(4).filter(f)] == [2, 3]
    assert f.polyblocks_report().whole


def test_dataset_map_of_strings_is_said(caplog):
    f = polyblocks_jit_tf(lambda x: tf.strings.as_string(x))
    data = tf.data.Dataset.range(2).map(lambda x: f(x))
    assert [x.numpy() for x in data] == [b"0", b"1"]
    assert "(call in tf.data) at " in caplog.text
    assert "it takes or gives more than arrays of numbers" in str(f.polyblocks_report())


def test_a_call_inside_tf_function_is_said(caplog):
    @polyblocks_jit_tf
    def inner(x):
        return x * 2

    @tf.function
    def outer(x):
        return inner(x) + 1

    for n in (3, 4):
        assert_same(outer(floats(n)), floats(n) * 2 + 1)
    lines = [r.getMessage() for r in caplog.records if r.name == "polyblocks"]
    assert len(lines) == 1
    assert "TensorFlow runs inner (call in a tf.function) at " in lines[0]
    assert "test_tf_calls_inside_functions.py" in lines[0]
    assert "compile that one instead" in lines[0]
    assert "inner (call in a tf.function)" in str(inner.polyblocks_report())
    assert not inner.polyblocks_report().whole
    assert_same(tf.function(inner, jit_compile=True)(floats(3)), floats(3) * 2)


def test_a_strict_function_inside_tf_function():
    inner = strict(lambda x: x * 2)
    with pytest.raises(FallbackError, match=r"call in a tf\.function.*strict_target forbids"):
        tf.function(lambda x: inner(x))(floats(3))


@pytest.mark.slow
def test_a_gradient_through_a_call_inside_tf_function():
    weight = tf.Variable(floats(3))
    inner = polyblocks_jit_tf(lambda x: tf.tanh(x * weight))

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(inner(x))
        return tape.gradient(loss, weight)

    x = floats(3, seed=1)
    assert_same(gradient(x), x * (1 - tf.tanh(x * weight) ** 2))


def test_a_part_of_a_compiled_function():
    inner = strict(lambda x: x * 2)

    @strict
    def outer(x):
        return inner(x) - 1

    assert_same(outer(floats(3)), floats(3) * 2 - 1)
    assert outer.polyblocks_report().whole
    assert str(inner.polyblocks_report()) == "<lambda>: compiled as a part of outer"
    assert inner.polyblocks_report().to_json()["callers"] == ["outer"]
