"""TensorFlow: what cannot be compiled, its reports, crashes of native code, random numbers."""

from __future__ import annotations

import logging
import os
import signal
import threading

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, check, floats  # noqa: E402

import polyblocks  # noqa: E402
from polyblocks.errors import ExecutionError, FallbackError, UnsupportedError  # noqa: E402
from polyblocks_tf import export, importer, polyblocks_jit_tf  # noqa: E402


@pytest.fixture
def plant(monkeypatch):
    """``plant(type, act)``: importing a graph that holds such an operation calls ``act`` first."""
    proper = importer.import_capture

    def make(kind, act):
        def import_capture(capture):
            if any(op.type == kind for op in capture.concrete.graph.get_operations()):
                act()
            return proper(capture)

        monkeypatch.setattr(importer, "import_capture", import_capture)

    return make


def refuse():
    raise UnsupportedError("planted: no lowering")


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def test_only_the_operation_that_fails_is_left(plant, caplog):
    plant("Cosh", refuse)

    def f(x, y):
        a = tf.exp(x * 2 + 1)
        b = tf.cosh(a - y)
        return tf.sigmoid(b + y), a

    with caplog.at_level(logging.WARNING, "polyblocks"), polyblocks.explain() as watched:
        report = check(f, floats(4, 5), floats(5), whole=False)
    assert report.variants[0].outcome == "partitioned"
    assert report.variants[0].parts == 2
    (row,) = report.fallbacks
    assert row.op == "Cosh"
    assert row.reason == "planted: no lowering"
    line = f.__code__.co_firstlineno + 2
    assert row.location == f"{__file__}:{line}"
    assert "TensorFlow runs Cosh" in caplog.text
    assert list(watched.fallbacks) == [row]


@pytest.mark.cpu
@pytest.mark.isolated
def test_a_crash_is_a_fallback(plant):
    plant("Atan2", crash)
    report = check(lambda x, y: tf.atan2(x + 1, y) * 2, floats(7), floats(7), whole=False)
    (row,) = report.fallbacks
    assert row.op == "Atan2"
    assert "SIGSEGV" in row.reason


@pytest.fixture
def plant_in_bridge(monkeypatch):
    """``plant_in_bridge(type, act)``: XLA's bridge calls ``act`` at such an operation."""
    proper = export._translate

    def make(kind, act):
        def translate(concrete, where):
            if any(op.type == kind for op in concrete.graph.get_operations()):
                act()
            return proper(concrete, where)

        monkeypatch.setattr(export, "_translate", translate)

    return make


def failed_check():
    os.write(2, b"F0000 tensor_list_utils.cc:61] Check failed: shape.IsTuple()\n")
    os.abort()


@pytest.mark.isolated
def test_an_abort_of_the_bridge_is_a_fallback(plant_in_bridge):
    plant_in_bridge("Atan2", failed_check)

    def f(x, y):
        return tf.atan2(x + 2, y) * 3

    report = check(f, floats(7), floats(7), whole=False)
    (row,) = report.fallbacks
    assert row.op == "Atan2"
    assert row.location == f"{__file__}:{f.__code__.co_firstlineno + 1}"
    assert "SIGABRT" in row.reason
    assert "'export'" in row.reason
    assert "Check failed: shape.IsTuple()" in row.reason
    strict = polyblocks_jit_tf(f, compile_options={"strict_target": True})
    with pytest.raises(FallbackError, match=r"Atan2: .*SIGABRT.*strict_target.*fallback.py:\d+"):
        strict(floats(7), floats(7))


@pytest.mark.isolated
def test_a_bridge_that_waits_for_a_lock_runs_in_this_process(plant_in_bridge, monkeypatch):
    here = os.getpid()
    monkeypatch.setattr(export, "_STALL_S", 0.3)
    plant_in_bridge("Asinh", lambda: os.getpid() == here or threading.Event().wait())
    check(lambda x: tf.asinh(x) * 2, floats(7))


def test_strict_target_raises(plant):
    plant("Cosh", refuse)

    @polyblocks_jit_tf(compile_options={"strict_target": True})
    def f(x):
        return tf.cosh(x) + 1

    with pytest.raises(FallbackError, match=r"Cosh: planted.*strict_target.* at .*fallback.py:\d+"):
        f(floats(3))


def test_what_the_bridge_does_not_know():
    def f(x):
        text = tf.strings.as_string(tf.cast(x * 3, tf.int32))
        return tf.strings.to_number(text) + x

    report = check(f, tf.constant([1.5, 2.5]), whole=False)
    assert {row.op for row in report.fallbacks} == {"AsString", "StringToNumber"}
    assert report.variants[0].outcome == "partitioned"


@pytest.mark.parametrize(
    "text",
    [
        lambda words: tf.constant(words),
        lambda words: np.array(words),
        lambda words: np.array(words, object),
        lambda words: np.array([word.encode() for word in words]),
    ],
    ids=["tensor", "unicode", "objects", "bytes"],
)
def test_strings_among_the_arguments(text):
    def f(words, x):
        return tf.cast(tf.strings.length(words), tf.float32) * x + 1, words

    compiled = polyblocks_jit_tf(f)
    for words in (["a", "bcd"], ["", "ef"]):
        assert_same(compiled(text(words), floats(2)), f(tf.constant(words), floats(2)))
    report = compiled.polyblocks_report()
    assert len(report.variants) == 1  # strings are data
    assert report.variants[0].outcome == "partitioned"
    assert {row.op: row.reason for row in report.fallbacks}["StringLength"] == (
        "strings are not compiled"
    )
    strict = polyblocks_jit_tf(f, compile_options={"strict_target": True})
    with pytest.raises(FallbackError, match="strings are not compiled; strict_target forbids"):
        strict(text(["a", "b"]), floats(2))


def test_a_gradient_outside_of_a_function_of_strings():
    @polyblocks_jit_tf
    def f(words, x):
        return tf.cast(tf.strings.length(words), tf.float32) * tf.sin(x)

    x, words = floats(2), tf.constant(["a", "bcd"])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(words, x)
    assert_same(tape.gradient(y, x), tf.constant([1.0, 3.0]) * tf.cos(x))


def test_one_operation_takes_no_neighbours_along():
    """The gradient of a resampling is left; a normalization and its gradient, a loop that fills an
    array and the gradient of that are compiled.
    """

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, _, _ = tf.compat.v1.nn.fused_batch_norm(x, tf.ones(2), tf.zeros(2))
            steps = tf.TensorArray(tf.float32, size=3)
            for i in tf.range(3):
                y = tf.tanh(y * 1.5)
                steps = steps.write(i, y)
            y = tf.reduce_sum(steps.stack(), 0)
            y = tf.image.crop_and_resize(y, [[0.0, 0.1, 0.9, 1.0]], [0], (4, 6))
            total = tf.reduce_sum(y**2)
        return tape.gradient(total, x)

    report = check(f, floats(1, 2, 3, 2), whole=False)
    assert [row.op for row in report.fallbacks] == ["CropAndResizeGradImage"]


def test_an_array_that_grows_under_a_tape_is_left_with_its_loops():
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            steps = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for i in tf.range(3):
                steps = steps.write(i, tf.sin(x) * tf.cast(i, tf.float32))
            total = tf.reduce_sum(steps.stack())
        return tape.gradient(total, x), tf.tanh(x * 2)

    report = check(f, floats(5), whole=False)
    reasons = {row.op: row.reason for row in report.fallbacks}
    assert "makes a TensorArray grow" in reasons["TensorListSetItem"]
    assert reasons["TensorListStack"].startswith(
        "it shares what is no array with TensorListSetItem, which is left: it makes a TensorArray g"
    )
    assert "Tanh" not in reasons


def test_a_shape_that_depends_on_values():
    def f(x):
        return tf.boolean_mask(x * 2, x > 0)

    x = floats(20)
    report = check(f, x, whole=False)
    assert report.fallbacks
    assert polyblocks_jit_tf(f)(-tf.abs(x)).shape == (0,)


def test_an_argument_that_is_a_shape():
    x, shape = floats(6), tf.constant([2, 3])
    report = check(lambda x, s: tf.reshape(x + 1, s) * 2, x, shape, whole=False)
    assert report.fallbacks


def in_a_loop(x):
    total = tf.zeros(())
    for i in tf.range(2):
        tf.debugging.assert_less(total, 3.0, "must be positive")
        total -= 4 * x[i]
    return total


def in_a_branch(x):
    def positive():
        tf.debugging.assert_positive(x, "must be positive")
        return tf.sqrt(x)

    return tf.cond(tf.reduce_sum(x) < 100, positive, lambda: x)


def in_a_branch_that_is_half_read(x):
    """The check is not in what is not read."""

    def positive():
        tf.debugging.assert_positive(x, "must be positive")
        return tf.constant(1.0), tf.sqrt(x)

    return tf.cond(tf.reduce_sum(x) < 100, positive, lambda: (tf.constant(2.0), x))[1]


def between_draws(x):
    y = x + 0 * tf.random.uniform((2,))
    tf.Assert(tf.reduce_all(y > 0), ["must be positive", y])
    return y + 0 * tf.random.uniform((2,))


def unread(x):
    tf.debugging.check_numerics(tf.math.log(x), "must be positive")
    return 1.0


@pytest.mark.parametrize(
    "f", [in_a_loop, in_a_branch, in_a_branch_that_is_half_read, between_draws, unread]
)
def test_checks_are_compiled(f):
    compiled = polyblocks_jit_tf(f, compile_options={"strict_target": True})
    right, wrong = tf.constant([4.0, 9.0]), tf.constant([-4.0, -9.0])
    assert_same(compiled(right), tf.function(f)(right))
    for kind in (tf.errors.InvalidArgumentError, ExecutionError):
        with pytest.raises(kind, match="must be positive"):
            compiled(wrong)
    assert compiled.polyblocks_report().whole


def test_a_gradient_outside_sees_a_check():
    @polyblocks_jit_tf(compile_options={"strict_target": True})
    def f(x):
        tf.debugging.assert_positive(x, "must be positive")
        return x * x

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    assert_same(gradient(tf.constant([3.0])), tf.constant([6.0]))
    with pytest.raises(ExecutionError, match="must be positive"):
        gradient(tf.constant([-3.0]))


def test_checks_are_not_left_out():
    """Where nothing comes back that could be checked, where TensorFlow runs what follows, and
    where parts have effects.
    """
    number = tf.Variable([0.0])

    def in_a_branch_that_is_not_read(x):
        if tf.reduce_sum(x) < 100:
            tf.debugging.assert_positive(x, "must be positive")
        return x * 2

    def in_a_loop_that_is_not_read(x):
        for i in tf.range(tf.shape(x)[0]):
            tf.debugging.assert_positive(x[i], "must be positive")
        return x * 2

    def assigns(x):
        tf.debugging.assert_positive(x, "must be positive")
        number.assign_add(x)

    def follows(x):
        tf.debugging.assert_positive(x, "must be positive")
        return tf.strings.as_string(x)

    def draws_and_assigns(x):
        y = x + 0 * tf.random.uniform((1,))
        tf.debugging.assert_positive(y, "must be positive")
        number.assign(y)
        return number + tf.random.uniform((1,))

    cases = assigns, follows, draws_and_assigns, in_a_branch_that_is_not_read
    for f in (*cases, in_a_loop_that_is_not_read):
        compiled = polyblocks_jit_tf(f)
        compiled(tf.constant([4.0]))
        with pytest.raises((tf.errors.InvalidArgumentError, ExecutionError), match="be positive"):
            compiled(tf.constant([-4.0]))
        fallbacks = {row.op for row in compiled.polyblocks_report().fallbacks}
        assert not fallbacks.isdisjoint({"Assert", "If"}), f
    assert_same(number.read_value(), tf.constant([4.0]))


def test_prints_are_printed(capfd):
    @polyblocks_jit_tf
    def f(x):
        y = x * 2
        tf.print("value", y)
        return y + 1

    assert_same(f(tf.constant(3.0)), tf.constant(7.0))
    f(tf.constant(4.0))
    assert capfd.readouterr().err.splitlines() == ["value 6", "value 8"]


def test_draws_are_those_of_tensorflow():
    def f(x):
        return tf.random.normal((4,)) * x + tf.random.uniform((4,))

    x = floats(4)
    tf.random.set_seed(3)
    expected = [tf.function(f)(x) for _ in range(1)]
    tf.random.set_seed(3)
    compiled = polyblocks_jit_tf(f, compile_options={"strict_target": True})
    assert_same([compiled(x)], expected)
    report = compiled.polyblocks_report()
    assert report.whole
    assert {row["op"] for row in report.random_draws} == {"RandomStandardNormal", "RandomUniform"}
    assert "TensorFlow's generator" in str(report)
    assert not np.array_equal(compiled(x).numpy(), compiled(x).numpy())


STATELESS = {
    "uniform": lambda s: tf.random.stateless_uniform((1000,), s),
    "uniform int": lambda s: tf.random.stateless_uniform((999,), s, 3, 1000, tf.int32),
    "uniform full": lambda s: tf.random.stateless_uniform((99,), s, None, None, tf.int64),
    "uniform double": lambda s: tf.random.stateless_uniform((99,), s, dtype=tf.float64),
    "uniform half": lambda s: tf.random.stateless_uniform((99,), s, dtype=tf.float16),
    "uniform bfloat16": lambda s: tf.random.stateless_uniform((99,), s, dtype=tf.bfloat16),
    "truncated": lambda s: tf.random.stateless_truncated_normal((1000,), s),
    "gamma": lambda s: tf.random.stateless_gamma((100,), s, 2.0),
    "split": lambda s: tf.random.split(s, 3),
    "fold_in": lambda s: tf.random.fold_in(s, 7),
    "philox": lambda s: tf.random.stateless_uniform((99,), s, alg="philox"),
    "dropout": lambda s: tf.nn.experimental.stateless_dropout(tf.ones(500), 0.3, s),
    "shuffle": lambda s: tf.random.experimental.stateless_shuffle(tf.range(50), s),
}


@pytest.mark.parametrize(
    "name", sweep(STATELESS, "uniform", "gamma", "shuffle", extended=["dropout"])
)
def test_stateless_draws_have_the_same_bits(name):
    draw = STATELESS[name]
    call = polyblocks_jit_tf(draw)
    for seed in ([1, 2], [-5, 1 << 30]):
        expected = draw(tf.constant(seed))
        got = call(tf.constant(seed))
        assert expected.dtype == got.dtype
        assert expected.numpy().tobytes() == got.numpy().tobytes()


@pytest.mark.extended
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_normal_numbers_are_those_of_tensorflow(dtype):
    """Two of each four words are a pair; logarithms and sines may round otherwise."""

    def draw(seed, mean):
        numbers = tf.random.stateless_normal((1, 1001), seed, mean, 0.5, dtype)
        return numbers, tf.random.stateless_normal((), seed, dtype=dtype)

    call = polyblocks_jit_tf(draw, compile_options={"strict_target": True})
    kind = tf.as_dtype(dtype)
    rounding = {tf.float64: 1e-15, tf.float32: 4e-7, tf.float16: 2e-3, tf.bfloat16: 2e-2}[kind]
    for seed in ([1, 2], [-5, 1 << 30]):
        mean = tf.constant(0.25, dtype)
        for want, got in zip(draw(tf.constant(seed), mean), call(seed, mean), strict=True):
            assert got.dtype == want.dtype
            assert got.shape == want.shape
            want, got = (tf.cast(array, tf.float64).numpy() for array in (want, got))
            np.testing.assert_allclose(got, want, rtol=4 * rounding, atol=rounding)


def test_random_numbers_in_a_loop():
    def f(x):
        return tf.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, x + tf.random.uniform((2,))), [0, x]
        )[1]

    compiled = polyblocks_jit_tf(f)
    tf.random.set_seed(5)
    expected = tf.function(f)(tf.zeros(2))
    tf.random.set_seed(5)
    assert_same(compiled(tf.zeros(2)), expected)
