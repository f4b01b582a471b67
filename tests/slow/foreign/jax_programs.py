"""JAX programs as users write them."""

# ruff: noqa: E501

from __future__ import annotations

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_run import gradients, group

nan, inf = float("nan"), float("inf")
V = lambda: np.array([1.0, nan, -2.0, inf, -inf, 0.0, -0.0], np.float32)  # noqa: E731

wrap = group("wrap-around")
wrap.table([
    *((f"shift of {d} by {n}", lambda x, n=n: (x << n, x >> n, lax.shift_right_logical(x, jnp.asarray(n, x.dtype))), f"{d} 6 special")
      for d, n in (("i32", 31), ("i32", 32), ("i32", 33), ("i64", 64), ("i8", 8), ("u8", 7), ("u8", 9), ("i16", 16))),
    ("shift by array", lambda x, n: x << n, "i32 3", lambda: np.array([32, 1, 31], np.int32)),
    ("sum of int8", lambda x: x.sum(dtype=jnp.int8), "i8 300"),
    ("sum of uint8", lambda x: x.sum(), "u8 300"),
    ("negation of the smallest", lambda x: (-x, jnp.abs(x)), "i8 20 special"),
    ("difference of bytes", lambda x, y: x - y, "u8 20", "u8 20 special"),
    ("product of int64", lambda x: x * 3, "i64 6 special"),
    ("floor division", lambda x: (x // 3, x % 3, x // -3, x % -3), "i32 9"),
    ("division by zero", lambda x: x // 0, "i32 3"),
    ("division of the smallest", lambda x: lax.div(x, jnp.int8(-1)), lambda: np.array([-128, 5], np.int8)),
    ("power", lambda x: (x**5, 2 ** jnp.abs(x)), "i32 9"),
    ("float to ints", lambda x: (x.astype(jnp.int8), x.astype(jnp.int32), x.astype(jnp.uint8)), lambda: np.array([1.5, 127.0, 3.9], np.float32)),
    ("NaN to int", lambda x: (x.astype(jnp.int32), x.astype(jnp.int64)), V),
    ("int64 to int8", lambda x: x.astype(jnp.int8), lambda: np.array([300, -129, 2**40 + 5])),
    ("bool arithmetic", lambda x: (x + True, x * x, x + x, x.sum(), x.sum(dtype=bool)), "bool 5"),
    ("bool and numbers", lambda x: ((x > 0) & 1, (x > 0) ^ 1, (x > 0) + 1), "f32 5"),
    ("clz and popcount", lambda x: (lax.clz(x), lax.population_count(x)), "i32 9 special"),
    ("cumsum of int16", lambda x: jnp.cumsum(x, dtype=jnp.int16), "i16 50 special"),
    ("unsigned compare", lambda x, y: (x < y, x >= y, jnp.maximum(x, y)), "u32 9 special", "u32 9"),
    ("bytes sorted", lambda x: (jnp.sort(x), jnp.argmax(x), x.max(), x.min()), "u8 20"),
    ("bytes and int8", lambda x, y: (x + y, jnp.maximum(x, y), x < y), "u8 9", "i8 9"),
    ("bytes concatenated with floats", lambda x, y: jnp.concatenate([x, y]), "u8 9", "f32 3"),
    ("bytes pooled", lambda x: lax.reduce_window(x, np.uint8(0), lax.max, (2,), (2,), "VALID"), "u8 8"),
    ("byte to float", lambda x: x.astype(jnp.float32) / 255, "u8 9"),
    ("hash", lambda x: ((x * jnp.uint32(2654435761)) ^ (x >> 3)) & 0xFFFF, "u32 9 special"),
    ("bitcast", lambda x: lax.bitcast_convert_type(x, jnp.int32), "f32 5 special"),
    ("gcd", lambda x, y: (jnp.gcd(x, y), jnp.lcm(x, y)), "i32 9", "i32 9"),
])  # fmt: skip

choose = group("NaN that chooses")
choose.table([
    ("max and min", lambda x: (x.max(), x.min(), jnp.nanmax(x)), V),
    ("argmax", lambda x: (x.argmax(), x.argmin(), jnp.nanargmax(x)), V),
    ("maximum and fmax", lambda x: (jnp.maximum(x, x[::-1]), jnp.fmax(x, x[::-1])), V),
    ("clip", lambda x: (jnp.clip(x, -1, 1), jnp.clip(x, nan, 1), jnp.clip(x, -1, nan)), V),
    ("relu", lambda x: (jax.nn.relu(x), jax.nn.relu6(x), jax.nn.leaky_relu(x)), V),
    ("sort", lambda x: (jnp.sort(x), jnp.argsort(x), jnp.sort(x, descending=True)), V),
    ("top_k", lambda x: lax.top_k(x, 3), V),
    ("median", lambda x: (jnp.median(x), jnp.nanmedian(x)), V),
    ("cummax", lambda x: (lax.cummax(x), lax.cummin(x)), V),
    ("sign and round", lambda x: (jnp.sign(x), jnp.round(x), jnp.floor(x), jnp.signbit(x)), V),
    ("compare", lambda x: (x == x, x != x, x < 0, x >= 0, ~(x < 0)), V),
    ("searchsorted", lambda x: jnp.searchsorted(jnp.array([0.0, 1.0, 2.0]), x), V),
    ("unique by compare", lambda x: (x[:, None] == x[None]).sum(), V),
    ("segment_max", lambda x: jax.ops.segment_max(x, jnp.array([0, 0, 1, 1, 0, 1, 2]), 4), V),
    ("reduce_window max", lambda x: lax.reduce_window(x, -inf, lax.max, (3,), (1,), "SAME"), V),
    ("half", lambda x: (x.astype(jnp.float16).max(), jnp.clip(x.astype(jnp.bfloat16), -1, 1)), V),
    ("logaddexp", lambda x: jnp.logaddexp(x, x[::-1]), V),
    ("any and all", lambda x: (x.any(), x.all(), jnp.count_nonzero(x)), V),
    ("pow", lambda x: (x**0, x**2, 1.0**x, x**0.5), V),
    ("fmod", lambda x: (jnp.fmod(x, 2), jnp.remainder(x, 2)), V),
    ("NaN as an index", lambda x: jnp.arange(7.0)[jnp.clip(jnp.nan_to_num(x), 0, 6).astype(jnp.int32)], V),
])  # fmt: skip
choose.table([
    ("gradient of max with ties", lambda x: x.max(), lambda: np.array([1.0, 3.0, 3.0])),
    ("gradient of maximum with ties", lambda x: jnp.maximum(x, jnp.array([1.0, 3.0, 2.0])), lambda: np.array([1.0, 3.0, 3.0])),
    ("gradient of abs at zero", jnp.abs, lambda: np.array([0.0, -0.0, 1.0])),
    ("gradient of sqrt at zero", lambda x: jnp.where(x > 0, jnp.sqrt(x), 0), lambda: np.array([0.0, 4.0])),
    ("gradient of norm at zero", jnp.linalg.norm, lambda: np.array([0.0, 0.0])),
    ("gradient of clip at its ends", lambda x: jnp.clip(x, -1, 1), lambda: np.array([-1.0, 1.0, 0.5])),
    ("gradient of relu at zero", lambda x: (jax.nn.relu(x), jax.nn.elu(x), jax.nn.selu(x)), lambda: np.array([0.0, -1.0])),
    ("gradient of prod with zeros", jnp.prod, lambda: np.array([0.0, 4.0, 2.0])),
    ("gradient of sort", lambda x: jnp.sort(x), lambda: np.array([3.0, 1.0, 2.0])),
    ("gradient of top_k", lambda x: lax.top_k(x, 2)[0], lambda: np.array([3.0, 1.0, 2.0])),
    ("gradient of pow at zero", lambda x: x**2 + x**3, lambda: np.array([0.0, 4.0])),
    ("gradient of logsumexp of -inf", jax.nn.logsumexp, lambda: np.array([-inf, 1.0])),
    ("gradient of std of equals", jnp.std, lambda: np.array([3.0, 3.0, 3.0])),
], call=gradients)  # fmt: skip

index = group("indices")
index.table([
    ("negative read", lambda x, i: x[i], "f32 5x2", lambda: np.array([-1, 0, -5])),
    ("out of bounds read", lambda x, i: x[i], "f32 5x2", lambda: np.array([7, -9])),
    ("fill mode", lambda x, i: x.at[i].get(mode="fill"), "f32 5", lambda: np.array([7, -9, 1])),
    ("wrap and clip modes", lambda x, i: (x.at[i].get(mode="wrap"), x.at[i].get(mode="clip")), "f32 5", lambda: np.array([7, -9, 1])),
    ("negative store", lambda x, i: x.at[i].set(0), "f32 5", lambda: np.array([-1, 0])),
    ("out of bounds store", lambda x, i: x.at[i].set(0), "f32 5", lambda: np.array([-1, 9])),
    ("add twice", lambda x, i: x.at[i].add(1), "i32 5", lambda: np.array([-1, -1, 4])),
    ("multiply and min", lambda x, i: (x.at[i].multiply(2), x.at[i].min(0), x.at[i].max(0)), "f32 5", lambda: np.array([-1, 0])),
    ("power and divide", lambda x, i: (x.at[i].power(2), x.at[i].divide(2)), "f32 5", lambda: np.array([-1, 0])),
    ("slice store", lambda x: x.at[1:3].set(7).at[..., -1].add(1), "f32 5x2"),
    ("mask store", lambda x: jnp.where(x < 0, 0, x).at[0].set(9), "f32 5"),
    ("dynamic_slice beyond the end", lambda x, i: lax.dynamic_slice(x, (i,), (3,)), "f32 5", lambda: np.array(4)),
    ("dynamic_slice below zero", lambda x, i: lax.dynamic_slice(x, (i,), (3,)), "f32 5", lambda: np.array(-4)),
    ("dynamic_update_slice beyond", lambda x, i: lax.dynamic_update_slice(x, jnp.ones(3, x.dtype), (i,)), "f32 5", lambda: np.array(4)),
    ("uint8 index", lambda x, i: x[i], "f32 300", lambda: np.array([200, 255], np.uint8)),
    ("int8 negative index", lambda x, i: x[i], "f32 5", lambda: np.array([-1, -5], np.int8)),
    ("take modes", lambda x, i: (jnp.take(x, i), jnp.take(x, i, mode="wrap")), "f32 5", lambda: np.array([7, -9, 1])),
    ("take_along_axis", lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), "f32 3x4"),
    ("scatter of bytes", lambda x, i, v: x.at[i].max(v), "u8 3", lambda: np.array([0, 0, 2]), "u8 3"),
    ("segment_sum out of range", lambda x: jax.ops.segment_sum(x, jnp.array([0, 9, -1, 1, 1]), 3), "f32 5"),
    ("two indices", lambda x, i: x[i, -i], "f32 5x5", lambda: np.array([1, 4])),
    ("bincount and histogram", lambda x: (jnp.bincount(jnp.abs(x), length=10), jnp.histogram(x, 4, (-9, 9))[0]), "i32 9"),
    ("one_hot out of range", lambda i: jax.nn.one_hot(i, 3), lambda: np.array([-1, 0, 3])),
    ("roll and flip", lambda x: (jnp.roll(x, -2), x[::-1], x[::-2]), "f32 5"),
    ("nonzero with size", lambda x: jnp.nonzero(x > 0, size=5, fill_value=-1), "f32 5"),
])  # fmt: skip
index.table([
    ("gradient of a negative read", lambda x: x[jnp.array([-1, 0, -1])], "f32 5"),
    ("gradient of an out of bounds read", lambda x: x[jnp.array([7, 0])], "f32 5"),
    ("gradient of set", lambda x, v: x.at[jnp.array([1, -1])].set(v) ** 2, "f32 5", "f32 2"),
    ("gradient of scatter max", lambda x, v: x.at[jnp.array([1, 1])].max(v), "f32 5", "f32 2"),
    ("gradient of dynamic_slice", lambda x: lax.dynamic_slice(x, (4,), (3,)), "f32 5"),
    ("gradient of cumsum and cumprod", lambda x: (jnp.cumsum(x), jnp.cumprod(x)), "f32 5"),
    ("gradient of conv with groups", lambda x, w: lax.conv_general_dilated(x, w * 0.5, (2,), "SAME", feature_group_count=4), "f32 2x4x9", "f32 8x1x3"),
    ("gradient of dilated conv", lambda x, w: lax.conv_general_dilated(x, w, (2, 1), "SAME", lhs_dilation=(2, 1), rhs_dilation=(1, 2)), "f32 1x2x5x6", "f32 3x2x3x3"),
    ("gradient of conv_transpose", lambda x, w: lax.conv_transpose(x, w, (2,), "SAME"), "f32 1x5x2", "f32 3x2x4"),
    ("gradient of complex abs", lambda x: jnp.abs(x * (1 + 2j)), "f32 5"),
    ("gradient of imag of exp", lambda x: jnp.exp(1j * x).imag, "f32 5"),
    ("gradient of irfft", lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 1j), "f32 8"),
], call=gradients)  # fmt: skip

types = group("types and constants")
types.table([
    ("weak types", lambda x: (x + 1, x * 2.5, x / 2, x**2, 3 - x), "i8 5"),
    ("weak result", lambda x: jnp.where(x > 0, 1, 0), "f32 5"),
    ("weak argument", lambda x, n: (x * n, n + 1), "b16 5", 2.5),
    ("python numbers", lambda x, n: x + n, "i32 5", 3),
    ("bool argument", lambda x, n: x + n, "i32 5", True),
    ("complex number", lambda x, n: x * n, "f32 5", 1 + 2j),
    ("half with float", lambda x, y: (x + y, jnp.maximum(x, y), x < y), "f16 5", "b16 5"),
    ("int64 with float32", lambda x, y: x + y, "i64 5", "f32 5"),
    ("constant array folded", lambda x: x + jnp.array([0.5, 0.25, 2.0]) * -1, "f32 3"),
    ("numpy constant", lambda x: x + np.array([-3]) // 2, "i64 1"),
    ("numpy int8 constant", lambda x: x + np.array([100, -100], np.int8), "i8 2"),
    ("constant comparison", lambda x: (jnp.array([nan, 1.0]) == jnp.array([nan, 1.0])) & (x > 0), "f32 2"),
    ("bool constant", lambda x: jnp.array([False, True]) == True, "f32 2"),  # noqa: E712
    ("full of bool", lambda x: jnp.full(2, 42, bool) ^ x, "bool 2"),
    ("linspace", lambda x: (jnp.linspace(0, 1, 7) * x, jnp.arange(0, 1, 0.1) * x), "f32 -"),
    ("iota of int8", lambda x: lax.iota(jnp.int8, 200) + x, "i8 -"),
    ("expm1 of small numbers", lambda x: (jnp.expm1(x), jax.nn.elu(x), jax.nn.selu(x)), lambda: np.array([-1e-6, 2e-7], np.float32)),
    ("-0.0 stays", lambda x: (1 / x, 1 / jnp.trunc(x), 1 / jnp.round(x), 1 / (x * 1), 1 / (x + 0)), lambda: np.array([-0.0, 0.0], np.float32)),
    ("conj and real", lambda z: (jnp.conj(z) * z, z.real, z.imag, jnp.abs(z), jnp.angle(z)), "c64 5"),
    ("complex division", lambda z, w: (z / w, z**2, jnp.sqrt(z), jnp.exp(z)), "c64 5", "c64 5"),
    ("integer matmul", lambda x, y: x @ y, "i8 3x4 special", "i8 4x2"),
    ("preferred type", lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32), "i8 3x4 special", "i8 4x2"),
    ("mean of int32", lambda x: x.mean(), lambda: np.full(2000, 2**31 - 1, np.int32)),
    ("mean of half", lambda x: (x.mean(), x.sum(), x.var()), "f16 300"),
    ("round to even", jnp.round, lambda: np.array([0.5, 1.5, 2.5, -0.5], np.float32)),
    ("empty arrays", lambda x: (x.sum(), x * 2, jnp.concatenate([x, x]), x.prod()), lambda: np.zeros((0, 3), np.float32)),
    ("argument returned", lambda x: (x, x, x + 0), "f32 3"),
    ("constants returned", lambda x: (jnp.ones(2), 3, jnp.array(nan), None), "f32 3"),
])  # fmt: skip

host = group("arguments and NumPy")
host.table([
    ("big-endian", lambda x: x * 2, lambda: np.arange(3, dtype=">f4")),
    ("big-endian integers", lambda x: x + 1, lambda: np.arange(3, dtype=">i2")),
    ("strided array", lambda x: x * 2, lambda: np.arange(10.0)[::-2]),
    ("transposed array", lambda x: x + 1, lambda: np.arange(6.0).reshape(2, 3).T),
    ("read-only broadcast", lambda x: x + 1, lambda: np.broadcast_to(np.float32(3), (4,))),
    ("matrix", lambda x: x * 2, lambda: np.matrix([[1.0, 2.0]])),
    ("structured field", lambda x: x * 2, lambda: np.array([(1, 2.0)], [("a", "i1"), ("b", "f4")])["b"]),
    ("unaligned", lambda x: x * 2, lambda: np.frombuffer(bytes(range(17)), np.float32, 4, 1)),
    ("scalar", lambda x: x * 2, lambda: np.float16(1.5)),
    ("numpy bool", lambda x: x + 1, lambda: np.bool_(True)),
])  # fmt: skip


@host.program
def array_that_changes(jit):
    a = np.ones(3, np.float32)
    f = jit(lambda x, a: x + a)
    first = f(jnp.zeros(3), a)
    a[:] = 5
    return first, f(jnp.zeros(3), a)


@host.program
def masked_array_that_changes(jit):
    a = np.ma.ones(3)
    f = jit(lambda x, a: x + jnp.asarray(a))
    first = f(jnp.zeros(3), np.asarray(a))
    a[:] = 5
    return first, f(jnp.zeros(3), np.asarray(a))


@host.program
def memory_is_not_shared_with_a_result(jit):
    a = np.ones(3, np.float32)
    y = jit(lambda x: x * 1)(a)
    a[:] = 7
    return np.asarray(y)


@host.program
def result_is_argument_of_the_next(jit):
    f = jit(lambda x: x * 2 + 1)
    x = jnp.arange(3.0)
    for _ in range(4):
        x = f(x)
    return x


@host.program
def a_result_stays(jit):
    f = jit(lambda x: x * 2)
    first = f(jnp.ones(1000))
    f(jnp.full(1000, 9.0))
    return first


flow = group("control flow and transformations")
flow.table([
    ("fori_loop", lambda x: lax.fori_loop(0, 5, lambda i, a: a * 0.5 + i, x), "f32 3"),
    ("fori_loop backwards", lambda x: lax.fori_loop(5, 0, lambda i, a: a + i, x), "f32 3"),
    ("while_loop", lambda x: lax.while_loop(lambda a: a.sum() < 100, lambda a: a * 2, jnp.abs(x)), "f32 3"),
    ("while_loop with a swap", lambda x, y: lax.while_loop(lambda c: c[2] < 3, lambda c: (c[1], c[0], c[2] + 1), (x, y, 0)), "f32 3", "f32 3"),
    ("scan", lambda x: lax.scan(lambda c, a: (c + a, c * a), jnp.zeros((), x.dtype), x), "f32 5"),
    ("scan in reverse", lambda x: lax.scan(lambda c, a: (c * 0.5 + a, c), jnp.zeros((), x.dtype), x, reverse=True), "f32 5"),
    ("scan without steps", lambda x: lax.scan(lambda c, a: (c + a, c), jnp.zeros((), x.dtype), x[:0]), "f32 5"),
    ("cond", lambda x: lax.cond(x[0] > 0, lambda a: a * 2, lambda a: -a, x), "f32 3"),
    ("switch out of range", lambda x, i: lax.switch(i, [lambda a: a, lambda a: a * 2, lambda a: a * 3], x), "f32 3", lambda: np.array(7)),
    ("switch below zero", lambda x, i: lax.switch(i, [lambda a: a, lambda a: a * 2], x), "f32 3", lambda: np.array(-2)),
    ("associative_scan", lambda x: lax.associative_scan(jnp.maximum, x), "f32 7"),
    ("map", lambda x: lax.map(lambda r: r.sum() * r, x), "f32 3x4"),
    ("vmap", lambda x: jax.vmap(lambda r: jnp.convolve(r, jnp.ones(2)))(x), "f32 3x4"),
    ("gradient inside", lambda x: jax.grad(lambda a: (a.sum() ** 3))(x), "f32 3"),
    ("hessian", lambda x: jax.hessian(lambda a: (jnp.exp(a) * a[::-1]).sum())(x), "f32 3"),
    ("jvp", lambda x: jax.jvp(jnp.sin, (x,), (x,)), "f32 3"),
    ("jacobians", lambda x: (jax.jacfwd(jnp.tanh)(x), jax.jacrev(jnp.tanh)(x)), "f32 3"),
    ("checkpoint", lambda x: jax.grad(lambda a: jax.checkpoint(lambda b: jnp.sin(jnp.sin(b)))(a).sum())(x), "f32 3"),
    ("stop_gradient", lambda x: jax.grad(lambda a: (a * lax.stop_gradient(a)).sum())(x), "f32 3"),
    ("random key", lambda k: (jax.random.normal(jax.random.PRNGKey(3), (3,)), jax.random.uniform(jax.random.key(1), (2,)) + k), "f32 -"),
    ("random integers", lambda k: jax.random.randint(jax.random.PRNGKey(3), (5,), 0, 100) + k, "i64 -"),
    ("permutation and choice", lambda x: (jax.random.permutation(jax.random.PRNGKey(1), x), jax.random.choice(jax.random.PRNGKey(2), x, (3,))), "f32 5"),
    ("categorical and gumbel", lambda x: (jax.random.categorical(jax.random.PRNGKey(1), x), jax.random.gumbel(jax.random.PRNGKey(1), (2,))), "f32 5"),
    ("split keys", lambda x: x + jax.random.bits(jax.random.split(jax.random.PRNGKey(1))[0], (5,), jnp.uint8), "u8 5"),
    ("fold_in", lambda x: jax.random.uniform(jax.random.fold_in(jax.random.PRNGKey(1), x)), lambda: np.array(7)),
])  # fmt: skip


@flow.program
def gradient_of_a_compiled_function(jit):
    f = jit(lambda x, w: jnp.tanh(x @ w).sum())
    x, w = jnp.arange(6.0).reshape(2, 3) / 6, jnp.ones((3, 2)) * 0.3
    return jax.value_and_grad(f, (0, 1))(x, w), jax.grad(lambda x: jax.grad(f)(x, w).sum())(x)


@flow.program
def vmap_of_a_compiled_function(jit):
    f = jit(lambda x, n: jnp.cumsum(x) * n)
    return jax.vmap(f, (0, None))(jnp.ones((2, 3)), 3.0), jax.vmap(f)(
        jnp.ones((2, 3)), jnp.arange(2.0)
    )


@flow.program
def inside_of_jit(jit):
    f = jit(lambda x: jnp.sort(x) * 2)
    return jax.jit(lambda x: f(x) + f(-x))(jnp.array([3.0, 1.0]))


@flow.program
def custom_vjp(jit):
    @jax.custom_vjp
    def clip(x):
        return x

    clip.defvjp(lambda x: (x, x), lambda r, g: (jnp.clip(g, -0.5, 0.5) * r,))
    return jax.grad(jit(lambda x: (clip(x) * jnp.array([0.1, 3.0])).sum()))(jnp.array([1.0, 2.0]))


@flow.program
def custom_jvp(jit):
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), t[0] * 7))
    return jit(lambda x: jax.jvp(f, (x,), (x,)))(jnp.array(2.0)), jax.grad(jit(f))(2.0)


@flow.program
def callbacks(jit):
    def f(x):
        return (
            jax.pure_callback(
                lambda a: np.cumsum(a).astype(a.dtype), jax.ShapeDtypeStruct(x.shape, x.dtype), x
            )
            * 2
        )

    return jit(f)(jnp.arange(4.0))


@flow.program
def python_numbers_that_change(jit):
    f = jit(lambda x, n: x * n)
    return [f(jnp.ones(2, jnp.float32), n) for n in (1.5, 2, True, nan, -0.0, 2**40)]


@flow.program
def kinds_that_change(jit):
    f = jit(lambda x: x * 2 + 1)
    arrays = [
        np.arange(3).astype(d)
        for d in (np.float32, np.float64, np.int8, np.uint8, np.float16, np.complex64)
    ]
    return [f(a) for a in arrays * 2], [f(jnp.ones(n)) for n in (1, 2, 0, 3)]


@flow.program
def closures(jit):
    scale = jnp.ones(2)
    f = jit(lambda x: x * scale)
    return f(jnp.arange(2.0)), f(jnp.arange(2.0) + 1)


@flow.program
def static_arguments(jit):
    f = (
        jit(lambda x, n: x * n, static_argnums=1)
        if jit.__name__ == "jit"
        else jit(lambda x, n: x * n)
    )
    return [f(jnp.ones(2), n) for n in (2, 3, 2)]


@flow.program
def partial_and_methods(jit):
    class Gain:
        def __init__(self, gain):
            self.gain = gain

        def apply(self, x, y=1.0):
            return x * self.gain + y

    return jit(Gain(2).apply)(jnp.ones(2)), jit(functools.partial(Gain(3).apply, y=5.0))(
        jnp.ones(2)
    )


@flow.program
def trees(jit):
    f = jit(lambda d: {"s": d["a"] + d["b"][0], "t": (d["b"][1], None)})
    return f({"a": jnp.ones(2), "b": [jnp.zeros(2), 3]})


@flow.program
def donated(jit):
    f = jit(lambda s, x: (s + x, s * 2))
    s = jnp.ones(3)
    for i in range(3):
        s, _ = f(s, jnp.full(3, float(i)))
    return s


@flow.program
def python_state_is_seen_while_tracing(jit):
    random.seed(2)
    value = random.random()
    return jit(lambda x: x * value)(jnp.ones(2))


@flow.program
def training(jit):
    def step(w, x, y):
        loss, g = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2))(w)
        return jax.tree.map(lambda a, b: a - 0.1 * b, w, g), loss

    f, rng = jit(step), np.random.default_rng(0)
    w = (jnp.asarray(rng.standard_normal((3, 4))), jnp.asarray(rng.standard_normal((4, 1))))
    x, y, losses = jnp.asarray(rng.standard_normal((5, 3))), jnp.ones((5, 1)), []
    for _ in range(4):
        w, loss = f(w, x, y)
        losses.append(loss)
    return w, losses
