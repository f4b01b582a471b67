"""TensorFlow's own kernels are the reference, not XLA's bridge: gradients of 0, NaN, errors."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, check, floats  # noqa: E402

from polyblocks.errors import ExecutionError, FallbackError  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

pytestmark = pytest.mark.cpu

NAN, INF = float("nan"), float("inf")


def compiled(function):
    return polyblocks_jit_tf(compile_options={"strict_target": True})(function)


def gradient_of(function):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    return gradient


def all_of(functions):
    """One program of many functions: names -> results."""
    return lambda *args: {name: function(*args) for name, function in functions.items()}


GRADIENTS = {
    "sqrt": lambda x: tf.where(x > 0, tf.sqrt(x), 0),
    "rsqrt": lambda x: tf.where(x > 0, tf.math.rsqrt(x), 0),
    "reciprocal": lambda x: tf.where(x > 0, tf.math.reciprocal(x), 0),
    "quotient": lambda x: tf.where(x > 0, 1 / x, 0),
    "log": lambda x: tf.where(x > 0, tf.math.log(x), 0),
    "pow": lambda x: tf.where(x > 0, x**0.5, 0),
    "acos": lambda x: tf.where(tf.abs(x) < 1, tf.acos(x), 0),
    "norm": lambda x: tf.where(x > 0, tf.norm(x * 0), 0),
    "std": lambda x: tf.where(x > 100, tf.math.reduce_std(x * 0 + 1), 0),
    "cosine": lambda x: tf.keras.losses.cosine_similarity(x * 0, x * 0),
    "selu": tf.nn.selu,
    "elu": tf.nn.elu,
    "relu6": lambda x: tf.nn.relu6(x * 6),
    "softsign": tf.nn.softsign,
    "empty slice": lambda x: tf.reduce_sum(x[3:1]) + tf.reduce_sum(x),
    "second sqrt": gradient_of(lambda x: tf.where(x > 0, tf.sqrt(x) * x, 0)),
}


@pytest.mark.parametrize(
    "dtype", sweep(["float32", "float64", "float16"], "float32", extended=["float16"])
)
def test_gradients_where_nothing_flows_in(dtype):
    x = tf.constant([0.0, 1.0, 4.0, -1.0, -0.0], dtype)
    function = all_of({name: gradient_of(f) for name, f in GRADIENTS.items()})
    rtol = 4e-3 if dtype == "float16" else 1e-4
    assert_same(compiled(function)(x), tf.function(function)(x), rtol)


def test_gradient_of_a_slice_beyond_the_end():
    x = tf.ones((4, 3))
    for function in (lambda x: x[2:0:-1][5:], lambda x: x[:, 3:3], lambda x: x[:0, :2]):
        call = compiled(function)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call(x)
        np.testing.assert_array_equal(tape.gradient(y, x), np.zeros((4, 3)))


NAN_FUNCTIONS = {
    "argmax": lambda x: tf.argmax(x, 0),
    "argmin": lambda x: tf.argmin(x, 1, output_type=tf.int32),
    "max_pool": lambda x: tf.nn.max_pool1d(x[..., None], 2, 2, "VALID"),
    "max_pool of 3": lambda x: tf.nn.max_pool3d(
        tf.cast(x, tf.float32)[None, :, :, None, None], 3, 1, "SAME"
    ),
    "scatter_min": lambda x: tf.tensor_scatter_nd_min(x, [[0], [2], [0]], x[::-1]),
    "scatter_max": lambda x: tf.tensor_scatter_nd_max(x, [[0], [2], [0]], x[::-1]),
    "logsumexp": lambda x: tf.math.cumulative_logsumexp(tf.where(x > 9, tf.ones_like(x), x), 1),
    "logsumexp backwards": lambda x: tf.math.cumulative_logsumexp(
        tf.where(x > 9, tf.ones_like(x), x), 0, True, True
    ),
    "bucketize": lambda x: tf.raw_ops.Bucketize(
        input=tf.cast(x, tf.float32), boundaries=[-1.0, 0.0, 1.0]
    ),
    "clip": lambda x: tf.clip_by_value(x, NAN, 1),
    "maximum": lambda x: tf.maximum(x, x[:, ::-1]),
    "max": lambda x: tf.reduce_max(x, 1),
    "relu6": tf.nn.relu6,
}


@pytest.mark.parametrize("dtype", sweep(["float32", "float64"], "float32"))
def test_nan(dtype):
    x = np.random.default_rng(3).standard_normal((3, 9))
    x[np.random.default_rng(4).random(x.shape) < 0.4] = NAN
    x[1, :] = NAN
    x[2, 2], x[2, 5], x[0, 0] = INF, -INF, -INF
    x = tf.constant(x, dtype)
    function = all_of(NAN_FUNCTIONS)
    assert_same(compiled(function)(x), tf.function(function)(x))


@pytest.mark.parametrize(
    "dtype",
    sweep(["int32", "int64", "uint8", "int8", "uint32"], "uint8", extended=["int32", "int64"]),
)
def test_mean_of_integers_does_not_wrap(dtype):
    most = np.iinfo(dtype).max
    x = tf.constant(np.full((3, 5), min(most, 2**31 - 1)) - np.arange(5), dtype)
    function = all_of(
        {
            "all": tf.reduce_mean,
            "rows": lambda x: tf.reduce_mean(x, 1),
            "many": lambda x: tf.reduce_mean(tf.tile(x, [1, 40_000]), [1], keepdims=True),
        }
    )
    assert_same(compiled(function)(x), tf.function(function)(x))


@pytest.mark.parametrize(
    "dtype",
    sweep(
        ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"],
        "int8",
        "uint32",
        extended=["uint8", "int64"],
    ),
)
def test_shifts_by_any_count(dtype):
    width = 8 * np.dtype(dtype).itemsize
    counts = np.array([0, 1, width - 1, width, width + 1, 100])
    if np.dtype(dtype).kind == "i":
        counts = np.append(counts, [-1, -100])
    x = tf.constant(np.full(counts.shape, np.iinfo(dtype).max // 3 * 2), dtype)
    count = tf.constant(counts, dtype)
    function = all_of(
        {
            "left": tf.bitwise.left_shift,
            "right": tf.bitwise.right_shift,
            "constant left": lambda x, n: tf.bitwise.left_shift(x, tf.constant(counts, dtype)),
            "constant right": lambda x, n: tf.bitwise.right_shift(x, tf.constant(counts, dtype)),
            "too many": lambda x, n: tf.bitwise.left_shift(x, tf.constant(width, dtype)),
        }
    )
    assert_same(compiled(function)(x, count), tf.function(function)(x, count))


@pytest.mark.parametrize(
    "source", sweep(["float16", "float32", "float64"], "float32", extended=["float16", "float64"])
)
def test_conversions_of_what_is_out_of_range(source):
    numbers = [NAN, INF, -INF, 3e9, -3e9, 2.0**31, -(2.0**31), 2.0**31 - 1, 2.0**63, 1.9, -1.9]
    x = tf.constant([*numbers, 5e9, 1e19, 3e19, -5e9, 2.0**32, 2.0**64], tf.float64)
    x = tf.tile(tf.cast(x, source), [64])  # whole vectors: their rest is converted otherwise
    wide = all_of(
        {name: lambda x, name=name: tf.cast(x, name) for name in ("int32", "int64", "uint64")}
    )
    assert_same(compiled(wide)(x), tf.function(wide)(x))
    narrow = tf.constant([127.0, 128.0, 255.0, 300.0, -1.0, -128.0, -129.0, 7e4, NAN], source)
    bytes_of = all_of(
        {name: lambda x, name=name: tf.cast(x, name) for name in ("int8", "uint8", "uint16")}
    )
    found = compiled(bytes_of)(narrow)
    seven = 7e4 if source != "float16" else INF
    last = {"int8": 127, "uint8": 255, "uint16": 65535} if seven == 7e4 else {}
    for name, (low, high) in {"int8": (-128, 127), "uint8": (0, 255), "uint16": (0, 65535)}.items():
        expected = np.clip([127, 128, 255, 300, -1, -128, -129], low, high).tolist()
        assert found[name].numpy()[:7].tolist() == expected
        assert found[name].numpy()[7] == last.get(name, low)
        assert found[name].numpy()[8] == low


MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)
VARIABLE = tf.Variable(MATRIX)

#: What is called, arguments, which are wrong in the second place, the message.
ERRORS = {
    "gather": (lambda x, i: tf.gather(x, i, axis=1), [1, 4], "less than 4"),
    "gather below": (tf.gather, [0, -1], "at least 0 and less than 3"),
    "gather in batches": (lambda x, i: tf.gather(x, i[:, None] + [[0]] * 3, batch_dims=1),
                          [0, 1, 4], "less than 4"),
    "gather_nd": (tf.gather_nd, [[0, 3], [3, 0]], "less than 3"),
    "embedding": (lambda x, i: tf.nn.embedding_lookup(VARIABLE, i), [2, 3], "less than 3"),
    "x[i]": (lambda x, i: x[i[0]], [3], "at least -3 and less than 3"),
    "x[:, i]": (lambda x, i: x[:, i[0]], [-5], "at least -4 and less than 4"),
    "x[..., i, None]": (lambda x, i: x[..., i[0], None], [4], "less than 4"),
    "slice": (lambda x, i: tf.slice(x, i, [2, 2]), [2, 0], r"a slice of \[2, 2\]"),
    "scatter": (lambda x, i: tf.tensor_scatter_nd_update(x, i[:, None], x[:2]), [0, 3],
                "less than 3"),
    "scatter_add": (lambda x, i: tf.tensor_scatter_nd_add(x, i[:, None], x[:2]), [0, -1],
                    "at least 0"),
    "scatter_min": (lambda x, i: tf.tensor_scatter_nd_min(x, i[:, None], x[:2]), [0, 3],
                    "less than 3"),
    "scatter_nd": (lambda x, i: tf.scatter_nd(i[:, None], x[:2], [3, 4]), [0, 3], "less than 3"),
    "segments": (lambda x, i: tf.math.unsorted_segment_sum(x[:2], i, 2), [1, 2], "segment ids"),
    "labels": (lambda x, i: tf.nn.sparse_softmax_cross_entropy_with_logits(i, x[:2]), [3, 4],
               "a label must be"),
    "reversed": (lambda x, i: tf.reverse_sequence(x, i, seq_axis=1), [1, 5, 4], "a length"),
    "divided": (lambda x, i: 7 // i, [1, 0], "division by zero"),
    "remainder": (lambda x, i: 7 % i, [1, 0], "division by zero"),
    "truncated": (lambda x, i: tf.truncatediv(7, i), [1, 0], "division by zero"),
    "by constant": (lambda x, i: i // tf.constant([1, 0]), [1, 1], "division by zero"),
    "power": (lambda x, i: tf.pow(2, i), [1, -1], "negative integer powers"),
}  # fmt: skip
#: One of each kernel that checks.
SOME = ("gather", "gather_nd", "x[i]", "slice", "scatter", "segments", "divided", "power")


@pytest.mark.parametrize(
    "name", sweep(ERRORS, *SOME, extended=[name for name in ERRORS if name not in SOME])
)
def test_kernels_that_raise(name):
    function, wrong, message = ERRORS[name]
    x = tf.constant(MATRIX)
    call = compiled(function)
    right = tf.ones_like(tf.constant(wrong)) if name != "by constant" else None
    if right is not None:
        for _ in range(2):
            assert_same(call(x, right), function(x, right))
    with pytest.raises(tf.errors.OpError):
        function(x, tf.constant(wrong))
    # A later check may fail as well, of what the first one left unwritten.
    with pytest.raises(ExecutionError, match=f"{message}|index out of range"):
        call(x, tf.constant(wrong))


@pytest.mark.parametrize(
    "wrong", sweep([[0, 0, 2], [0, 1, 3], [-1, 1, 2]], [0, 0, 2], extended=[[0, 1, 3], [-1, 1, 2]])
)
def test_what_is_no_permutation_raises(wrong):
    call = compiled(tf.math.invert_permutation)
    for right in ([2, 0, 1], [1, 2, 0]):
        assert_same(call(tf.constant(right)), tf.math.invert_permutation(right))
    with pytest.raises(tf.errors.OpError):
        tf.math.invert_permutation(wrong)
    with pytest.raises(ExecutionError, match="permutation must"):
        call(tf.constant(wrong))


@pytest.mark.parametrize("dtype", sweep(["int32", "int64"], "int32", extended=["int64"]))
def test_random_integers_without_a_range_raise(dtype):
    def draw(low, high):
        return tf.random.stateless_uniform((5,), [1, 2], low, high, tf.as_dtype(dtype))

    call = compiled(draw)
    low, high = tf.constant(-3, dtype), tf.constant(4, dtype)
    assert_same(call(low, high), draw(low, high))
    for wrong in (low, tf.constant(-4, dtype)):
        with pytest.raises(tf.errors.OpError):
            draw(low, wrong)
        with pytest.raises(ExecutionError, match="random integers need minval < maxval"):
            call(low, wrong)


def test_boundaries_that_are_not_sorted_raise():
    def f(x):
        return tf.raw_ops.Bucketize(input=x, boundaries=[3.0, 1.0])

    call = polyblocks_jit_tf(f)
    with pytest.raises(tf.errors.InvalidArgumentError, match="sorted boundaries"):
        call(tf.constant([1.0, 2.0]))
    with pytest.raises(FallbackError, match="boundaries that are not sorted"):
        compiled(f)(tf.constant([1.0, 2.0]))


@pytest.mark.parametrize(
    "dtype",
    sweep(
        ["int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64"],
        "int8",
        extended=["uint16", "int64"],
    ),
)
def test_cumulative_sums_and_products_of_integers_wrap(dtype):
    numbers = np.array([[100, 200, 3, 77], [250, 5, 101, 9], [1, 2, 3, 0]]).astype(dtype)
    numbers = numbers * np.array(np.iinfo(dtype).max // 200, dtype)

    def f(x):
        return (
            tf.cumsum(x, exclusive=True),
            tf.cumsum(x, 1, reverse=True),
            tf.math.cumprod(x, 1, exclusive=True, reverse=True),
        )

    assert_same(compiled(f)(numbers), f(tf.constant(numbers)))


def test_least_integer_over_minus_one():
    x, y = tf.constant([-(2**31), 7], tf.int32), tf.constant([-1, -1], tf.int32)
    function = all_of({"quotient": lambda x, y: x // y, "rest": lambda x, y: x % y})
    assert_same(compiled(function)(x, y), tf.function(function)(x, y))


def test_checks_in_loops_and_branches():
    def function(x, n):
        found = tf.zeros([4])
        for i in tf.range(n):
            if i > 0:
                found += x[i]
            else:
                found += tf.gather(x, 10 // (i + 1) - 9)
        return found

    call, x = compiled(function), tf.constant(MATRIX)
    assert_same(call(x, tf.constant(3)), function(x, tf.constant(3)))
    with pytest.raises(ExecutionError, match="less than 3"):
        call(x, tf.constant(4))


def test_checks_where_tensorflow_runs_a_part():
    def function(x, i):
        x = tf.linalg.matmul(tf.linalg.cholesky(x), tf.gather(x, i))
        return tf.gather(x, i) // tf.cast(i[0], tf.float32), i // i

    x = tf.eye(3) * 4
    call = polyblocks_jit_tf(function)
    assert_same(call(x, tf.constant([1, 2, 2])), function(x, tf.constant([1, 2, 2])))
    with pytest.raises((ExecutionError, tf.errors.OpError)):
        call(x, tf.constant([1, 2, 3]))


def growing(x):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(4):
        array = array.write(i, x * tf.cast(i, tf.float32))
    return array.stack()


def growing_further(x):
    array = tf.TensorArray(tf.float32, size=2, dynamic_size=True)
    for i in range(4):
        array = array.write(i, x * float(i))
    return array.stack()


def growing_until(x):
    array, i = tf.TensorArray(tf.float32, size=0, dynamic_size=True), 0
    while tf.reduce_sum(x) < 1000:
        array = array.write(i, x)
        x, i = x * 2 + 1, i + 1
    return array.stack() + 1


@pytest.mark.parametrize(
    "function",
    sweep(
        [growing, growing_further, growing_until],
        growing,
        growing_until,
        extended=[growing_further],
    ),
)
def test_arrays_that_grow(function):
    x = tf.constant([1.0, 2.0, 3.0])
    call = polyblocks_jit_tf(function)
    assert_same(call(x), function(x))
    report = call.polyblocks_report()
    assert any("TensorArray grow" in row.reason for row in report.fallbacks)
    with pytest.raises(FallbackError, match="TensorFlow runs it"):
        compiled(function)(x)


@pytest.mark.parametrize(
    "function",
    sweep(
        [growing, growing_further, growing_until],
        growing,
        extended=[growing_further, growing_until],
    ),
)
def test_gradients_of_arrays_that_grow(function):
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(function(x) ** 2)
        return tape.gradient(total, x)

    x = tf.constant([1.0, 2.0, 3.0])
    expected = inside(x)
    assert_same(polyblocks_jit_tf(inside)(x), expected)
    call = polyblocks_jit_tf(function)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(call(x) ** 2)
    assert_same(tape.gradient(total, x), expected)


def test_array_of_one_size():
    def function(x, last):
        array = tf.TensorArray(tf.float32, size=4)
        for i in tf.range(last):
            array = array.write(i, x * tf.cast(i, tf.float32))
        return array.stack()

    call, x = compiled(function), tf.constant([1.0, 2.0])
    assert_same(call(x, tf.constant(4)), function(x, tf.constant(4)))
    with pytest.raises(ExecutionError, match="index of a TensorArray"):
        call(x, tf.constant(5))


def test_forward_accumulator_outside():
    scale = tf.Variable(2.0)

    def function(x):
        return tf.sin(x) * x * scale

    x = tf.constant([0.0, 1.0, 4.0, -1.0])
    for primal, tangent in ((x, tf.ones_like(x)), (scale, tf.constant(1.0))):
        found = []
        for call in (polyblocks_jit_tf(function), function):
            with tf.autodiff.ForwardAccumulator(primal, tangent) as accumulator:
                y = call(x)
            found.append((y, accumulator.jvp(y)))
        assert_same(*found)
    with (
        pytest.raises(FallbackError, match="a ForwardAccumulator outside needs its derivative"),
        tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)),
    ):
        compiled(function)(x)


def test_forward_accumulator_inside_is_compiled():
    def function(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = tf.sin(x) * x
        return accumulator.jvp(y)

    x = tf.constant([0.0, 1.0, 4.0, -1.0])
    assert_same(compiled(function)(x), function(x))


@pytest.mark.parametrize(
    "name", sweep(["sqrt", "rsqrt", "reciprocal"], "sqrt", extended=["rsqrt", "reciprocal"])
)
def test_gradients_at_zero_under_a_tape_of_the_caller(name):
    function = getattr(tf.math, name)

    def chosen(x):
        return tf.where(x > 0, function(x), 0.0)

    x = tf.constant([0.0, 4.0])
    found = []
    for call in (polyblocks_jit_tf(chosen), tf.function(chosen)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call(x)
        found.append(tape.gradient(y, x))
    tf.debugging.assert_near(*found)


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (0.0, 1.0), (NAN, 1.0)], ids=str)
def test_bounds_the_wrong_way_round(bounds):
    def function(x, low, high):
        known = tf.clip_by_value(x, *bounds)
        return known, tf.raw_ops.ClipByValue(t=x, clip_value_min=low, clip_value_max=high)

    x = tf.constant([-5, NAN, 0.5, 3, INF])
    arguments = (x, *(tf.constant(bound) for bound in bounds))
    assert_same(compiled(function)(*arguments), function(*arguments))


def test_saturated_and_complex_casts():
    def function(x, z):
        return tf.saturate_cast(x, tf.uint64), tf.cast(z, tf.bool), tf.cast(z, tf.float64)

    x = tf.constant([-5, 0, 7, 2**62, -(2**63)], tf.int64)
    z = tf.constant([1j, 0, -2, 3 + 1j], tf.complex64)
    assert_same(compiled(function)(x, z), function(x, z))


@pytest.mark.parametrize("rows", sweep([(13,), (3, 8), (2, 2, 1), (100,)], (13,), (3, 8)))
def test_searches_in_sorted_rows(rows):
    random = np.random.default_rng(0)
    edges = np.sort(random.integers(0, 9, rows), -1).astype(np.float32)
    values = random.integers(-1, 11, (*rows[:-1], 7)).astype(np.float32)
    values.reshape(-1)[:3] = NAN, INF, -INF

    def function(edges, values):
        integers = tf.cast(edges, tf.int64), tf.cast(edges, tf.int64) + 1
        return (
            tf.searchsorted(edges, values),
            tf.searchsorted(edges, values, side="right", out_type=tf.int64),
            tf.searchsorted(*integers, side="right"),
        )

    assert_same(compiled(function)(edges, values), function(tf.constant(edges), values))


@pytest.mark.parametrize("dtype", sweep(["float32", "float16", "int8"], "float32"))
@pytest.mark.parametrize("axis", [0, -1])
def test_first_places_of_extrema(dtype, axis):
    numbers = np.random.default_rng(0).integers(0, 3, (5, 7)).astype(dtype)
    if dtype != "int8":
        numbers[1] = numbers[:, 2] = NAN
        numbers[3, 3:5] = INF, -INF

    def function(x):
        return tf.argmax(x, axis), tf.argmin(x, axis, tf.int32)

    assert_same(compiled(function)(numbers), function(tf.constant(numbers)))


def test_euclidean_norms():
    def norms(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = [
                tf.math.reduce_euclidean_norm(x, axis, keepdims=kept)
                for axis, kept in ((None, False), (1, True), ((-1, 0), False))
            ]
            total = tf.add_n([tf.reduce_sum(each) for each in found])
        return *found, tape.gradient(total, x)

    x = floats(3, 5, 7).numpy()
    check(norms, tf.constant(x), strict_target=True)
    check(norms, tf.constant(x.astype(np.float64)), strict_target=True)
    x[0, 0, :3] = np.inf, np.nan, -0.0
    check(norms, tf.constant(x), strict_target=True)
