"""Samples of primitives that move, reduce, multiply and sort arrays, and of control flow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from samples import BOOL, EVERY, FLOATS, INTEGERS, NUMBERS, Entry, Sample, array

FEW = ("float32", "int32", "complex64", "bool", "bfloat16", "uint8")


def moving(name: str, *cases: tuple[str, Callable[..., Any], tuple[int, ...]]) -> Entry:
    """A primitive that takes elements of any type."""

    def samples() -> Iterator[Sample]:
        for label, function, shape in cases:
            for dtype in FEW:
                yield Sample(f"{label} {dtype}", function, (array(shape, dtype),), same=True)

    return Entry(name, samples)


def reducing(name: str, function: Callable[..., Any], dtypes: Sequence[str]) -> Entry:
    """A reduction of an array over some dimensions."""

    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for shape, axes in (
                ((3, 17), (1,)),
                ((3, 17), (0,)),
                ((33,), (0,)),
                ((2, 5, 3), (0, 2)),
            ):
                yield Sample(
                    f"{dtype}{list(shape)} {axes}",
                    lambda x, axes=axes: function(x, axes),
                    (array(shape, dtype, low=0.5, high=1.5),),
                )
        for shape, axes in (((3, 0), (1,)), ((0, 4), (1,)), ((2, 3), ())):
            yield Sample(
                f"{list(shape)} {axes}",
                lambda x, axes=axes: function(x, axes),
                (array(shape, dtypes[0]),),
            )
        if dtypes[0] == "float32":
            x = array((3, 9), "float32", special=True)
            yield Sample("special", lambda x: function(x, (1,)), (x,))

    return Entry(name, samples)


def cumulative(name: str, function: Callable[..., Any], dtypes: Sequence[str]) -> Entry:
    """A running value along a dimension."""

    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for shape, axis in (((17,), 0), ((3, 33), 1), ((9, 4), 0)):
                for reverse in (False, True):
                    yield Sample(
                        f"{dtype}{list(shape)} {axis} {'reverse' if reverse else ''}",
                        lambda x, a=axis, r=reverse: function(x, axis=a, reverse=r),
                        (array(shape, dtype, low=-1.5, high=1.5),),
                    )
        yield Sample("empty", lambda x: function(x, axis=1), (array((3, 0), dtypes[0]),))
        yield Sample("one", lambda x: function(x, axis=1), (array((3, 1), dtypes[0]),))
        if dtypes[0] == "float32":
            x = array((3, 9), "float32", special=True)
            yield Sample("special", lambda x: function(x, axis=1), (x,))

    return Entry(name, samples)


def _extremum_index(name: str, function: Callable[..., Any]) -> Entry:
    def samples() -> Iterator[Sample]:
        for dtype in FLOATS + INTEGERS + BOOL:
            for shape, axis in (((17,), 0), ((3, 9), 1), ((5, 4), 0)):
                for index in (np.int32, np.int64):
                    yield Sample(
                        f"{dtype}{list(shape)} {axis} {index.__name__}",
                        lambda x, a=axis, i=index: function(x, a, i),
                        (array(shape, dtype),),
                    )
        x = array((3, 9), "float32", special=True)
        yield Sample("special", lambda x: function(x, 1, np.int32), (x,))
        yield Sample("unsigned", lambda x: function(x, 1, np.uint8), (x,))

    return Entry(name, samples)


def _dot() -> Iterator[Sample]:
    for dtype in EVERY:
        x, y = array((5, 9), dtype, seed=1), array((9, 4), dtype, seed=2)
        yield Sample(f"matrix {dtype}", lax.dot, (x, y))
    cases = [
        ((7,), (7,), (((0,), (0,)), ((), ()))),
        ((3, 5, 7), (3, 7, 2), (((2,), (1,)), ((0,), (0,)))),
        ((5, 3, 7), (7, 2, 3), (((2,), (0,)), ((1,), (2,)))),
        ((4, 3, 2), (3, 4, 5), (((0, 1), (1, 0)), ((), ()))),
        ((4, 3), (5, 2), (((), ()), ((), ()))),
        ((2, 3, 4, 5), (2, 3, 5, 6), (((3,), (2,)), ((0, 1), (0, 1)))),
        ((4, 0), (0, 5), (((1,), (0,)), ((), ()))),
        ((0, 4), (4, 5), (((1,), (0,)), ((), ()))),
    ]
    for left, right, dims in cases:
        for dtype in ("float32", "int32", "complex64"):
            x, y = array(left, dtype, seed=1), array(right, dtype, seed=2)
            yield Sample(
                f"{dtype} {left} {right} {dims}",
                lambda x, y, d=dims: lax.dot_general(x, y, d),
                (x, y),
            )
    for dtype, wanted in (("int8", np.int32), ("bfloat16", np.float32), ("float16", np.float32)):
        x, y = array((5, 9), dtype, seed=1), array((9, 4), dtype, seed=2)
        yield Sample(
            f"{dtype} to {np.dtype(wanted)}",
            lambda x, y, w=wanted: lax.dot(x, y, preferred_element_type=w),
            (x, y),
        )


def _convolution() -> Iterator[Sample]:
    def sample(label: str, x: Any, w: Any, dtype: str = "float32", **options: Any) -> Sample:
        options = {"window_strides": (1, 1), "padding": "SAME"} | options
        return Sample(
            label,
            lambda x, w: lax.conv_general_dilated(x, w, **options),
            (array(x, dtype, seed=1), array(w, dtype, seed=2)),
        )

    x, w = (2, 3, 9, 8), (4, 3, 3, 2)
    for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "complex64"):
        yield sample(dtype, x, w, dtype)
    yield sample("valid", x, w, padding="VALID")
    yield sample("strides", x, w, window_strides=(2, 3))
    yield sample("padding", x, w, padding=((2, 0), (-1, 3)))
    yield sample("window dilation", x, w, rhs_dilation=(2, 3))
    yield sample("base dilation", x, w, lhs_dilation=(2, 3), padding=((1, 1), (2, 0)))
    yield sample(
        "all at once",
        x,
        w,
        lhs_dilation=(2, 1),
        rhs_dilation=(1, 2),
        window_strides=(3, 2),
        padding=((2, -1), (0, 3)),
    )
    yield sample("groups", (2, 6, 7, 7), (4, 3, 3, 3), feature_group_count=2)
    yield sample("depthwise", (2, 6, 7, 7), (12, 1, 3, 3), feature_group_count=6)
    yield sample("batch groups", (4, 3, 7, 7), (6, 3, 3, 3), batch_group_count=2)
    nhwc = ("NHWC", "HWIO", "NHWC")
    yield sample("NHWC", (2, 9, 8, 3), (3, 2, 3, 4), dimension_numbers=nhwc)
    yield sample(
        "NHWC groups", (2, 9, 8, 4), (3, 3, 2, 6), dimension_numbers=nhwc, feature_group_count=2
    )
    yield sample("mixed layouts", x, (3, 2, 3, 4), dimension_numbers=("NCHW", "HWIO", "NHWC"))
    yield sample("one dimension", (2, 3, 9), (4, 3, 3), window_strides=(2,))
    yield sample("three dimensions", (1, 2, 5, 4, 3), (3, 2, 2, 2, 2), window_strides=(1, 1, 1))
    yield sample("no space", (2, 3), (4, 3), window_strides=(), padding=())
    yield sample("empty", (0, 3, 9, 8), w)
    yield sample("empty channels", (2, 0, 9, 8), (4, 0, 3, 2))
    x4, w4 = array((2, 9, 8, 4), "float32"), array((3, 3, 4, 6), "float32", seed=1)
    for padding in ("SAME", "VALID"):
        yield Sample(
            f"transposed {padding}",
            lambda x, w, p=padding: lax.conv_transpose(x, w, (2, 2), p),
            (x4, w4),
        )
    yield Sample(
        "transposed kernel",
        lambda x, w: lax.conv_transpose(x, w, (2, 3), "SAME", transpose_kernel=True),
        (x4, array((3, 3, 6, 4), "float32", seed=1)),
    )
    xg, wg = array((2, 4, 9, 8), "float32"), array((6, 2, 3, 3), "float32", seed=1)

    def loss(x: Any, w: Any) -> Any:
        y = lax.conv_general_dilated(x, w, (2, 1), "SAME", feature_group_count=2)
        return (y * y).sum()

    yield Sample("gradients", jax.grad(loss, argnums=(0, 1)), (xg, wg))


def _gather() -> Iterator[Sample]:
    rows = np.array([3, 0, 40, -1, 6, -9], np.int32)
    for dtype in FEW:
        x = array((7, 5), dtype)
        yield Sample(f"rows {dtype}", lambda x, i: x[i], (x, rows), same=True)
    x = array((7, 5), "float32")
    for kind in INTEGERS:
        i = np.array([3, 0, 6, 2], kind)
        yield Sample(f"index {kind}", lambda x, i: x[i], (x, i), same=True)
    for mode in ("fill", "clip", "promise_in_bounds"):
        i = np.array([3, 0, 6], np.int32) if mode == "promise_in_bounds" else rows
        yield Sample(mode, lambda x, i, m=mode: x.at[i].get(mode=m), (x, i), same=True)
    i, j = np.array([3, 0, 6]), np.array([4, 4, 1])
    yield Sample("points", lambda x, i, j: x[i, j], (x, i, j), same=True)
    yield Sample("grid", lambda x, i, j: x[i[:, None], j], (x, i, j), same=True)
    yield Sample("columns", lambda x, i: x[:, i], (x, j), same=True)
    yield Sample("one row", lambda x, i: x[i], (x, np.int32(4)), same=True)
    yield Sample("one row, negative", lambda x, i: x[i], (x, np.int32(-2)), same=True)
    yield Sample("one row, beyond", lambda x, i: x[i], (x, np.int32(70)), same=True)
    along = np.random.default_rng(1).integers(0, 5, (7, 3))
    yield Sample("along", lambda x, i: jnp.take_along_axis(x, i, 1), (x, along), same=True)
    yield Sample("no indices", lambda x, i: x[i], (x, np.zeros(0, np.int32)), same=True)
    batched = jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))
    yield Sample("batch of slices", batched, (x, np.int32([0, 1, 2, 3, 9, -4, 2])), same=True)
    dims = lax.GatherDimensionNumbers((1,), (0,), (0, 1))
    places = np.array([[0, 1], [6, 4], [2, 9]], np.int32)
    yield Sample(
        "windows",
        lambda x, i: lax.gather(x, i, dims, (1, 2), mode="clip"),
        (x, places),
        same=True,
    )


def _scatter(name: str, method: str, dtypes: Sequence[str]) -> Entry:
    def samples() -> Iterator[Sample]:
        def at(*index: Any, mode: Any = None) -> Any:
            return lambda x, u, *i: getattr(x.at[index or i], method)(u, mode=mode)

        i = np.array([3, 0, 3, 40, -1, 3], np.int32)
        unique = np.array([3, 0, 5, 40, -1, 2], np.int32)
        chosen = unique if method == "set" else i
        for dtype in dtypes:
            x, u = array((7,), dtype), array((6,), dtype, seed=1)
            yield Sample(f"elements {dtype}", at(), (x, u, chosen))
            x, u = array((7, 5), dtype), array((6, 5), dtype, seed=1)
            yield Sample(f"rows {dtype}", at(), (x, u, chosen))
        x = array((7, 5), dtypes[0])
        for mode in ("drop", "clip", "promise_in_bounds"):
            u = array((6, 5), dtypes[0], seed=1)
            where = np.array([3, 0, 6, 2, 1, 4], np.int32) if mode[0] == "p" else chosen
            if mode == "clip" and method == "set":
                where = unique[[0, 1, 2, 5, 3, 4]][:5]
                u = u[:5]
            yield Sample(mode, at(mode=mode), (x, u, where))
        j = np.array([4, 0, 1, 1, 2, 4], np.int32)
        u = array((6,), dtypes[0], seed=1)
        points = np.array([3, 0, 5, 6, 1, 2], np.int32) if method == "set" else i
        yield Sample("points", at(), (x, u, points, j))
        yield Sample(
            "one element", at(), (x, array((), dtypes[0], seed=2), np.int32(2), np.int32(1))
        )
        yield Sample("one row", at(), (x, array((5,), dtypes[0], seed=2), np.int32(2)))
        yield Sample("one row beyond", at(), (x, array((5,), dtypes[0], seed=2), np.int32(9)))
        columns = np.array([4, 0, 2], np.int32)
        u = array((7, 3), dtypes[0], seed=1)

        def by_columns(x: Any, u: Any, i: Any) -> Any:
            return getattr(x.at[:, i], method)(u)

        yield Sample("columns", by_columns, (x, u, columns))
        yield Sample("slice", lambda x, u: getattr(x.at[1:4, ::2], method)(u), (x, u[:3]))
        batched = jax.vmap(lambda x, u, i: getattr(x.at[i], method)(u))
        bi = np.array([[0, 1], [4, 4], [2, 9]], np.int32)
        bi = np.array([[0, 1], [4, 3], [2, 9]], np.int32) if method == "set" else bi
        yield Sample("batch", batched, (x[:3], array((3, 2), dtypes[0], seed=1), bi))
        empty = array((0, 5), dtypes[0]), np.zeros(0, np.int32)
        yield Sample("no updates", at(), (x, *empty))
        many = np.random.default_rng(0).integers(0, 50, 3000).astype(np.int32)
        if method != "set":
            x, u = array((50,), dtypes[0]), array((3000,), dtypes[0], seed=1, low=0.99, high=1.01)
            yield Sample("many", at(), (x, u, many))

    return Entry(name, samples)


def _scatter_sub() -> Iterator[Sample]:
    i = np.array([3, 0, 3, 40, -1, 3], np.int32)
    for dtype in ("float32", "int32"):
        x, u = array((7,), dtype), array((6,), dtype, seed=1)
        yield Sample(dtype, lambda x, u, i: x.at[i].subtract(u), (x, u, i))


def _sort() -> Iterator[Sample]:
    for dtype in FLOATS + INTEGERS + BOOL + ("complex64",):
        for shape, axis in (((17,), 0), ((3, 300), 1), ((9, 4), 0)):
            x = array(shape, dtype, special="complex" not in dtype)
            yield Sample(f"{dtype}{list(shape)}", lambda x, a=axis: lax.sort(x, a), (x,), same=True)
    keys = np.array([3, 1, 3, 1, 2, 2, 1], np.int32)
    more = array((7,), "float32", seed=4)
    pair = keys, np.arange(7.0, dtype=np.float32)
    yield Sample("two operands", lambda k, v: lax.sort((k, v), num_keys=1), pair, same=True)
    yield Sample("two keys", lambda k, v: lax.sort((k, v), num_keys=2), (keys, more), same=True)
    yield Sample("argsort", lambda x: jnp.argsort(x), (keys,), same=True)
    yield Sample("descending", lambda x: jnp.sort(x, descending=True), (keys,), same=True)
    long = np.random.default_rng(2).integers(0, 99, 1000).astype(np.int32)
    yield Sample("long argsort", lambda x: jnp.argsort(x), (long,), same=True)
    yield Sample(
        "unstable", lambda k: lax.sort(k, is_stable=False), (array((500,), "float32"),), same=True
    )
    yield Sample("empty", lambda x: lax.sort(x), (array((0,), "float32"),), same=True)
    yield Sample("one", lambda x: lax.sort(x), (array((3, 1), "float32"),), same=True)


def _top_k() -> Iterator[Sample]:
    for dtype in FLOATS + INTEGERS:
        yield Sample(dtype, lambda x: lax.top_k(x, 3), (array((4, 17), dtype),), same=True)
    x = array((500,), "float32")
    yield Sample("long", lambda x: lax.top_k(x, 7), (x,), same=True)
    yield Sample("all", lambda x: lax.top_k(x, 9), (array((9,), "float32"),), same=True)


def _approx_top_k() -> Iterator[Sample]:
    x = array((4, 170), "float32")
    yield Sample("max", lambda x: lax.approx_max_k(x, 3), (x,))
    yield Sample("min", lambda x: lax.approx_min_k(x, 3), (x,))


def _window(name: str, function: Callable[..., Any], dtypes: Sequence[str]) -> Entry:
    def samples() -> Iterator[Sample]:
        cases = [
            ((1, 3, 2, 1), (1, 2, 1, 1), "SAME", None, None),
            ((1, 3, 2, 1), (1, 2, 2, 1), "VALID", None, None),
            ((2, 3, 2, 1), (1, 1, 1, 1), ((1, 0), (2, 1), (0, 0), (0, 0)), None, (1, 2, 1, 1)),
            ((1, 2, 2, 1), (1, 1, 1, 1), "VALID", (1, 2, 3, 1), None),
        ]
        for dtype in dtypes:
            for i, (window, strides, padding, base, dilation) in enumerate(cases):
                if dtype != dtypes[0] and i:
                    continue
                x = array((2, 9, 8, 3), dtype, low=0.5, high=1.5)
                yield Sample(
                    f"{dtype} {window} {strides} {padding} {base} {dilation}",
                    lambda x, o=(window, strides, padding, base, dilation): function(x, *o),
                    (x,),
                )
        whole = ((5,), (1,), "VALID", None, None)
        yield Sample("whole", lambda x: function(x, *whole), (array((5,), dtypes[0]),))

    return Entry(name, samples)


def _windows_of(computation: Callable[..., Any], init: Any) -> Callable[..., Any]:
    def function(x: Any, window: Any, strides: Any, padding: Any, base: Any, dilation: Any) -> Any:
        start = np.array(init(x.dtype), x.dtype)
        return lax.reduce_window(x, start, computation, window, strides, padding, base, dilation)

    return function


def _least(dtype: Any) -> Any:
    return -np.inf if dtype.kind in "fV" else np.iinfo(dtype).min


def _greatest(dtype: Any) -> Any:
    return np.inf if dtype.kind in "fV" else np.iinfo(dtype).max


def _reduce() -> Iterator[Sample]:
    x, y = array((5, 9), "float32", seed=1), array((5, 9), "float32", seed=2)

    def both(a: Any, b: Any) -> Any:
        return a[0] + b[0], jnp.maximum(a[1], b[1] * 1.0)

    def pair(x: Any, y: Any) -> Any:
        return lax.reduce((x, y), (np.float32(0), np.float32(-9)), both, (1,))

    yield Sample("two arrays", pair, (x, y))

    def arg(a: Any, b: Any) -> Any:
        take = (b[0] > a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
        return jnp.where(take, b[0], a[0]), jnp.where(take, b[1], a[1])

    def argmax(x: Any) -> Any:
        i = lax.broadcasted_iota(np.int32, x.shape, 1)
        return lax.reduce((x, i), (np.float32(-np.inf), np.int32(99)), arg, (1,))

    yield Sample("argmax", argmax, (x,))

    def norm(x: Any) -> Any:
        return lax.reduce(x, np.float32(0), lambda a, b: jnp.sqrt(a * a + b * b), (0,))

    yield Sample("norm", norm, (x,))
    yield Sample("start", lambda x, s: lax.reduce(x, s, lax.add, (0,)), (x, np.float32(3)))


def _reduce_window() -> Iterator[Sample]:
    x, y = array((9, 8), "float32", seed=1), array((9, 8), "float32", seed=2)

    def both(a: Any, b: Any) -> Any:
        return a[0] + b[0], lax.max(a[1], b[1])

    def pair(x: Any, y: Any) -> Any:
        start = np.float32(0), np.float32(-np.inf)
        return lax.reduce_window((x, y), start, both, (3, 2), (2, 1), "SAME")

    yield Sample("two arrays", pair, (x, y))
    yield Sample(
        "product",
        lambda x: lax.reduce_window(x, np.float32(1), lax.mul, (3, 2), (1, 1), "VALID"),
        (x,),
    )
    yield Sample(
        "own body",
        lambda x: lax.reduce_window(
            x, np.float32(0), lambda a, b: lax.abs(a) + lax.abs(b), (3, 2), (1, 1), "SAME"
        ),
        (x,),
    )


def _select_and_scatter(pooling: str) -> Iterator[Sample]:
    for dtype in ("float32", "float64"):
        for window, strides, padding in (((2, 2), (2, 2), "VALID"), ((3, 3), (2, 2), "SAME")):

            def loss(x: Any, w: Any = window, s: Any = strides, p: Any = padding) -> Any:
                least = np.array(-np.inf if pooling == "max" else np.inf, x.dtype)
                operation = lax.max if pooling == "max" else lax.min
                y = lax.reduce_window(x, least, operation, w, s, p)
                return (y * y).sum()

            x = array((9, 8), dtype)
            yield Sample(f"{pooling} {dtype} {window} {padding}", jax.grad(loss), (x,))


def _select_and_gather_add() -> Iterator[Sample]:
    def pool(x: Any) -> Any:
        return lax.reduce_window(x, np.float32(-np.inf), lax.max, (2, 2), (2, 2), "VALID")

    def tangent(x: Any, t: Any) -> Any:
        return jax.jvp(pool, (x,), (t,))[1]

    yield Sample("tangents", tangent, (array((8, 8), "float32"), array((8, 8), "float32", seed=1)))


def _dynamic_slice() -> Iterator[Sample]:
    for dtype in FEW:
        for start in ((1, 2), (-3, 0), (99, 3)):
            where = tuple(np.int32(s) for s in start)
            yield Sample(
                f"{dtype} {start}",
                lambda x, i, j: lax.dynamic_slice(x, (i, j), (3, 2)),
                (array((7, 5), dtype), *where),
                same=True,
            )
    for kind in INTEGERS:
        i = np.array(2, kind)
        yield Sample(
            f"index {kind}",
            lambda x, i: lax.dynamic_slice(x, (i,), (3,)),
            (array((7,), "float32"), i),
            same=True,
        )


def _dynamic_update_slice() -> Iterator[Sample]:
    for dtype in FEW:
        for start in ((1, 2), (-3, 0), (99, 3)):
            where = tuple(np.int32(s) for s in start)
            yield Sample(
                f"{dtype} {start}",
                lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
                (array((7, 5), dtype), array((3, 2), dtype, seed=1), *where),
                same=True,
            )


def _pad() -> Iterator[Sample]:
    configurations = [
        ((1, 2, 0), (0, 3, 0)),
        ((-1, 2, 0), (2, -3, 0)),
        ((0, 0, 2), (1, 1, 1)),
        ((-1, -2, 1), (3, -4, 2)),
        ((-4, -3, 0), (-2, 0, 1)),
    ]
    for dtype, configuration in itertools.product(FEW, configurations):
        x = array((7, 5), dtype)
        yield Sample(
            f"{dtype} {configuration}",
            lambda x, v, c=configuration: lax.pad(x, v, c),
            (x, array((), dtype, seed=1)),
            same=True,
        )


def _while() -> Iterator[Sample]:
    x = array((9,), "float32", low=0.1, high=1)

    def grow(x: Any) -> Any:
        return lax.while_loop(lambda c: c[1].sum() < 1000, lambda c: (c[0] + 1, c[1] * 1.5), (0, x))

    yield Sample("until a sum", grow, (x,))
    yield Sample(
        "never", lambda x: lax.while_loop(lambda c: c.sum() < -1, lambda c: c + 1, x), (x,)
    )
    yield Sample("fori", lambda x: lax.fori_loop(0, 20, lambda i, c: c * 0.5 + i, x), (x,))
    yield Sample("fori down", lambda x: lax.fori_loop(-5, 20, lambda i, c: c * 0.5 + i, x), (x,))
    yield Sample(
        "fori dynamic", lambda x, n: lax.fori_loop(0, n, lambda i, c: c + i, x), (x, np.int32(7))
    )
    yield Sample(
        "fori none", lambda x, n: lax.fori_loop(3, n, lambda i, c: c + i, x), (x, np.int32(2))
    )

    def nested(x: Any) -> Any:
        return lax.fori_loop(
            0, 12, lambda i, c: lax.fori_loop(0, i, lambda j, d: d * 0.5 + j, c), x
        )

    yield Sample("nested", nested, (x,))

    def mixed(x: Any, p: Any) -> Any:
        return lax.fori_loop(0, 30, lambda i, c: lax.cond(c[0] > p, jnp.sin, jnp.cos, c), x)

    yield Sample("with a branch", mixed, (x, np.float32(0.7)))
    yield Sample(
        "unsigned",
        lambda x: lax.while_loop(
            lambda c: c[0] > 5, lambda c: (c[0] - np.uint32(3), c[1] + 1), (np.uint32(40), x)
        ),
        (x,),
    )

    def collatz(n: Any) -> Any:
        def step(c: Any) -> Any:
            n, k = c
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

        return lax.while_loop(lambda c: c[0] != 1, step, (n, 0))

    yield Sample("integers", collatz, (np.int32(27),), same=True)

    def batch(x: Any, n: Any) -> Any:
        return jax.vmap(lambda x, n: lax.fori_loop(0, n, lambda i, c: c + i, x))(x, n)

    yield Sample("batch", batch, (x, np.arange(9, dtype=np.int32)))


def _scan() -> Iterator[Sample]:
    xs = array((33, 5), "float32", low=-0.9, high=0.9)

    def step(c: Any, a: Any) -> Any:
        return c * 0.9 + a, c * a

    yield Sample("plain", lambda xs: lax.scan(step, xs[0], xs), (xs,))
    yield Sample("reverse", lambda xs: lax.scan(step, xs[0], xs, reverse=True), (xs,))
    yield Sample("unrolled", lambda xs: lax.scan(step, xs[0], xs, unroll=4), (xs,))
    yield Sample("no carry", lambda xs: lax.scan(lambda c, a: (c, jnp.sin(a)), 0, xs)[1], (xs,))
    yield Sample(
        "no inputs",
        lambda x: lax.scan(lambda c, _: (jnp.cos(c), c[0]), x, None, length=100),
        (xs[0],),
    )
    w = array((5, 5), "float32", low=-0.5, high=0.5, seed=3)

    def rnn(w: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: ((y := jnp.tanh(w @ h + x)), y), jnp.zeros(5, np.float32), xs)

    yield Sample("recurrent", lambda w, xs: rnn(w, xs), (w, xs))
    yield Sample("gradient", jax.grad(lambda w, xs: (rnn(w, xs)[1] ** 2).sum()), (w, xs))
    yield Sample("empty", lambda xs: lax.scan(step, np.zeros(5, np.float32), xs), (xs[:0],))
    yield Sample("short", lambda xs: lax.scan(step, np.zeros(5, np.float32), xs), (xs[:3],))
    yield Sample("associative", lambda xs: lax.associative_scan(jnp.maximum, xs), (xs,))

    def many(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            a, b, n = c
            return (a + b, b * 0.5, n + 1), (a.sum(), n)

        return lax.scan(body, (x, x * 2, np.int32(3)), None, length=40)

    yield Sample("several", many, (xs[0],))


def _cond() -> Iterator[Sample]:
    x = array((9,), "float32")
    for p in (True, False):
        yield Sample(
            f"{p}", lambda p, x: lax.cond(p, jnp.sin, lambda x: x * 2, x), (np.array(p), x)
        )
    for i in (-1, 0, 1, 2, 3):
        branches = [jnp.sin, lambda x: x * 2, lambda x: x + x[::-1]]
        yield Sample(f"switch {i}", lambda i, x, b=branches: lax.switch(i, b, x), (np.int32(i), x))

    def nested(i: Any, x: Any) -> Any:
        return lax.cond(
            i > 0,
            lambda x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x),
            lambda x: lax.fori_loop(0, 9, lambda j, c: c * 0.5, x),
            x,
        )

    yield Sample("nested", nested, (np.int32(2), x))
    yield Sample("nested else", nested, (np.int32(-2), x))
    batched = jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))
    yield Sample("batch", batched, (array((9,), "bool"), x))
    yield Sample(
        "several",
        lambda p, x: lax.cond(p, lambda x: (x, x.sum()), lambda x: (x * 2, x[0]), x),
        (np.array(True), x),
    )


def _random() -> Iterator[Sample]:
    state = np.array([3, 5], np.uint64)
    for algorithm in lax.RandomAlgorithm:
        for dtype in ("uint32", "uint64"):
            for shape in ((9,), (3, 4)):
                yield Sample(
                    f"{algorithm.name} {dtype}{list(shape)}",
                    lambda s, a=algorithm, d=dtype, n=shape: lax.rng_bit_generator(
                        s, n, np.dtype(d), a
                    ),
                    (state if algorithm.name == "RNG_THREE_FRY" else np.uint64([3, 5, 7])[:2],),
                    same=True,
                )


def _threefry() -> Iterator[Sample]:
    key = np.array([7, 9], np.uint32)

    def of(function: Any) -> Any:
        return lambda key: function(jax.random.wrap_key_data(key, impl="threefry2x32"))

    draws = {
        "bits": lambda k: jax.random.bits(k, (17,)),
        "uniform": lambda k: jax.random.uniform(k, (3, 5)),
        "randint": lambda k: jax.random.randint(k, (9,), -5, 50),
        "split": lambda k: jax.random.key_data(jax.random.split(k, 3)),
        "fold_in": lambda k: jax.random.key_data(jax.random.fold_in(k, 3)),
        "permutation": lambda k: jax.random.permutation(k, 20),
        "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (20,)),
    }
    for name, function in draws.items():
        yield Sample(name, of(function), (key,), same=True)
    near = {
        "normal": lambda k: jax.random.normal(k, (17,)),
        "gumbel": lambda k: jax.random.gumbel(k, (17,)),
        "truncated": lambda k: jax.random.truncated_normal(k, -1, 2, (17,)),
        "exponential": lambda k: jax.random.exponential(k, (17,)),
    }
    for name, function in near.items():
        yield Sample(name, of(function), (key,))


def _iota() -> Iterator[Sample]:
    for dtype in NUMBERS:
        for dim in (0, 1):
            yield Sample(
                f"{dtype} {dim}",
                lambda x, d=dtype, n=dim: lax.broadcasted_iota(d, (3, 70), n) + x,
                (np.zeros((), array((), dtype).dtype),),
            )


def _concatenate() -> Iterator[Sample]:
    for dtype in EVERY:
        parts = [array(shape, dtype, seed=1) for shape in ((2, 3), (0, 3), (5, 3))]
        yield Sample(dtype, lambda *p: lax.concatenate(p, 0), tuple(parts), same=True)
    parts = [array(shape, "float32") for shape in ((3, 2), (3, 5))]
    yield Sample("columns", lambda *p: lax.concatenate(p, 1), tuple(parts), same=True)


def _linear_solve() -> Iterator[Sample]:
    def solve(b: Any) -> Any:
        return lax.custom_linear_solve(lambda x: 2 * x, b, lambda f, b: b / 2)

    yield Sample("scaling", solve, (array((5,), "float32"),))


def _total_order(name: str, function: Callable[..., Any]) -> Entry:
    def samples() -> Iterator[Sample]:
        for dtype in FLOATS:
            x = array((9,), dtype, special=True)
            grid = np.broadcast_to(x[:, None], (9, 9)), np.broadcast_to(x[None, :], (9, 9))
            pair = tuple(np.ascontiguousarray(g) for g in grid)
            yield Sample(dtype, lambda x, y: function.bind(x, y), pair)  # type: ignore[attr-defined]

    return Entry(name, samples)


def _mulhi() -> Iterator[Sample]:
    for dtype in INTEGERS:
        pair = array((9,), dtype, special=True), array((9,), dtype, special=True, seed=1)
        yield Sample(dtype, lambda x, y: lax.mulhi(x, y), pair, same=True)


def _barrier() -> Iterator[Sample]:
    yield Sample("two", lambda x: lax.optimization_barrier((x, x + 1)), (array((5,), "float32"),))


def _fft() -> Iterator[Sample]:
    yield Sample("FFT", lambda x: lax.fft(x, "FFT", (8,)), (array((8,), "complex64"),))


def _uniform() -> Iterator[Sample]:
    yield Sample(
        "float32", lambda a, b: lax.rng_uniform(a, b, (3,)), (np.float32(0), np.float32(1))
    )


def _axes(operation: str) -> Callable[..., Any]:
    return lambda x, axes: getattr(lax, operation)(x, axes)


ENTRIES = [
    Entry("approx_top_k", _approx_top_k),
    _extremum_index("argmax", lax.argmax),
    _extremum_index("argmin", lax.argmin),
    moving(
        "broadcast_in_dim",
        ("rows", lambda x: lax.broadcast_in_dim(x, (3, 5), (1,)), (5,)),
        ("columns", lambda x: lax.broadcast_in_dim(x, (5, 3), (0,)), (5,)),
        ("ones", lambda x: lax.broadcast_in_dim(x, (2, 5, 3), (1, 2)), (5, 1)),
        ("scalar", lambda x: lax.broadcast(x, (2, 3)), ()),
    ),
    Entry("concatenate", _concatenate),
    Entry("cond", _cond),
    Entry("conv_general_dilated", _convolution),
    moving("copy", ("plain", lambda x: lax.optimization_barrier(jnp.copy(x)), (3, 5))),
    cumulative("cumlogsumexp", lax.cumlogsumexp, FLOATS),
    cumulative("cummax", lax.cummax, FLOATS + INTEGERS),
    cumulative("cummin", lax.cummin, FLOATS + INTEGERS),
    cumulative("cumprod", lax.cumprod, NUMBERS),
    cumulative("cumsum", lax.cumsum, NUMBERS),
    Entry("dot_general", _dot),
    Entry("dynamic_slice", _dynamic_slice),
    Entry("dynamic_update_slice", _dynamic_update_slice),
    _total_order("eq_to", lax.eq_to_p),
    _total_order("le_to", lax.le_to_p),
    _total_order("lt_to", lax.lt_to_p),
    Entry("fft", _fft),
    Entry("gather", _gather),
    Entry("iota", _iota),
    Entry("linear_solve", _linear_solve),
    Entry("mulhi", _mulhi),
    Entry("optimization_barrier", _barrier),
    Entry("pad", _pad),
    Entry("random_bits (threefry2x32)", _threefry),
    Entry("reduce", _reduce),
    reducing("reduce_and", _axes("reduce_and"), (*BOOL, "int32", "uint8")),
    reducing("reduce_max", _axes("reduce_max"), FLOATS + INTEGERS),
    reducing("reduce_min", _axes("reduce_min"), FLOATS + INTEGERS),
    reducing("reduce_or", _axes("reduce_or"), (*BOOL, "int32", "uint8")),
    reducing("reduce_prod", _axes("reduce_prod"), NUMBERS),
    reducing("reduce_sum", _axes("reduce_sum"), NUMBERS),
    reducing("reduce_xor", _axes("reduce_xor"), (*BOOL, "int32", "uint8")),
    Entry("reduce_window", _reduce_window),
    _window("reduce_window_max", _windows_of(lax.max, _least), FLOATS + INTEGERS),
    _window("reduce_window_min", _windows_of(lax.min, _greatest), FLOATS + INTEGERS),
    _window("reduce_window_sum", _windows_of(lax.add, lambda d: 0), NUMBERS),
    moving(
        "reshape",
        ("split", lambda x: lax.reshape(x, (3, 2, 2)), (12,)),
        ("join", lambda x: lax.reshape(x, (12,)), (3, 4)),
        ("other", lambda x: lax.reshape(x, (2, 6)), (3, 4)),
        ("ones", lambda x: lax.reshape(x, (1, 3, 1, 4)), (3, 4)),
        ("scalar", lambda x: lax.reshape(x, ()), (1, 1)),
        ("empty", lambda x: lax.reshape(x, (0, 7)), (3, 0)),
        ("permuted", lambda x: lax.reshape(x, (4, 3), dimensions=(1, 0)), (3, 4)),
    ),
    moving(
        "rev",
        ("one", lambda x: lax.rev(x, (1,)), (3, 5)),
        ("both", lambda x: lax.rev(x, (0, 1)), (3, 5)),
    ),
    Entry("rng_bit_generator", _random),
    Entry("rng_uniform", _uniform),
    Entry("scan", _scan),
    _scatter("scatter", "set", FEW),
    _scatter("scatter_add", "add", ("float32", "float64", "bfloat16", *INTEGERS, "complex64")),
    _scatter("scatter_max", "max", ("float32", "bfloat16", *INTEGERS)),
    _scatter("scatter_min", "min", ("float32", "bfloat16", *INTEGERS)),
    _scatter("scatter_mul", "multiply", ("float32", "int32", "uint8", "complex64")),
    Entry("scatter_sub", _scatter_sub),
    Entry("select_and_gather_add", _select_and_gather_add),
    Entry("select_and_scatter", lambda: _select_and_scatter("min")),
    Entry("select_and_scatter_add", lambda: _select_and_scatter("max")),
    moving(
        "slice",
        ("plain", lambda x: lax.slice(x, (1, 2), (6, 5)), (7, 5)),
        ("strides", lambda x: lax.slice(x, (0, 1), (7, 5), (3, 2)), (7, 5)),
        ("nothing", lambda x: lax.slice(x, (2, 1), (2, 5)), (7, 5)),
    ),
    Entry("sort", _sort),
    moving("split", ("three", lambda x: lax.split(x, (2, 1, 4), 0), (7, 5))),
    moving("squeeze", ("two", lambda x: lax.squeeze(x, (0, 2)), (1, 3, 1))),
    moving("stack", ("two", lambda x: jnp.stack([x, x]), (3, 5))),
    moving("stop_gradient", ("plain", lambda x: lax.stop_gradient(x), (3, 5))),
    moving("tile", ("plain", lambda x: jnp.tile(x, (2, 3)), (3, 5))),
    Entry("top_k", _top_k),
    moving(
        "transpose",
        ("matrix", lambda x: lax.transpose(x, (1, 0)), (3, 5)),
        ("cycle", lambda x: lax.transpose(x, (2, 0, 1)), (3, 5, 2)),
    ),
    moving("unstack", ("rows", lambda x: list(jnp.unstack(x)), (3, 5))),
    Entry("while", _while),
]
