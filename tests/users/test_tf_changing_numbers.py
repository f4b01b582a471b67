"""TensorFlow: Python numbers whose values change between calls; many sizes of one dimension."""

from __future__ import annotations

import functools

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, floats  # noqa: E402

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402
from polyblocks_tf.numbers.inspection import asks_for_types  # noqa: E402

strict = polyblocks_jit_tf(compile_options={"strict_target": True})

X = floats(5, low=0.1)


def variants(function, values, *arrays):
    """How many variants these values of the last argument give; each is as in a tf.function."""
    compiled = strict(function)
    plain = tf.function(function, autograph=False)
    for value in values:
        assert_same(compiled(*arrays, value), plain(*arrays, value), rtol=1e-6)
    report = compiled.polyblocks_report()
    assert report.whole
    return len(report.variants)


def slow(*functions):
    return [pytest.param(function, marks=pytest.mark.slow) for function in functions]


FLOATS = [i / 7 for i in range(20)]
INTEGERS = [3, -1, 0, 7, 1 << 20]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, a: x + (2 * a - 1) / 3,
        *slow(
            lambda x, a: x * a,
            lambda x, a: 1.0 / (a + 1) * x,
            lambda x, a: tf.clip_by_value(x**a, -abs(a), a) + tf.where(x > a, a, 0.0),
            lambda x, a: (a, tf.fill([2], -a), tf.cast(x, tf.float64) * a),
        ),
    ],
)
def test_twenty_values_of_a_float_give_two_variants(function):
    assert variants(function, FLOATS, X) == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x, a: (x * a, tf.range(3) + a),
        *slow(
            lambda x, a: (x / (a * a + 1), tf.cast(a, tf.float32) - x),
            lambda x, a: x * (a / 3),
        ),
    ],
)
def test_values_of_an_integer_give_two_variants(function):
    assert variants(function, INTEGERS, X) == 2


@pytest.mark.slow
def test_numbers_in_structures_and_several_at_once():
    pairs = [{"a": 0.1 * i, "b": i} for i in range(4)]
    assert variants(lambda x, p: x * p["a"] + p["b"], pairs, X) == 2


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda x, a: x if a > 0.3 else -x, [0.1, 0.2, 0.6]),
        pytest.param(lambda x, a: x * float(a), [0.1, 0.2, 0.6], marks=pytest.mark.slow),
        pytest.param(
            lambda x, a: x * {1: 2.0, 2: 3.0, 3: 4.0}[a], [1, 2, 3], marks=pytest.mark.slow
        ),
        pytest.param(lambda x, a: tf.zeros((a, 2)), [1, 2, 3], marks=pytest.mark.slow),
        pytest.param(lambda x, a: tf.range(a), [1, 2, 3], marks=pytest.mark.slow),
        pytest.param(lambda x, a: tf.one_hot([0, 1], a), [1, 2, 3], marks=pytest.mark.slow),
        pytest.param(lambda x, a: tf.reduce_sum(x[:, None], a), [0, 1, -1], marks=pytest.mark.slow),
        # Rounded to float16, as Python does it.
        pytest.param(
            lambda x, a: tf.cast(x, tf.float16) * a, [0.1, 0.2, 0.6], marks=pytest.mark.slow
        ),
    ],
)
def test_a_number_whose_value_is_needed_stays_a_constant(function, values):
    assert variants(function, values, X) == 3


@pytest.mark.slow
def test_one_number_that_changes_and_one_whose_value_is_needed():
    compiled = strict(lambda x, a, n: tf.reduce_sum(x[:, None] * a, n))
    for a in (0.1, 0.2, 0.3, 0.4):
        for n in (0, 1):
            assert_same(compiled(X, a, n), tf.reduce_sum(X[:, None] * a, n))
    # Of each value of n one of constants, and one with a changing.
    assert len(compiled.polyblocks_report().variants) == 4


@pytest.mark.slow
def test_values_for_which_constants_are_not_what_a_scalar_is():
    # An integer that int32 does not hold makes a tensor of int64.
    assert variants(lambda a: tf.convert_to_tensor(a), [1, 2, 3, 1 << 40]) == 3
    compiled = strict(lambda x, a: x * (1 / a))
    for a in (2.0, 4.0, 8.0):
        assert_same(compiled(X, a), X / a)
    with pytest.raises(Exception, match="float division by zero"):
        compiled(X, 0.0)
    assert_same(compiled(X, 3.0), X / 3)
    with pytest.raises(Exception, match="int32"):
        strict(lambda x, a: tf.range(3) + a)(X, 2.5)


@pytest.mark.slow
def test_signed_zeros_and_nans_are_values():
    compiled = strict(lambda x, a: x * a)
    signs = [np.signbit(compiled(X, a).numpy()[0]) for a in (0.0, -0.0, 0.0, -0.0)]
    assert signs == [False, True, False, True]
    assert np.isnan(compiled(X, float("nan")).numpy()).all()
    assert len(compiled.polyblocks_report().variants) == 2


@pytest.mark.slow
def test_what_falls_back_with_a_constant_may_fall_back_with_a_changing_number():
    def function(x, a):
        return tf.strings.to_number(tf.strings.as_string(x * a)) + a

    compiled = polyblocks_jit_tf(function)
    for a in (0.1, 0.2, 0.3):
        assert_same(compiled(X, a), function(X, a))
    report = compiled.polyblocks_report()
    assert len(report.variants) == 2
    assert {f.op for f in report.fallbacks} == {"AsString", "StringToNumber"}


@pytest.mark.slow
def test_a_tape_around_a_call_with_a_changing_number():
    compiled = strict(lambda x, a: x * x * a)
    for a in (0.5, 0.25, 2.0):
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = compiled(X, a)
        assert_same(tape.gradient(y, X), 2 * X * a)


def test_an_integer_outside_of_64_bits_is_a_constant():
    assert variants(lambda x, a: x * a, (1, 2, 1 << 70, 3, -(1 << 63) - 1), X) == 4
    # Seen before others changed, it makes each value a constant.
    assert variants(lambda x, a: x * a, (1, 1 << 70, 2), X) == 3


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda x, a: x * a.real + a.imag + a.conjugate(), (0.5, 1.5, 2.5)),
        (lambda x, a: x if a.is_integer() else x * 2, (0.5, 1.0, 2.5)),
        (lambda x, a: x * a.numerator / a.denominator + a.bit_length(), (1, 5, 9)),
        pytest.param(
            lambda x, a: x * a.as_integer_ratio()[1], (0.5, 0.25, 0.125), marks=pytest.mark.slow
        ),
    ],
)
def test_attributes_of_a_number_are_those_of_its_value(function, values):
    assert variants(function, values, X) == 3


def is_int(n):
    return type(n) is int


class Scale:
    def __init__(self):
        self.calls = 0

    def __repr__(self):
        return f"{type(self).__name__}()"

    def __call__(self, x, n):
        return x * 2 if is_int(n) else -x

    def scaled(self, x, n):
        return self(x, n)

    def plain(self, x, n):
        return x * n if isinstance(n, int) else -x


@pytest.mark.parametrize(
    "function",
    [
        *slow(lambda x, n: x * 2 if type(n) is int else -x),
        lambda x, n: (lambda m: x if is_int(m) else -x)(n),
        *slow(Scale()),
        Scale().scaled,
        functools.partial(lambda y, x, n: x * 2 if type(n) is int else -x, 1),
        tf.function(lambda x, n: x * type(n)(2)),
    ],
)
def test_the_type_of_a_number_is_that_of_its_value(function):
    compiled = strict(function)
    for n in (1, 2, 3, 0.5, 1.5, 2.5):
        assert_same(compiled(X, n), function(X, n), rtol=1e-6)
    assert len(compiled.polyblocks_report().variants) == 6


class Methods:
    @strict
    def scaled(self, x, n):
        return self.other(x, n)

    def other(self, x, n):
        return x * 2 if type(n) is int else -x


def test_the_type_of_a_number_in_another_method():
    made = Methods()
    for n in (1, 2, 3):
        assert_same(made.scaled(X, n), X * 2)


def test_what_asks_for_no_type_has_numbers_that_change():
    def named(x, n):
        return x.type * n

    assert not asks_for_types(named)
    assert not asks_for_types(lambda x, n: tf.nest.map_structure(abs, x))
    # isinstance is answered.
    assert variants(lambda x, n: x * n if isinstance(n, int) else -x, INTEGERS, X) == 2
    compiled = strict(Scale().plain)
    for n in (1, 2, 3):
        assert_same(compiled(X, n), X * n)
    # The __call__ of its class asks.
    assert len(compiled.polyblocks_report().variants) == 3


def test_a_number_that_the_function_keeps_is_dead_afterwards():
    kept = []

    def f(x, a):
        kept.append(a)
        return x * a

    compiled = strict(f)
    compiled(X, 1.0)
    compiled(X, 2.0)
    assert repr(kept[1]) == "<changing number>"
    with pytest.raises(TypeError, match="has no value"):
        float(kept[1])


@pytest.mark.slow
def test_many_sizes_are_said_once(caplog):
    @polyblocks_jit_tf(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def f(x):
        return x + 1

    for n in range(1, 7):
        f(tf.ones((n, 2)))
    lines = [r.getMessage() for r in caplog.records if r.name == "polyblocks"]
    assert len(lines) == 1
    assert "f: compiled for 4 sizes of dimension 0 of argument 0 (1, 2, 3, 4)" in lines[0]
