"""TensorFlow: variables that a compiled function reads and assigns, gradient tapes around it."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, floats  # noqa: E402

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

strict = polyblocks_jit_tf(compile_options={"strict_target": True})


def test_variables_are_read_at_each_call():
    v = tf.Variable([1.0, 2.0, 3.0])
    f = strict(lambda x: x * v)
    x = floats(3)
    assert_same(f(x), x * v)
    v.assign([4.0, 5.0, 6.0])
    assert_same(f(x), x * v)


def test_assignments_are_visible_outside():
    v, count = tf.Variable(tf.zeros(3)), tf.Variable(0)

    @strict
    def f(x):
        v.assign_add(x)
        count.assign_add(1)
        before = v + 0.0
        v.assign(v * 2.0)
        return before

    x = floats(3)
    assert_same(f(x), x)
    assert_same(v.value(), 2 * x)
    assert_same(f(x), 3 * x)
    assert_same(v.value(), 6 * x)
    assert count.numpy() == 2


def test_a_value_read_before_keeps_its_contents():
    v = tf.Variable(tf.ones(5000))

    @strict
    def f():
        v.assign_add(tf.ones(5000))

    before = v.value()
    assert f() is None
    after = v.value()
    f()
    v.assign_add(tf.ones(5000))
    assert (before.numpy() == 1).all()
    assert (after.numpy() == 2).all()
    assert (v.numpy() == 4).all()


def test_an_assigned_argument_is_no_alias():
    v = tf.Variable(tf.zeros(5000))

    @strict
    def f(x):
        v.assign(x)
        return x

    x = np.ones(5000, np.float32)
    y = f(x)
    v.assign_add(tf.ones(5000))
    assert (y.numpy() == 1).all()
    assert (x == 1).all()


def test_a_variable_of_unknown_shape_falls_back():
    v = tf.Variable(tf.ones(3), shape=[None])
    f = polyblocks_jit_tf(lambda x: tf.sin(x) + v)
    x = floats(3)
    assert_same(f(x), tf.sin(x) + 1)
    assert not f.polyblocks_report().whole


def test_a_variable_as_an_argument():
    v = tf.Variable(2.0)

    @strict
    def f(variable, x):
        variable.assign_add(1.0)
        return x * variable

    x = floats(3)
    assert_same(f(v, x), x * 3.0)
    assert_same(f(v, x), x * 4.0)
    assert v.numpy() == 4


def test_variables_made_at_the_first_call():
    class Layer(tf.Module):
        w = None

        @strict
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones((x.shape[-1], 2)))
            return x @ self.w

    layer = Layer()
    x = floats(3, 4)
    assert_same(layer(x), x @ tf.ones((4, 2)))
    layer.w.assign(layer.w * 2)
    assert_same(layer(x), x @ tf.ones((4, 2)) * 2)
    assert_same(layer(floats(2, 4)), floats(2, 4) @ tf.ones((4, 2)) * 2)


def test_training_step():
    w, b = tf.Variable(tf.zeros((3, 1))), tf.Variable(tf.zeros(1))
    x = floats(64, 3)
    y = x @ tf.constant([[1.0], [-2.0], [0.5]]) + 0.25

    @strict
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w + b - y))
        for variable, gradient in zip([w, b], tape.gradient(loss, [w, b]), strict=True):
            variable.assign_sub(0.5 * gradient)
        return loss

    losses = [step(x, y).numpy() for _ in range(60)]
    assert losses[-1] < 1e-4 * losses[0]
    np.testing.assert_allclose(w.numpy()[:, 0], [1, -2, 0.5], atol=0.02)


class TestTapeOutside:
    def test_gradients_of_arguments_and_variables(self):
        w = tf.Variable(floats(4, 3, seed=1))

        def f(x):
            return tf.tanh(x @ w), tf.reduce_sum(x)

        x = floats(5, 4)
        compiled = strict(f)
        for g in (f, compiled):
            with tf.GradientTape() as tape:
                tape.watch(x)
                a, b = g(x)
                loss = tf.reduce_sum(a * a) + 3 * b
            found = tape.gradient(loss, [x, w])
            if g is f:
                expected = found
        assert_same(found, expected)
        kinds = [v.kind for v in compiled.polyblocks_report().variants]
        assert "forward" in kinds
        assert compiled.polyblocks_report().whole

    def test_second_derivative(self):
        f = strict(lambda x: x * x * x)
        x = tf.constant([2.0, 3.0])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.gradient(y, x)
        assert_same(first, 3 * x * x)
        assert_same(outer.gradient(first, x), 6 * x)

    def test_nothing_watched_costs_nothing(self):
        f = strict(lambda x: x + 1)
        with tf.GradientTape():
            f(floats(3))
        assert [v.kind for v in f.polyblocks_report().variants] == ["inference"]

    def test_a_function_that_assigns_is_left_to_tensorflow(self):
        v = tf.Variable(1.0)

        def f(x):
            v.assign_add(1.0)
            return x * v

        x = tf.constant(3.0)
        compiled = polyblocks_jit_tf(f)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = compiled(x)
        assert tape.gradient(y, x).numpy() == 2
        assert v.numpy() == 2
        (row,) = compiled.polyblocks_report().fallbacks
        assert "gradient tape outside" in row.reason
        with tf.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(FallbackError, match="gradient tape outside"):
                strict(f)(x)
