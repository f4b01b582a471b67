"""TensorFlow programs as users write them."""

# ruff: noqa: E501

from __future__ import annotations

import random

import numpy as np
import tensorflow as tf
from tf_run import gradients, group

nan, inf = float("nan"), float("inf")
V = lambda: np.array([1.0, nan, -2.0, inf, -inf, 0.0, -0.0], np.float32)  # noqa: E731


def a(*values, dtype=np.float32):
    """Makes an array."""
    return lambda: np.array(values, dtype)


def numbers_of(x):
    """What is no NaN, added up, and how many they are."""
    return (
        tf.reduce_sum(tf.where(x == x, x, 0)),
        tf.reduce_sum(tf.cast(x == x, tf.int32)),
        tf.shape(x),
    )


wrap = group("wrap-around")
wrap.table([
    *((f"shift of {d} by {n}", lambda x, n=n: (tf.bitwise.left_shift(x, tf.cast(n, x.dtype)), tf.bitwise.right_shift(x, tf.cast(n, x.dtype))), f"{d} 6 special")
      for d, n in (("i32", 31), ("i32", 5), ("i64", 63), ("u8", 7), ("i16", 15))),
    ("sum of int32", lambda x: tf.reduce_sum(x), a(2**31 - 1, 1, dtype=np.int32)),
    ("mean of int32", lambda x: tf.reduce_mean(x), lambda: np.full(20_000_000 // 100, 20_000, np.int32)),
    ("mean of int8", lambda x: tf.reduce_mean(x), a(100, 100, 100, dtype=np.int8)),
    ("mean of bytes", lambda x: tf.reduce_mean(x), a(200, 250, dtype=np.uint8)),
    ("negation of the smallest", lambda x: (-x, tf.abs(x)), "i8 20 special"),
    ("difference of bytes", lambda x, y: x - y, "u8 20", "u8 20 special"),
    ("floor division", lambda x: (x // 3, x % 3, x // -3, x % -3), "i32 9"),
    ("truncated division", lambda x: (tf.truncatediv(x, 3), tf.truncatemod(x, -3)), "i32 9"),
    ("int64 product", lambda x: x * 3, "i64 6 special"),
    ("power", lambda x: x**5, "i32 9"),
    ("cast of floats", lambda x: (tf.cast(x, tf.int8), tf.cast(x, tf.int32), tf.cast(x, tf.uint8)), a(1.5, 127.0, 3.9)),
    ("cast of int64", lambda x: tf.cast(x, tf.int8), a(300, -129, 2**40 + 5, dtype=np.int64)),
    ("cast to bool", lambda x: tf.cast(x, tf.bool), a(0.5, -0.0, 2.0)),
    ("saturate_cast", lambda x: tf.saturate_cast(x, tf.uint8), a(-5.0, 300.0, 7.9)),
    ("bytes compared", lambda x, y: (x < y, x >= y, tf.maximum(x, y)), "u8 20", "u8 20"),
    ("bytes sorted", lambda x: (tf.sort(x), tf.argmax(x), tf.reduce_max(x)), "u8 20"),
    ("bytes pooled", lambda x: tf.nn.max_pool2d(tf.cast(x, tf.float32), 2, 2, "VALID"), "u8 1x4x4x1"),
    ("image scaled", lambda x: tf.image.convert_image_dtype(x, tf.float32), "u8 3x4x3"),
    ("image back to bytes", lambda x: tf.image.convert_image_dtype(tf.abs(x) / 4, tf.uint8), "f32 3x4x3"),
    ("image resized", lambda x: tf.image.resize(x, (5, 7)), "u8 3x4x3"),
    ("image adjusted", lambda x: tf.image.adjust_brightness(x, 0.3), "u8 3x4x3"),
    ("invert", lambda x: tf.bitwise.invert(x), "u8 9"),
    ("bits", lambda x, y: (tf.bitwise.bitwise_and(x, y), tf.bitwise.bitwise_xor(x, y)), "i32 9", "i32 9"),
    ("cumsum of int8", lambda x: tf.cumsum(x), "i8 50"),
    ("range of int8", lambda x: tf.cast(tf.range(200), tf.int8) + x, "i8 -"),
    ("bincount", lambda x: tf.math.bincount(tf.cast(x, tf.int32), minlength=256, maxlength=256), "u8 20"),
    ("integer matmul", lambda x, y: x @ y, "i32 3x4 special", "i32 4x2"),
    ("bitcast", lambda x: tf.bitcast(x, tf.int32), "f32 5 special"),
])  # fmt: skip

choose = group("NaN that chooses")
choose.table([
    ("max and min", lambda x: (tf.reduce_max(x), tf.reduce_min(x)), V),
    ("argmax", lambda x: (tf.argmax(x), tf.argmin(x)), V),
    ("maximum", lambda x: (tf.maximum(x, x[::-1]), tf.minimum(x, x[::-1])), V),
    ("clip", lambda x: tf.clip_by_value(x, -1, 1), V),
    ("clip by NaN", lambda x: (tf.clip_by_value(x, nan, 1.0), tf.clip_by_value(x, -1.0, nan)), V),
    ("relu", lambda x: (tf.nn.relu(x), tf.nn.relu6(x), tf.nn.leaky_relu(x)), V),
    # Where NaN is sorted depends on what TensorFlow compares; that nothing is lost does not.
    ("sort", lambda x: (numbers_of(tf.sort(x)), numbers_of(tf.sort(x, direction="DESCENDING"))), a(3.0, nan, 1.0, 7.0, nan)),
    ("argsort", lambda x: numbers_of(tf.gather(x, tf.argsort(x))), a(3.0, nan, 1.0, 7.0, nan)),
    ("top_k of all", lambda x: numbers_of(tf.gather(x, tf.math.top_k(x, 5).indices)), a(3.0, nan, 1.0, 7.0, nan)),
    ("compare", lambda x: (x == x, x != x, x < 0, x >= 0, tf.logical_not(x < 0)), V),
    ("sign and round", lambda x: (tf.sign(x), tf.round(x), tf.floor(x)), V),
    ("max_pool", lambda x: tf.nn.max_pool1d(tf.reshape(x, (1, 7, 1)), 2, 1, "VALID"), V),
    # The element behind a NaN replaces it in TensorFlow's kernel; the last of a segment stays.
    ("segment_max", lambda x: tf.math.unsorted_segment_max(x, tf.constant([0, 2, 1, 1, 0, 1, 3]), 4), V),
    ("segment_min", lambda x: tf.math.unsorted_segment_min(x, tf.constant([0, 0, 1, 1, 0]), 2), a(3.0, 2.0, 1.0, 5.0, nan)),
    ("scatter_nd_min", lambda x: tf.tensor_scatter_nd_min(tf.zeros(3), [[0], [0], [1], [1], [0], [1], [2]], x), V),
    ("scatter_nd_max", lambda x: tf.tensor_scatter_nd_max(tf.zeros(3), [[0], [0], [1], [1], [0], [1], [2]], x), V),
    ("cumulative_logsumexp", lambda x: tf.math.cumulative_logsumexp(x), a(1.0, nan, 2.0)),
    ("cumulative_logsumexp of -inf", lambda x: tf.math.cumulative_logsumexp(x), a(-inf, -inf, 2.0)),
    ("reduce_logsumexp", lambda x: tf.reduce_logsumexp(x), a(-inf, -inf)),
    ("any", lambda x: tf.reduce_any(x > 0), V),
    ("count_nonzero", lambda x: tf.math.count_nonzero(x), V),
    ("pow", lambda x: (x**0, x**2, 1.0**x), V),
    ("divide_no_nan", lambda x: (tf.math.divide_no_nan(x, 0.0), tf.math.multiply_no_nan(x, 0.0)), V),
    ("xlogy", lambda x: (tf.math.xlogy(0.0, x), tf.math.xdivy(0.0, x)), V),
    ("is_finite", lambda x: (tf.math.is_finite(x), tf.math.is_nan(x), tf.math.is_inf(x)), V),
    ("half", lambda x: (tf.reduce_max(tf.cast(x, tf.float16)), tf.maximum(tf.cast(x, tf.bfloat16), tf.cast(0, tf.bfloat16))), V),
    ("searchsorted", lambda x: tf.searchsorted([0.0, 1.0, 2.0], x), a(1.0, -1.0, 5.0, 1.5)),
    ("floormod", lambda x: (tf.math.floormod(x, 2.0), tf.truncatemod(x, 2.0)), V),
    ("where", lambda x: tf.where(x > 0, x, -x), V),
    ("reduce_std", lambda x: (tf.math.reduce_std(x), tf.math.reduce_variance(x)), a(3.0, 3.0)),
])  # fmt: skip
choose.table([
    ("gradient of sqrt at zero", lambda x: tf.where(x > 0, tf.sqrt(x), 0.0), a(0.0, 4.0)),
    ("gradient of rsqrt at zero", lambda x: tf.where(x > 0, tf.math.rsqrt(x), 0.0), a(0.0, 4.0)),
    ("gradient of reciprocal at zero", lambda x: tf.where(x > 0, tf.math.reciprocal(x), 0.0), a(0.0, 4.0)),
    ("gradient of division by zero", lambda x: tf.where(x > 0, 1.0 / x, 0.0), a(0.0, 4.0)),
    ("gradient of log at zero", lambda x: tf.where(x > 0, tf.math.log(x), 0.0), a(0.0, 4.0)),
    ("gradient of norm at zero", lambda x: tf.norm(x), a(0.0, 0.0)),
    ("gradient of reduce_std of equals", lambda x: tf.math.reduce_std(x), a(3.0, 3.0)),
    ("gradient of a distance that is zero", lambda x: tf.where(x > 0, tf.norm(x[:, None] - x[None], axis=-1), 0.0), a(0.0, 0.0)),
    ("gradient of max with ties", lambda x: tf.reduce_max(x), a(1.0, 3.0, 3.0)),
    ("gradient of maximum with ties", lambda x: tf.maximum(x, [1.0, 3.0, 2.0]), a(1.0, 3.0, 3.0)),
    ("gradient of abs and sign", lambda x: (tf.abs(x), tf.sign(x)), a(0.0, -1.0)),
    ("gradient of relu at zero", lambda x: (tf.nn.relu(x), tf.nn.elu(x), tf.nn.selu(x), tf.nn.leaky_relu(x)), a(0.0, -1.0, 2.0)),
    ("gradient of relu6 at its ends", lambda x: tf.nn.relu6(x), a(0.0, 6.0, 7.0)),
    ("gradient of clip at its ends", lambda x: tf.clip_by_value(x, -1, 1), a(-1.0, 1.0, 0.5)),
    ("gradient of prod with zeros", lambda x: tf.reduce_prod(x), a(0.0, 4.0, 2.0)),
    ("gradient of cumprod with zeros", lambda x: tf.math.cumprod(x), a(3.0, 0.0, 2.0)),
    ("gradient of pow at zero", lambda x: x**2 + x**0.5, a(0.0, 4.0)),
    ("gradient of pow by tensors", lambda x, y: x**y, a(0.0, 4.0), a(2.0, 0.5)),
    ("gradient of atan2 at zero", lambda x, y: tf.atan2(x, y), a(0.0, 1.0), a(0.0, 0.0)),
    ("gradient of sort", lambda x: tf.sort(x), a(3.0, 1.0, 2.0)),
    ("gradient of top_k", lambda x: tf.math.top_k(x, 2).values, a(3.0, 1.0, 2.0)),
    ("gradient of logsumexp of -inf", lambda x: tf.reduce_logsumexp(x), a(-inf, 1.0)),
    ("gradient of divide_no_nan", lambda x, y: tf.math.divide_no_nan(x, y), a(1.0, 2.0), a(0.0, 2.0)),
    ("gradient of max_pool with ties", lambda x: tf.nn.max_pool1d(tf.reshape(x, (1, 4, 1)), 2, 2, "VALID"), a(1.0, 1.0, 0.0, 2.0)),
    ("gradient of l2_normalize of zeros", lambda x: tf.math.l2_normalize(x), a(0.0, 0.0)),
    ("gradient of where with NaN behind", lambda x: tf.where(x > 0, tf.math.log(x), x), a(-1.0, 2.0)),
    ("gradient of huber", lambda x: tf.keras.losses.huber([0.0, 0.0, 0.0], x), a(1.0, -1.0, 3.0)),
    ("gradient of cross entropy", lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 2], x), "f32 2x3"),
], call=gradients)  # fmt: skip

index = group("indices and slices")
index.table([
    ("gather", lambda x, i: tf.gather(x, i), "f32 5x2", a(4, 0, 4, dtype=np.int32)),
    ("gather axis 1", lambda x, i: tf.gather(x, i, axis=1), "f32 3x5", a(4, 0, dtype=np.int32)),
    ("gather_nd", lambda x, i: tf.gather_nd(x, i), "f32 3x5", lambda: np.array([[0, 4], [2, 1]], np.int32)),
    ("gather batch", lambda x, i: tf.gather(x, i, batch_dims=1), "f32 3x5", lambda: np.array([[0], [4], [1]], np.int32)),
    ("negative slices", lambda x: (x[-1], x[::-1], x[-3:-1], x[::-2]), "f32 5x2"),
    ("empty slices", lambda x: (x[3:1], x[5:], tf.reduce_sum(x[3:1])), "f32 5"),
    ("newaxis and ellipsis", lambda x: x[..., tf.newaxis, 1:], "f32 3x4"),
    ("scatter_nd twice", lambda v: tf.scatter_nd([[1], [1], [0]], v, [4]), "f32 3"),
    ("tensor_scatter updates", lambda x, v: (tf.tensor_scatter_nd_update(x, [[0], [3]], v), tf.tensor_scatter_nd_add(x, [[0], [0]], v), tf.tensor_scatter_nd_sub(x, [[0], [3]], v)), "f32 4", "f32 2"),
    ("segment sums", lambda x: (tf.math.unsorted_segment_sum(x, [0, -1, 1, 1, 0], 3), tf.math.segment_sum(x, [0, 0, 1, 3, 3])), "f32 5"),
    ("segment mean of an empty segment", lambda x: (tf.math.unsorted_segment_mean(x, [0, 0, 1, 1, 0], 3), tf.math.segment_mean(x, [0, 0, 2, 2, 2])), "f32 5"),
    ("boolean_mask", lambda x: tf.boolean_mask(x, x > 0), "f32 5"),
    ("one_hot out of range", lambda i: tf.one_hot(i, 3), a(-1, 0, 3, dtype=np.int32)),
    ("sequence_mask", lambda n: tf.sequence_mask(n, 4), a(0, 2, 9, dtype=np.int32)),
    ("reverse_sequence", lambda x: tf.reverse_sequence(x, [1, 3, 0], 1), "f32 3x4"),
    ("roll", lambda x: tf.roll(x, -2, 0), "f32 5"),
    ("pad modes", lambda x: (tf.pad(x, [[1, 2]]), tf.pad(x, [[1, 2]], "REFLECT"), tf.pad(x, [[1, 2]], "SYMMETRIC")), "f32 5"),
    ("embedding_lookup", lambda x, i: tf.nn.embedding_lookup(x, i), "f32 5x2", a(4, 0, dtype=np.int32)),
    ("gather of bytes", lambda x, i: tf.gather(x, i), "u8 5", a(4, 0, dtype=np.int64)),
    ("meshgrid", lambda x: tf.meshgrid(x, x[:2]), "f32 3"),
    ("split and stack", lambda x: tf.stack(tf.split(x, 2)[::-1]), "f32 4x2"),
    ("dynamic slice", lambda x, i: tf.slice(x, [i], [2]), "f32 5", lambda: np.array(2, np.int32)),
    ("repeat and tile", lambda x: (tf.repeat(x, 2), tf.tile(x, [3])), "f32 3"),
    ("unique by compare", lambda x: tf.reduce_sum(tf.cast(x[:, None] == x[None], tf.int32)), "i32 9"),
])  # fmt: skip
index.table([
    ("gradient of gather", lambda x: tf.gather(x, [4, 0, 4]), "f32 5x2"),
    ("gradient of gather_nd", lambda x: tf.gather_nd(x, [[0, 1], [0, 1]]), "f32 3x5"),
    ("gradient of an empty slice", lambda x: (x[3:1], x * 2), "f32 5"),
    ("gradient of strided slices", lambda x: (x[::-2], x[1:, ::2]), "f32 5x4"),
    ("gradient of scatter_nd", lambda v: tf.scatter_nd([[1], [1], [0]], v, [4]) ** 2, "f32 3"),
    ("gradient of tensor_scatter_update", lambda x, v: tf.tensor_scatter_nd_update(x, [[0], [3]], v) ** 2, "f32 4", "f32 2"),
    ("gradient of segment_max", lambda x: tf.math.unsorted_segment_max(x, [0, 0, 1, 1, 0], 3), "f32 5"),
    ("gradient of depthwise conv", lambda x, w: tf.nn.depthwise_conv2d(x, w * 0.5, [1, 2, 2, 1], "SAME"), "f32 1x7x6x4", "f32 3x3x4x2"),
    ("gradient of grouped conv", lambda x, w: tf.nn.conv2d(x, w * 0.5, 2, "SAME"), "f32 1x7x6x4", "f32 3x3x2x6"),
    ("gradient of conv_transpose", lambda x, w: tf.nn.conv2d_transpose(x, w * 0.5, [1, 8, 6, 2], 2, "SAME"), "f32 1x4x3x3", "f32 3x3x2x3"),
    ("gradient of dilated conv", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME", dilations=2), "f32 1x7x6x2", "f32 3x3x2x3"),
    ("gradient of resize", lambda x: (tf.image.resize(x, (5, 7)), tf.image.resize(x, (5, 7), "nearest")), "f32 1x3x4x2"),
    ("gradient of batch norm", lambda x: tf.nn.batch_normalization(x, *tf.nn.moments(x, [0]), None, None, 1e-3), "f32 5x3"),
    ("gradient of cumsum", lambda x: tf.cumsum(x, exclusive=True, reverse=True), "f32 5"),
    ("gradient of complex abs", lambda x: tf.abs(tf.complex(x, x * 2)), "f32 5"),
    ("gradient of imag of exp", lambda x: tf.math.imag(tf.exp(tf.complex(x * 0, x))), "f32 5"),
    ("gradient of irfft", lambda x: tf.signal.irfft(tf.signal.rfft(x) * 1j), "f32 8"),
    ("gradient of einsum", lambda x, y: tf.einsum("ij,kj->ik", x, y), "f32 2x3", "f32 4x3"),
], call=gradients)  # fmt: skip

state = group("state and loops")


@state.program
def tensor_array_that_grows(jit):
    def f(x):
        rows = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(4):
            rows = rows.write(i, x * tf.cast(i, tf.float32))
        return rows.stack()

    return jit(f)(tf.ones(2))


@state.program
def tensor_array_of_a_size(jit):
    def f(x):
        rows = tf.TensorArray(tf.float32, size=5)
        for i in tf.range(3):
            rows = rows.write(i * 2, x[i])
        return rows.write(1, 7.0).write(3, 8.0).stack()

    return jit(f)(tf.range(3.0))


@state.program
def tensor_array_unstacked(jit):
    def f(x):
        rows = tf.TensorArray(tf.float32, size=3).unstack(x)
        total = tf.zeros(2)
        for i in tf.range(3):
            total = total * 0.5 + rows.read(2 - i)
        return total

    return jit(f)(tf.reshape(tf.range(6.0), (3, 2)))


@state.program
def tensor_array_grows_while(jit):
    def f(x):
        rows = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)
        n = tf.constant(0)
        while tf.reduce_sum(x) > 1.0:
            rows = rows.write(n, x)
            x, n = x / 2, n + 1
        return rows.stack(), n

    return jit(f)(tf.fill([2], 8.0))


@state.program
def variable_assigned(jit):
    v = tf.Variable([1.0, 2.0])

    def f(x):
        v.assign_add(x)
        return v * 2

    g = jit(f)
    return [g(tf.ones(2)) for _ in range(3)], v.numpy()


@state.program
def variable_read_before_and_after(jit):
    v = tf.Variable(1.0)

    def f(x):
        before = v.read_value()
        v.assign(x)
        between = v.read_value()
        v.assign_sub(0.5)
        return before, between, v + 0

    g = jit(f)
    return g(tf.constant(5.0)), g(tf.constant(7.0)), v.numpy()


@state.program
def variable_assigned_outside(jit):
    v = tf.Variable([1.0, 2.0])
    g = jit(lambda x: x * v)
    first = g(tf.ones(2))
    v.assign([5.0, 6.0])
    return first, g(tf.ones(2))


@state.program
def variable_scattered(jit):
    v = tf.Variable(tf.zeros(4))

    def f(x):
        v.scatter_nd_add([[1], [1], [3]], x)
        v[0:1].assign([9.0])
        return v + 0

    return jit(f)(tf.ones(3)), v.numpy()


@state.program
def counter_in_a_branch(jit):
    n = tf.Variable(0)

    def f(x):
        if tf.reduce_sum(x) > 0:
            n.assign_add(1)
            return x * 2
        n.assign_sub(10)
        return -x

    g = jit(f)
    return g(tf.ones(2)), g(-tf.ones(2)), g(tf.ones(2)), n.numpy()


@state.program
def loops(jit):
    def f(x, n):
        total = tf.zeros_like(x)
        for i in tf.range(n):
            if i % 2 == 0:
                continue
            total += x * tf.cast(i, tf.float32)
            if tf.reduce_sum(total) > 20.0:
                break
        return total

    g = jit(f)
    return [g(tf.ones(2), tf.constant(n)) for n in (0, 1, 5, 50)]


@state.program
def while_loop_and_map(jit):
    def f(x):
        i, y = tf.while_loop(
            lambda i, y: i < 5, lambda i, y: (i + 1, y * 0.5 + tf.cast(i, tf.float32)), (0, x)
        )
        return (
            i,
            y,
            tf.map_fn(lambda r: r * tf.reduce_sum(r), tf.stack([x, y])),
            tf.scan(lambda c, r: c + r, tf.stack([x, y])),
        )

    return jit(f)(tf.ones(3))


@state.program
def gradient_of_a_loop(jit):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(4):
                y = tf.sin(y) * x
            loss = tf.reduce_sum(y)
        return tape.gradient(loss, x)

    return jit(f)(tf.range(3.0))


@state.program
def second_gradient(jit):
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.tanh(x) * x)
            g = inner.gradient(y, x)
        return g, outer.gradient(g, x)

    return jit(f)(tf.range(3.0))


@state.program
def second_gradient_outside(jit):
    f = jit(lambda x: tf.reduce_sum(tf.tanh(x) * x))
    x = tf.range(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    return g, outer.gradient(g, x)


@state.program
def jacobian(jit):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x) * tf.reverse(x, [0])
        return tape.jacobian(y, x)

    return jit(f)(tf.range(3.0))


@state.program
def forward_accumulator(jit):
    f = jit(lambda x: tf.sin(x) * x)
    x = tf.range(3.0)
    with tf.autodiff.ForwardAccumulator(x, tf.ones(3)) as accumulator:
        y = f(x)
    return y, accumulator.jvp(y)


@state.program
def forward_accumulator_inside(jit):
    def f(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones(3)) as accumulator:
            y = tf.sin(x) * x
        return accumulator.jvp(y)

    return jit(f)(tf.range(3.0))


@state.program
def custom_gradient(jit):
    @tf.custom_gradient
    def clip(x):
        return x, lambda g: tf.clip_by_value(g, -0.5, 0.5)

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(clip(x) * [0.1, 3.0])
        return tape.gradient(y, x)

    return jit(f)(tf.constant([1.0, 2.0]))


@state.program
def stop_gradient_and_recompute(jit):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.recompute_grad(lambda t: tf.sin(t) * t)(x) * tf.stop_gradient(x)
        return tape.gradient(y, x)

    return jit(f)(tf.range(3.0))


@state.program
def persistent_tape_and_unused(jit):
    def f(x, z):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, z])
            y = x * x
        return (
            tape.gradient(y, x),
            tape.gradient(y * 2, x),
            tape.gradient(y, z, unconnected_gradients="zero"),
        )

    return jit(f)(tf.ones(2), tf.ones(2))


@state.program
def keras_training(jit):
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, "tanh", kernel_initializer=tf.keras.initializers.GlorotUniform(1)),
                                 tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.GlorotUniform(2))])  # fmt: skip
    model.build((None, 3))
    optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
    optimizer.build(model.trainable_variables)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    f, x = jit(step), tf.reshape(tf.range(15.0), (5, 3)) / 15
    losses = [f(x, tf.ones((5, 1))) for _ in range(3)]
    return losses, [v.numpy() for v in model.variables]


@state.program
def python_side_effects(jit):
    seen = []

    def f(x, n):
        seen.append(n)
        return x * n

    g = jit(f)
    results = [g(tf.ones(2), n) for n in (1.0, 2.0, 1.0)]
    return results


@state.program
def python_numbers_that_change(jit):
    f = jit(lambda x, n: x * n)
    return [f(tf.ones(2), n) for n in (1.5, 2.0, -0.0, nan, 3.0, 1e30)]


@state.program
def integers_that_change(jit):
    f = jit(lambda x, n: x + n)
    return [f(tf.constant([1, 2], tf.int64), n) for n in (1, 2, 2**40, -(2**62), 3)]


@state.program
def bools_and_strings_that_change(jit):
    f = jit(lambda x, how, s: tf.sin(x) if how else (x + 1 if s == "a" else x - 1))
    return f(tf.ones(2), True, "a"), f(tf.ones(2), False, "a"), f(tf.ones(2), False, "b")


@state.program
def kinds_that_change(jit):
    f = jit(lambda x: x * 2 + 1)
    arrays = [
        tf.constant(np.arange(3).astype(d))
        for d in (np.float32, np.float64, np.int8, np.uint8, np.float16, np.int64)
    ]
    return [f(x) for x in arrays * 2], [f(tf.ones(n)) for n in (1, 2, 0, 3)]


@state.program
def a_result_stays(jit):
    f = jit(lambda x: x * 2)
    first = f(tf.ones(1000))
    f(tf.fill([1000], 9.0))
    return first


@state.program
def random_of_a_seed(jit):
    f = jit(lambda x: x + tf.random.stateless_uniform([3], seed=[1, 2]))
    g = jit(lambda x: x + tf.random.stateless_normal([3], seed=[4, 5]))
    return f(tf.zeros(3)), f(tf.zeros(3)), g(tf.zeros(3))


@state.program
def a_generator_goes_on(jit):
    generator = tf.random.Generator.from_seed(7)
    f = jit(lambda x: x + generator.uniform([3]))
    return [f(tf.zeros(3)) for _ in range(3)]


@state.program
def draws_differ(jit):
    f = jit(lambda x: x + tf.random.uniform([3]))
    a, b = f(tf.zeros(3)), f(tf.zeros(3))
    return bool(tf.reduce_any(a != b)), bool(tf.reduce_all((a >= 0) & (a < 1)))


@state.program
def dropout(jit):
    y = jit(lambda x: tf.nn.dropout(x, 0.5))(tf.ones(1000))
    return sorted(set(y.numpy().tolist())), 300 < int(tf.math.count_nonzero(y)) < 700


@state.program
def python_random_while_tracing(jit):
    random.seed(2)
    value = random.random()
    return jit(lambda x: x * value)(tf.ones(2))


@state.program
def assertions(jit):
    def f(x):
        tf.debugging.assert_greater(x, 0.0)
        return x * 2

    g = jit(f)
    try:
        g(-tf.ones(2))
        failed = False
    except tf.errors.InvalidArgumentError:
        failed = True
    return g(tf.ones(2)), failed


@state.program
def ragged_and_sparse(jit):
    f = jit(lambda r: tf.reduce_sum(r, axis=1))
    r = tf.ragged.constant([[1.0, 2.0], [3.0]])
    g = jit(lambda s: tf.sparse.to_dense(s) * 2)
    return f(r), g(tf.sparse.from_dense([[0.0, 1.0], [2.0, 0.0]]))


@state.program
def numpy_function(jit):
    return jit(lambda x: tf.numpy_function(np.cumsum, [x], tf.float32) * 2)(tf.range(4.0))


@state.program
def optional_and_structures(jit):
    f = jit(lambda d, y=None: {"s": d["a"] + (0.0 if y is None else y), "t": (d["b"][0],)})
    d = {"a": tf.ones(2), "b": [tf.zeros(2)]}
    return f(d), f(d, tf.ones(2)), f(d, y=None)


types = group("arguments and constants")
types.table([
    ("big-endian", lambda x: tf.convert_to_tensor(x) * 2, lambda: np.arange(3, dtype=">f4")),
    ("big-endian integers", lambda x: tf.convert_to_tensor(x) + 1, lambda: np.arange(3, dtype=">i4")),
    ("strided array", lambda x: x * 2, lambda: np.arange(10.0)[::-2]),
    ("transposed array", lambda x: x + 1, lambda: np.arange(6.0).reshape(2, 3).T),
    ("unaligned", lambda x: x * 2, lambda: np.frombuffer(bytes(range(17)), np.float32, 4, 1)),
    ("constant folded", lambda x: x + tf.constant([0.5, 0.25, 2.0]) * -1, "f32 3"),
    ("constant floor division", lambda x: x + tf.constant([-3]) // 2, "i32 1"),
    ("NaN constant", lambda x: (tf.constant([nan, 1.0]) == tf.constant([nan, 1.0])) & (x > 0), "f32 2"),
    ("bool constant", lambda x: tf.logical_xor(tf.constant([False, True]), x), "bool 2"),
    ("expm1 and log1p of small numbers", lambda x: (tf.math.expm1(x), tf.math.log1p(x)), a(-1e-6, 2e-7)),
    ("-0.0 stays", lambda x: (1 / x, 1 / tf.round(x), 1 / (x * 1)), a(-0.0, 0.0)),
    ("linspace and range", lambda x: (tf.linspace(0.0, 1.0, 7) * x, tf.range(0.0, 1.0, 0.1) * x), "f32 -"),
    ("round to even", tf.round, a(0.5, 1.5, 2.5, -0.5)),
    ("mean of half", lambda x: (tf.reduce_mean(x), tf.reduce_sum(x)), "f16 300"),
    ("empty tensors", lambda x: (tf.reduce_sum(x), x * 2, tf.concat([x, x], 0), tf.reduce_mean(x), tf.reduce_max(x)), lambda: np.zeros((0, 3), np.float32)),
    ("argument returned", lambda x: (x, x, x + 0), "f32 3"),
    ("complex", lambda z: (tf.math.conj(z) * z, tf.abs(z), tf.math.angle(z)), "c64 5"),
    ("complex division", lambda z, w: (z / w, z * 1j, tf.exp(z)), "c64 5", "c64 5"),
    ("fft", lambda z: (tf.signal.fft(z), tf.signal.ifft(z)), "c64 8"),
    ("conv of inf", lambda x: tf.nn.conv1d(x, tf.constant([[[inf]], [[1.0]]]), 1, "SAME"), "f32 1x5x1"),
    ("conv_transpose of inf", lambda x: tf.nn.conv1d_transpose(x, tf.constant([[[inf]], [[1.0]]]), [1, 6, 1], 2), "f32 1x3x1"),
    ("matmul of a transposed", lambda x, y: tf.matmul(x, y, transpose_a=True, transpose_b=True), "f32 4x3", "f32 2x4"),
    ("matrix diag and band", lambda x: (tf.linalg.diag_part(x), tf.linalg.band_part(x, 1, 0)), "f32 4x4"),
    ("broadcast", lambda x, y: (x + y, tf.broadcast_to(x, (2, 3, 4))), "f32 3x1", "f32 4"),
    ("moments", lambda x: tf.nn.moments(x, [0, 1]), "f32 3x4"),
    ("bucketize", lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[-1.0, 0.0, 2.5]), "i32 9"),
])  # fmt: skip


def _changing(make):
    def run(jit):
        array = make()
        f = jit(
            lambda x, y: (
                x
                + tf.cast(
                    tf.convert_to_tensor(y),
                    tf.float32,
                )
            )
        )
        first = f(tf.zeros(3), array)
        array[...] = 5
        return first, f(tf.zeros(3), array)

    return run


for name, make in {
    "array that changes": lambda: np.ones(3, np.float32),
    "big-endian array that changes": lambda: np.ones(3, ">f4"),
    "matrix that changes": lambda: np.matrix([[1.0, 1.0, 1.0]]),
    "recarray that changes": lambda: np.ones(3, np.float32).view(np.recarray),
    "float64 array that changes": lambda: np.ones(3),
}.items():
    run = _changing(make)
    run.__name__ = name
    types.program(run)
