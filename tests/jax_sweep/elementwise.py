"""Samples of primitives that work element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from jax import lax
from samples import (
    BOOL,
    COMPLEX,
    EVERY,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SHAPES,
    SIGNED,
    UNSIGNED,
    Entry,
    Sample,
    array,
    dtype_of,
)


def unary(
    name: str,
    function: Callable[..., Any],
    dtypes: Sequence[str],
    low: float = -3.0,
    high: float = 3.0,
) -> Entry:
    """A function of one array; special numbers and a plain one for each dtype."""

    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for shape in SHAPES if dtype == dtypes[0] else SHAPES[:1]:
                x = array(shape, dtype, low=low, high=high)
                yield Sample(f"{dtype}{list(shape)}", function, (x,))
            if "complex" not in dtype and dtype != "bool":
                x = array((19,), dtype, low=low, high=high, special=True)
                yield Sample(f"{dtype} special", function, (x,))

    return Entry(name, samples)


def binary(
    name: str,
    function: Callable[..., Any],
    dtypes: Sequence[str],
    low: float = -3.0,
    high: float = 3.0,
) -> Entry:
    """A function of two arrays of one shape; special numbers meet each other."""

    def samples() -> Iterator[Sample]:
        for dtype in dtypes:
            for shape in SHAPES if dtype == dtypes[0] else SHAPES[:1]:
                pair = (array(shape, dtype, low=low, high=high, seed=s) for s in (1, 2))
                yield Sample(f"{dtype}{list(shape)}", function, tuple(pair))
            if "complex" not in dtype and dtype != "bool":
                x = array((7,), dtype, low=low, high=high, special=True)
                y = array((7,), dtype, low=low, high=high, special=True, seed=3)
                grid = np.broadcast_to(x[:, None], (7, 7)), np.broadcast_to(y[None, :], (7, 7))
                yield Sample(
                    f"{dtype} special", function, tuple(np.ascontiguousarray(g) for g in grid)
                )

    return Entry(name, samples)


def _ternary(name: str, function: Callable[..., Any], ranges: Any) -> Entry:
    """A special function of several positive numbers."""

    def samples() -> Iterator[Sample]:
        for dtype in FLOATS[:2]:
            for shape in SHAPES:
                arrays = [
                    array(shape, dtype, low=low, high=high, seed=i)
                    for i, (low, high) in enumerate(ranges)
                ]
                yield Sample(f"{dtype}{list(shape)}", function, tuple(arrays))

    return Entry(name, samples)


def _clamp() -> Iterator[Sample]:
    for dtype in FLOATS + INTEGERS:
        x = array((19,), dtype, special=True)
        low, high = np.array(0, x.dtype), np.array(2, x.dtype)
        yield Sample(f"{dtype} scalars", lax.clamp, (low, x, high))
        bounds = array((19,), dtype, seed=1), array((19,), dtype, seed=2)
        yield Sample(f"{dtype} arrays", lax.clamp, (bounds[0], x, bounds[1]))


def _select() -> Iterator[Sample]:
    for dtype in EVERY:
        cases = array((3, 5), dtype, seed=1), array((3, 5), dtype, seed=2)
        yield Sample(dtype, lax.select_n, (array((3, 5), "bool"), *cases))
    three = [array((7,), "float32", seed=s) for s in range(3)]
    which = np.array([0, 1, 2, 2, 1, 0, 1], np.int32)
    yield Sample("three cases", lax.select_n, (which, *three))
    yield Sample("scalar", lax.select_n, (np.array(True), three[0], three[1]))


def _convert() -> Iterator[Sample]:
    for source in EVERY:
        for target in EVERY:
            if "complex" in source and "complex" not in target:
                continue
            x = array((19,), source, special=True, low=-300, high=300)
            if target == "bool" or source == target:
                continue
            function = partial(lax.convert_element_type, new_dtype=dtype_of(target))
            yield Sample(f"{source} to {target}", function, (x,), same=True)


def _bitcast() -> Iterator[Sample]:
    for source in FLOATS + INTEGERS:
        for target in FLOATS + INTEGERS:
            if source == target:
                continue
            x = array((3, 8), source)
            ratio = dtype_of(target).itemsize // dtype_of(source).itemsize
            if ratio > 1:
                x = array((3, ratio), source)
            function = partial(lax.bitcast_convert_type, new_dtype=dtype_of(target))
            yield Sample(f"{source} to {target}", function, (x,), same=True)


def _shift(name: str, function: Callable[..., Any]) -> Entry:
    def samples() -> Iterator[Sample]:
        for dtype in INTEGERS:
            width = np.iinfo(dtype).bits
            counts = np.array([0, 1, width - 1, width, width + 1, 2, 3], dtype)
            x = array((7,), dtype, special=True)
            yield Sample(dtype, function, (x, counts), same=True)
        yield Sample("negative", function, (np.int32([5, -5]), np.int32([-1, -40])), same=True)

    return Entry(name, samples)


def _pow() -> Iterator[Sample]:
    yield from binary("pow", lax.pow, FLOATS).samples()
    for dtype in COMPLEX:
        yield Sample(dtype, lax.pow, (array((7,), dtype, seed=1), array((7,), dtype, seed=2)))
    for dtype in ("int32", "uint8"):
        x, y = array((9,), "float32"), np.abs(array((9,), dtype, seed=1))
        yield Sample(f"float32 to {dtype}", lax.pow, (x, y))


def _integer_pow() -> Iterator[Sample]:
    for dtype in NUMBERS:
        for exponent in (0, 1, 2, 3, 7, -1, -3):
            if exponent < 0 and dtype in INTEGERS:
                continue

            def function(x: Any, y: int = exponent) -> Any:
                return lax.integer_pow(x, y)

            yield Sample(f"{dtype} to {exponent}", function, (array((9,), dtype),))


def _reduce_precision() -> Iterator[Sample]:
    for dtype in FLOATS:
        for exponent, mantissa in ((5, 10), (8, 7), (4, 3), (8, 23), (5, 2)):

            def function(x: Any, e: int = exponent, m: int = mantissa) -> Any:
                return lax.reduce_precision(x, e, m)

            for scale in (3.0, 1e6):
                x = array((41,), dtype, low=-scale, high=scale, special=True)
                yield Sample(f"{dtype} e{exponent}m{mantissa} {scale:g}", function, (x,), same=True)


def _round() -> Iterator[Sample]:
    for dtype in FLOATS:
        x = np.append(array((9,), dtype, special=True), np.arange(-3.5, 4).astype(dtype_of(dtype)))
        for method in lax.RoundingMethod:

            def function(x: Any, method: Any = method) -> Any:
                return lax.round(x, method)

            yield Sample(f"{dtype} {method.name}", function, (x,), same=True)


def _polygamma() -> Iterator[Sample]:
    for dtype in FLOATS[:2]:
        orders = np.array([0, 1, 2, 3, 5], dtype)
        x = array((5,), dtype, low=0.5, high=5)
        yield Sample(dtype, lax.polygamma, (orders, x))


def _zeta() -> Iterator[Sample]:
    for dtype in FLOATS[:2]:
        x, q = array((9,), dtype, low=1.1, high=5), array((9,), dtype, low=0.5, high=5, seed=1)
        yield Sample(dtype, lax.zeta, (x, q))


def _complex() -> Iterator[Sample]:
    for dtype in FLOATS[:2]:
        for shape in SHAPES:
            pair = (array(shape, dtype, seed=s) for s in (1, 2))
            yield Sample(f"{dtype}{list(shape)}", lax.complex, tuple(pair))


REAL = FLOATS + INTEGERS
INEXACT = FLOATS + COMPLEX

ENTRIES = [
    unary("abs", lax.abs, FLOATS + SIGNED + COMPLEX),
    unary("acos", lax.acos, INEXACT, -1, 1),
    unary("acosh", lax.acosh, INEXACT, 1, 9),
    binary("add", lax.add, NUMBERS),
    binary("and", lax.bitwise_and, INTEGERS + BOOL),
    unary("asin", lax.asin, INEXACT, -1, 1),
    unary("asinh", lax.asinh, INEXACT),
    unary("atan", lax.atan, INEXACT),
    binary("atan2", lax.atan2, FLOATS),
    unary("atanh", lax.atanh, INEXACT, -1, 1),
    unary("bessel_i0e", lax.bessel_i0e, FLOATS, -9, 9),
    unary("bessel_i1e", lax.bessel_i1e, FLOATS, -9, 9),
    Entry("bitcast_convert_type", _bitcast),
    unary("cbrt", lax.cbrt, FLOATS),
    unary("ceil", lax.ceil, FLOATS),
    Entry("clamp", _clamp),
    unary("clz", lax.clz, INTEGERS),
    Entry("complex", _complex),
    unary("conj", lax.conj, COMPLEX),
    Entry("convert_element_type", _convert),
    unary("cos", lax.cos, INEXACT, -99, 99),
    unary("cosh", lax.cosh, INEXACT),
    unary("digamma", lax.digamma, FLOATS, -5, 9),
    binary("div", lax.div, NUMBERS),
    binary("eq", lax.eq, EVERY),
    unary("erf", lax.erf, FLOATS),
    unary("erf_inv", lax.erf_inv, FLOATS, -1, 1),
    unary("erfc", lax.erfc, FLOATS, -3, 9),
    unary("exp", lax.exp, INEXACT, -9, 9),
    unary("exp2", lax.exp2, INEXACT, -9, 9),
    unary("expm1", lax.expm1, INEXACT),
    unary("floor", lax.floor, FLOATS),
    binary("ge", lax.ge, REAL + BOOL),
    binary("gt", lax.gt, REAL + BOOL),
    _ternary("igamma", lax.igamma, [(0.3, 9), (0.1, 12)]),
    _ternary("igamma_grad_a", lax.igamma_grad_a, [(0.3, 9), (0.1, 12)]),
    _ternary("igammac", lax.igammac, [(0.3, 9), (0.1, 12)]),
    unary("imag", lax.imag, COMPLEX),
    Entry("integer_pow", _integer_pow),
    unary("is_finite", lax.is_finite, FLOATS),
    binary("le", lax.le, REAL + BOOL),
    unary("lgamma", lax.lgamma, FLOATS, -5, 9),
    unary("log", lax.log, INEXACT, 0, 9),
    unary("log1p", lax.log1p, INEXACT, -0.9, 3),
    unary("logistic", lax.logistic, INEXACT, -9, 9),
    binary("lt", lax.lt, REAL + BOOL),
    binary("max", lax.max, EVERY),
    binary("min", lax.min, EVERY),
    binary("mul", lax.mul, NUMBERS),
    binary("ne", lax.ne, EVERY),
    unary("neg", lax.neg, NUMBERS),
    binary("nextafter", lax.nextafter, FLOATS),
    unary("not", lax.bitwise_not, INTEGERS + BOOL),
    binary("or", lax.bitwise_or, INTEGERS + BOOL),
    Entry("polygamma", _polygamma),
    unary("population_count", lax.population_count, INTEGERS),
    Entry("pow", _pow),
    unary("real", lax.real, COMPLEX),
    Entry("reduce_precision", _reduce_precision),
    _ternary("regularized_incomplete_beta", lax.betainc, [(0.3, 9), (0.3, 9), (0, 1)]),
    binary("rem", lax.rem, REAL),
    Entry("round", _round),
    unary("rsqrt", lax.rsqrt, INEXACT, 0, 9),
    Entry("select_n", _select),
    _shift("shift_left", lax.shift_left),
    _shift("shift_right_arithmetic", lax.shift_right_arithmetic),
    _shift("shift_right_logical", lax.shift_right_logical),
    unary("sign", lax.sign, NUMBERS),
    unary("sin", lax.sin, INEXACT, -99, 99),
    unary("sinh", lax.sinh, INEXACT),
    unary("sqrt", lax.sqrt, INEXACT, 0, 9),
    unary("square", lax.square, NUMBERS),
    binary("sub", lax.sub, NUMBERS),
    unary("tan", lax.tan, INEXACT, -99, 99),
    unary("tanh", lax.tanh, INEXACT),
    binary("xor", lax.bitwise_xor, INTEGERS + BOOL),
    Entry("zeta", _zeta),
]

assert UNSIGNED
assert not any(entry.name == "" for entry in ENTRIES)
