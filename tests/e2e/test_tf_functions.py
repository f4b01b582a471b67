"""TensorFlow: functions, arguments and results in structures, dtypes, control flow."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, check, floats  # noqa: E402

from polyblocks.errors import InputError, OptionError, TargetError  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf, polymage_jit_tf  # noqa: E402


def test_decorator_without_parentheses():
    @polyblocks_jit_tf
    def double(x):
        """Twice."""
        return x * 2

    x = floats(5)
    assert_same(double(x), x * 2)
    assert double.__name__ == "double"
    assert double.__doc__ == "Twice."
    assert double.polyblocks_report().whole


def test_decorator_with_options_and_at_the_call_site():
    def f(x):
        return tf.nn.relu(x) + 1

    x = floats(3, 4)
    for decorated in (
        polyblocks_jit_tf(compile_options={"target": "cpu"})(f),
        polyblocks_jit_tf({"num_threads": 1})(f),
        polyblocks_jit_tf(f, compile_options={"strict_target": True}),
        polyblocks_jit_tf(tf.function(f)),
        polyblocks_jit_tf(polyblocks_jit_tf(f)),
    ):
        assert_same(decorated(x), f(x))


@pytest.mark.parametrize("backend", ["std", "xla", "polyblocks"])
def test_execution_backends(backend):
    def f(x):
        return tf.reduce_sum(x * x, axis=0)

    x = floats(3, 4)
    g = polymage_jit_tf(f, execution_backend=backend, runtime_args={"target": "cpu"})
    assert_same(g(x), f(x))
    assert_same(polymage_jit_tf(execution_backend=backend)(f)(x), f(x))
    assert_same(polymage_jit_tf(tf.function(f), execution_backend=backend)(x), f(x))


def test_calls_that_differ_in_anything_but_the_contents_of_arrays():
    def f(a, b=None, *, scale=False, by=None):
        if isinstance(a, dict):
            total = sum(k * v for k, v in a.items())
        else:
            total = a if tf.is_tensor(a) or isinstance(a, np.ndarray) else a[0] - a[1]
        total = total if b is None else total + (5.0 if b is True else 7.0 if b is False else b)
        if scale:
            total = 2.0 * total
        return total if by is None else {"by": total / by["n"], "kind": (type(a) is list,)}

    compiled = polyblocks_jit_tf(f)
    x, y = floats(3), floats(3)
    n = tf.constant([2.0])
    calls = [
        ((x,), {}),
        ((y, x), {}),
        ((x, True), {}),
        ((x, False), {}),
        ((x, None), {"scale": True}),
        ((x,), {"b": y, "scale": False}),
        ((x,), {"scale": True, "b": y}),
        (([x, y],), {}),
        (((x, y),), {}),
        (([y, x], x), {"scale": True}),
        (({1: x, 2: y},), {}),
        (({2: x, 1: y},), {}),
        (({2: x, 3: y}, x), {"by": {"n": n}}),
        (([x, y],), {"by": {"n": n}}),
        (((x, y),), {"by": {"n": n}, "scale": True}),
        ((np.array([1.0, 2.0, 4.0], np.float32),), {}),
    ]
    for _ in range(3):
        for args, kwargs in calls:
            expected = tf.nest.map_structure(tf.convert_to_tensor, f(*args, **kwargs))
            found = tf.nest.map_structure(tf.convert_to_tensor, compiled(*args, **kwargs))
            assert_same(found, expected)
    assert len(compiled.polyblocks_report().variants) == len(calls)


def test_structures_in_and_out():
    Pair = collections.namedtuple("Pair", "left right")

    def f(pair, table, *rest, scale=1.0):
        return {
            "b": [pair.left * scale, (table["x"],)],
            "a": Pair(pair.right, rest[0] if rest else None),
            "c": None,
        }

    pair, table, more = Pair(floats(2), floats(3)), {"x": floats(4)}, floats(1)
    compiled = polyblocks_jit_tf(f)
    for rest in ((), (more,)):
        for scale in (1.0, 2.0):
            expected = f(pair, table, *rest, scale=scale)
            assert_same(compiled(pair, table, *rest, scale=scale), expected)
    # The number changes, and is an argument after the first two values.
    assert len(compiled.polyblocks_report().variants) == 3
    assert compiled.polyblocks_report().whole


def test_results_without_tensors():
    assert polyblocks_jit_tf(lambda x: None)(floats(2)) is None
    assert polyblocks_jit_tf(lambda x: ())(floats(2)) == ()
    assert polyblocks_jit_tf(lambda x: 3)(floats(2)).numpy() == 3


def test_an_argument_that_is_returned():
    x = floats(3)
    a, b, c = polyblocks_jit_tf(lambda x: (x, x, x + 1))(x)
    assert_same((a, b, c), (x, x, x + 1))


def test_numpy_in_tensors_out():
    f = polyblocks_jit_tf(lambda x, y: x @ y)
    x = np.random.default_rng(0).random((6, 4), np.float32)
    result = f(x.T, x)  # not dense in row-major order
    assert isinstance(result, tf.Tensor)
    assert_same(result, tf.constant(x.T @ x))
    assert_same(f(tf.constant(x.T), x), tf.constant(x.T @ x))
    wide = polyblocks_jit_tf(lambda x: x + 1)(np.arange(4.0))
    assert wide.dtype == tf.float64


def test_python_values_are_constants():
    calls = 0

    @polyblocks_jit_tf
    def f(x, n, name=None):
        nonlocal calls
        calls += 1
        return x * n if name is None else x + n

    x = floats(3)
    assert_same(f(x, 2), x * 2)
    assert_same(f(x, 2), x * 2)
    assert_same(f(x, 3), x * 3)
    assert_same(f(x, 3, name="add"), x + 3)
    assert calls == 3
    # -0.0 equals 0.0, and is another constant.
    assert not np.signbit(f(tf.zeros(1), 0.0).numpy()[0])
    assert np.signbit(f(tf.zeros(1), -0.0).numpy()[0])


def test_each_shape_and_dtype_is_compiled_once():
    @polyblocks_jit_tf
    def f(x):
        return x + x

    for _ in range(3):
        for shape in ((3,), (4,), (2, 2)):
            assert_same(f(tf.ones(shape)), 2 * tf.ones(shape))
    assert_same(f(tf.ones(3, tf.int32)), 2 * tf.ones(3, tf.int32))
    assert len(f.polyblocks_report().variants) == 4


def test_input_signature():
    @polyblocks_jit_tf(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def f(x):
        return tf.reduce_sum(x, 0)

    for rows in (1, 4, 4):
        assert_same(f(tf.ones((rows, 3))), rows * tf.ones(3))
    assert_same(f([[1, 2, 3]]), tf.constant([1.0, 2.0, 3.0]))
    assert len(f.polyblocks_report().variants) == 2
    with pytest.raises(
        InputError, match=r"x of f must be float32\(None, 3\) .*, got float32\(4,\)"
    ):
        f(tf.ones(4))
    with pytest.raises(InputError, match=r"x of f must be float32.*, got int32\(1, 3\)"):
        f(tf.ones((1, 3), tf.int32))
    with pytest.raises(InputError, match="takes 1 arguments by its input_signature, got 2"):
        f(tf.ones((1, 3)), 1)
    with pytest.raises(InputError, match="no argument 'y'"):
        f(y=1)
    with pytest.raises(InputError, match="x of f must be float32"):
        f("text")
    assert_same(f(x=tf.ones((2, 3))), 2 * tf.ones(3))


def test_signature_of_a_tf_function_is_kept():
    inner = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([None], tf.float32)])
    assert_same(polyblocks_jit_tf(inner)([1, 2]), tf.constant([2.0, 4.0]))


def test_wrong_signatures():
    with pytest.raises(
        InputError, match="input_signature must be a list of tf.TensorSpec, not int"
    ):
        polyblocks_jit_tf(input_signature=3)
    with pytest.raises(InputError, match="must hold tf.TensorSpec, not str"):
        polyblocks_jit_tf(input_signature=["x"])


@pytest.mark.cpu
def test_errors_in_one_line():
    with pytest.raises(InputError, match="takes a function, a tf.function or a model, not int"):
        polyblocks_jit_tf(compile_options={})(3)
    with pytest.raises(InputError, match="not a class"):
        polyblocks_jit_tf(int)
    with pytest.raises(InputError, match="pass the options once"):
        polyblocks_jit_tf({"target": "cpu"}, compile_options={})
    with pytest.raises(OptionError, match="unknown compile option 'targt'; did you mean 'target'"):
        polyblocks_jit_tf(compile_options={"targt": "cpu"})
    with pytest.raises(
        OptionError, match=r"static_argnums=\(1,\) is not available for frontend 'tf'"
    ):
        polyblocks_jit_tf(compile_options={"static_argnums": 1})
    with pytest.raises(TargetError, match="no target 'cray'|target 'cray'"):
        polyblocks_jit_tf(compile_options={"target": "cray"})
    with pytest.raises(OptionError, match="execution_backend must be one of std, xla, polyblocks"):
        polymage_jit_tf(execution_backend="inductor")
    with pytest.raises(OptionError, match="compile_options or runtime_args"):
        polymage_jit_tf(compile_options={}, runtime_args={})
    with pytest.raises(InputError, match="q has dtype qint8, which is not one of"):
        polyblocks_jit_tf(lambda q: q)(tf.cast(tf.constant(3), tf.qint8))


def test_errors_of_the_function_are_the_users():
    @polyblocks_jit_tf
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(floats(2))


DTYPES = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool complex64 complex128"


@pytest.mark.parametrize(
    "name",
    sweep(
        DTYPES.split(),
        *("float16", "int64", "bool", "complex64"),
        extended=["float64", "int8", "uint8"],
    ),
)
def test_dtypes(name):
    dtype = tf.as_dtype(name)
    x = tf.cast(tf.constant([[0, 1, 2], [3, 1, 0]]), dtype)
    y = tf.cast(tf.constant([[1, 1, 0], [2, 5, 1]]), dtype)
    if name == "bool":
        check(lambda x, y: (x & y, tf.logical_not(x), tf.transpose(y)), x, y)
    else:
        check(lambda x, y: (x + y, x * y - x, tf.transpose(y)), x, y, rtol=1e-2)
    big = tf.cast(tf.reshape(tf.range(30000) % 7, (100, 300)), dtype)
    check(lambda x: tf.reverse(x, [0]), big)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 2)])
def test_empty_tensors(shape):
    x = tf.zeros(shape)
    check(lambda x: (x + 1, tf.reduce_sum(x), tf.concat([x, x], 0)), x)


def test_scalars():
    check(lambda x, y: (x + y, tf.sqrt(x)), tf.constant(2.0), tf.constant(3.0))


def test_captured_arrays():
    small, large = tf.constant([1.0, 2.0]), floats(2000)
    shape = tf.constant([2, 1000])
    check(lambda x: x * small + tf.reduce_sum(tf.reshape(large, shape)), floats(2))


@pytest.mark.simulated
def test_while_loop_and_cond():
    def f(x):
        def body(i, x):
            return i + 1, tf.cond(tf.reduce_sum(x) > 0, lambda: x * 1.5 - 1, lambda: x + 2)

        return tf.while_loop(lambda i, x: i < 20, body, [tf.constant(0), x])

    check(f, floats(7))


@pytest.mark.simulated
def test_autograph():
    def f(x, n):
        total = tf.zeros_like(x)
        for i in tf.range(n):
            if tf.reduce_sum(total) > 3:
                total -= x
            else:
                total += x * tf.cast(i, tf.float32)
        return total

    x = floats(4, low=0.1)
    check(lambda x: f(x, 6), x)


def test_gradient_tape_inside():
    def f(x, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_mean(tf.square(tf.tanh(x @ w)))
        return loss, tape.gradient(loss, w)

    check(f, floats(8, 4), floats(4, 3, seed=1))


def test_called_inside_another_function():
    inner = polyblocks_jit_tf(lambda x: x * 2)

    @tf.function
    def outer(x):
        return inner(x) + 1

    x = floats(3)
    assert_same(outer(x), x * 2 + 1)
    assert_same(polyblocks_jit_tf(lambda x: inner(x) - 1)(x), x * 2 - 1)


def test_methods():
    class Scaler:
        def __init__(self, factor):
            self.factor = factor

        @polyblocks_jit_tf
        def scale(self, x):
            return x * self.factor

    x = floats(3)
    two, three = Scaler(2.0), Scaler(3.0)
    assert_same(two.scale(x), x * 2)
    assert_same(three.scale(x), x * 3)
    assert_same(two.scale(x), x * 2)
    assert_same(Scaler.scale(two, x), x * 2)
    assert two.scale is two.scale


def test_import_path_of_the_compile_function():
    import polyblocks

    x = floats(3)
    f = polyblocks.compile(lambda x: x + 1, frontend="tf")
    assert_same(f(x), x + 1)
