"""Operations of JAX over dtypes and sources of operands, against `jax.jit` on a CPU.

Every elementwise, comparing, bitwise, integer and scatter operation of `jax.numpy` and `jax.lax`
on all pairs of dtypes, which promote, and on arguments, constants and Python numbers; conversions.
With 64-bit types, as `jax_enable_x64` has it. Takes about ten minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from stablehlo_type_matrix import (  # noqa: E402
    DTYPES,
    NUMBERS,
    Case,
    Framework,
    main,
    numbers,
    numpy_dtype,
)

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

Function = Callable[..., Any]


def _above_least(x: Any) -> Any:
    """Integers without the least one, with which JAX's loop for `gcd` and `lcm` never ends."""
    x = jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.signedinteger):
        return x
    return jnp.maximum(x, jnp.asarray(jnp.iinfo(x.dtype).min + 1, x.dtype))


#: Of `jax.numpy`, which promotes.
BINARY: dict[str, Function] = {
    name: getattr(jnp, name)
    for name in (
        "add subtract multiply true_divide floor_divide remainder fmod power float_power maximum "
        "minimum fmax fmin arctan2 hypot logaddexp copysign nextafter equal not_equal less "
        "less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and "
        "bitwise_or bitwise_xor left_shift right_shift heaviside ldexp"
    ).split()
} | {
    "gcd": lambda x, y: jnp.gcd(_above_least(x), _above_least(y)),
    "lcm": lambda x, y: jnp.lcm(_above_least(x), _above_least(y)),
    "where": lambda x, y: jnp.where(jnp.arange(16) % 3 > 0, x, y),
    "clip": lambda x, y: jnp.clip(x, y),
    "x + y": lambda x, y: x + y, "x // y": lambda x, y: x // y, "x % y": lambda x, y: x % y,
    "x ** y": lambda x, y: x**y, "x & y": lambda x, y: x & y, "x << y": lambda x, y: x << y,
    "x >> y": lambda x, y: x >> y, "x < y": lambda x, y: x < y, "x == y": lambda x, y: x == y,
}  # fmt: skip

#: Of `jax.lax`, whose operands have one dtype.
LAX: dict[str, Function] = {
    name: getattr(lax, name)
    for name in (
        "add sub mul div rem pow max min atan2 nextafter eq ne lt le gt ge bitwise_and bitwise_or "
        "bitwise_xor shift_left shift_right_logical shift_right_arithmetic"
    ).split()
} | {"clamp": lambda x, y: lax.clamp(y, x, y), "complex": lax.complex}

UNARY: dict[str, Function] = {
    name: getattr(jnp, name)
    for name in (
        "abs arccos arccosh angle arcsin arcsinh arctan arctanh ceil conj cos cosh exp exp2 expm1 "
        "floor imag invert isfinite isinf isnan isneginf isposinf log log10 log1p log2 "
        "logical_not negative positive real reciprocal rint round sign signbit sin sinh sqrt "
        "square tan tanh trunc cbrt nan_to_num deg2rad"
    ).split()
} | {
    name: getattr(lax, name)
    for name in "clz population_count rsqrt erf erfc erf_inv lgamma digamma logistic".split()
} | {name: getattr(jax.nn, name) for name in "relu relu6 elu selu gelu silu softplus".split()} | {
    "integer_pow 3": lambda x: lax.integer_pow(x, 3),
    "integer_pow -2": lambda x: lax.integer_pow(x, -2), "-x": lambda x: -x, "~x": lambda x: ~x,
    "x ** 2": lambda x: x**2, "x ** -1": lambda x: x**-1,
    "reduce_precision": lambda x: lax.reduce_precision(x, 5, 7),
}  # fmt: skip

REDUCTIONS: dict[str, Function] = {
    name: getattr(jnp, name)
    for name in (
        "sum prod max min mean any all cumsum cumprod argmax argmin sort argsort nansum nanmax "
        "count_nonzero flip"
    ).split()
} | {
    "cummax": lambda x: lax.cummax(x), "cummin": lambda x: lax.cummin(x),
    "top_k": lambda x: lax.top_k(x, 5)[0], "searchsorted": lambda x: jnp.searchsorted(x, x[::2]),
    "bitwise_xor.reduce": lambda x: jnp.bitwise_xor.reduce(x), "unwrap": lambda x: jnp.diff(x),
}  # fmt: skip

SCATTERS: dict[str, Function] = {
    "set": lambda x, i, u: x.at[i].set(u),
    "add": lambda x, i, u: x.at[i].add(u),
    "mul": lambda x, i, u: x.at[i].multiply(u),
    "min": lambda x, i, u: x.at[i].min(u),
    "max": lambda x, i, u: x.at[i].max(u),
    "set, clipped": lambda x, i, u: x.at[i].set(u, mode="clip"),
    "get": lambda x, i, u: x[i],
    "get, filled": lambda x, i, u: x.at[i].get(mode="fill"),
    "take": lambda x, i, u: jnp.take(x, i, mode="clip"),
    "take, wrapped": lambda x, i, u: jnp.take(x, i, mode="wrap"),
    "segment_sum": lambda x, i, u: jax.ops.segment_sum(u, i, 16),
    "segment_max": lambda x, i, u: jax.ops.segment_max(u, i, 16),
    "dynamic_slice": lambda x, i, u: lax.dynamic_slice(x, i[:1], (4,)),
    "dynamic_update": lambda x, i, u: lax.dynamic_update_slice(x, u, i[2:3]),
}

#: XLA dies (SIGFPE) of constant integers over some constants, which it folds.
DIVIDING = ("div", "rem", "floor_divide", "remainder", "fmod", "gcd", "lcm", "x // y", "x % y")

#: With booleans XLA selects where it sees that it may: NaN * False is 0, but for a boolean that is
#: broadcast, or converted before. See docs/jax.md.
SELECTING = ("multiply", "true_divide")

#: Of functions that are computed otherwise, in units of the usual tolerance.
SLACK = {"power": 8, "float_power": 8, "x ** y": 8, "pow": 8, "logaddexp": 8, "prod": 16,
         "cumprod": 16, "lgamma": 50, "digamma": 50, "erf_inv": 20, "arctanh": 8, "arccosh": 50,
         "arcsinh": 50, "sum": 8, "mean": 8, "cumsum": 8, "nansum": 8, "gelu": 8, "sinh": 8,
         "integer_pow 3": 4, "x ** -1": 4, "integer_pow -2": 8, "hypot": 4, "log2": 8, "log10": 8,
         "exp2": 16, "softplus": 8, "silu": 8, "logistic": 4, "reciprocal": 4}  # fmt: skip

#: Where XLA's own results are rounding errors.
INEXACT = {("gelu", "int64"), ("gelu", "complex64"), ("lgamma", "bfloat16")}

#: XLA counts the leading zeros of a negative constant from 64 bits: -56 for an int8.
MISFOLDED = {("clz", "constant")}


class Jax(Framework):
    """`jax.jit` is the reference."""

    def trace(self, function: Function, arguments: Mapping[str, Any]) -> Any:
        """See the base class."""
        return jax.eval_shape(function, arguments)

    def references(self, functions: Sequence[Function], arguments: Mapping[str, Any]) -> list[Any]:
        """See the base class."""
        return jax.jit(lambda a: [function(a) for function in functions])(arguments)

    def compiled(self, function: Function, arguments: Mapping[str, Any]) -> Any:
        """See the base class."""
        call = polyblocks_jit_jax(function)
        results = call(arguments)
        self.left += len(call.polyblocks_report().fallbacks)
        return results


def _arguments() -> dict[str, Any]:
    found = {}
    for dtype in DTYPES:
        for name, seed in (("x", 0), ("y", 1)):
            found[f"{name} {dtype}"] = jnp.asarray(numbers(dtype, seed))
    for dtype in ("int32", "int64", "uint8", "int8"):
        outside = 200 if dtype == "uint8" else 100
        found[f"i {dtype}"] = jnp.asarray([3, 0, 15, 3, -1, outside]).astype(dtype)
    return found


ARGUMENTS = _arguments()


def _source(name: str) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
    held = jax.device_get(ARGUMENTS[name])
    return {"argument": lambda a: a[name], "constant": lambda a: jnp.asarray(held)}


def _binary(name: str, function: Function, pairs: bool) -> Iterator[Case]:
    slack = SLACK.get(name, 1)
    for first in DTYPES:
        for other in DTYPES if pairs else (first,):
            if name in SELECTING and "bool" in (first, other):
                continue
            left, right = _source(f"x {first}"), _source(f"y {other}")
            for a, x in left.items():
                for b, y in right.items():
                    folded = (a, b) == ("constant", "constant")
                    if not folded or (first == other and name not in DIVIDING):
                        label = f"{name} {first} {a}, {other} {b}"
                        yield Case(label, lambda v, x=x, y=y: function(x(v), y(v)), slack)
        for a, x in _source(f"x {first}").items():
            if (a == "constant" and name in DIVIDING) or (name in SELECTING and first == "bool"):
                continue
            for number in NUMBERS:
                yield Case(
                    f"{name} {first} {a}, {number!r}",
                    lambda v, x=x, n=number: function(x(v), n),
                    slack,
                )
                yield Case(
                    f"{name} {number!r}, {first} {a}",
                    lambda v, x=x, n=number: function(n, x(v)),
                    slack,
                )


def _unary(name: str, function: Function, dtypes: Sequence[str] = DTYPES) -> Iterator[Case]:
    for dtype in dtypes:
        if (name, dtype) in INEXACT:
            continue
        for a, x in _source(f"x {dtype}").items():
            if (name, a) in MISFOLDED:
                continue
            yield Case(f"{name} {dtype} {a}", lambda v, x=x: function(x(v)), SLACK.get(name, 1))


def _scatters(name: str, function: Function) -> Iterator[Case]:
    for dtype in DTYPES:
        for index in ("int32", "int64", "uint8", "int8"):
            for a, x in _source(f"x {dtype}").items():
                for b, i in _source(f"i {index}").items():
                    yield Case(
                        f"{name} {dtype} {a}, {index} {b}",
                        lambda v, x=x, i=i, u=f"y {dtype}": function(x(v), i(v), v[u][:6]),
                    )
        for other in ("int8", "uint8", "int64", "float32", "bool"):
            yield Case(
                f"{name} {dtype}, {other}",
                lambda v, x=f"x {dtype}", u=f"y {other}": function(v[x], v["i int32"], v[u][:6]),
            )


def _casts() -> Iterator[Case]:
    for source in DTYPES:
        for target in DTYPES:
            kind = numpy_dtype(target)
            for a, x in _source(f"x {source}").items():
                yield Case(f"cast {source} {a} to {target}", lambda v, x=x, t=kind: x(v).astype(t))
                if "bool" not in (source, target):
                    yield Case(
                        f"bitcast {source} {a} to {target}",
                        lambda v, x=x, t=kind: lax.bitcast_convert_type(x(v), t),
                    )
        for a, x in _source(f"x {source}").items():
            for number in NUMBERS:
                yield Case(
                    f"full_like {source} {a}, {number!r}",
                    lambda v, x=x, n=number: jnp.full_like(x(v), n),
                )


def programs() -> Iterator[tuple[str, list[Case], Mapping[str, Any]]]:
    """Names, cases and arguments."""
    for name, function in BINARY.items():
        yield name, list(_binary(name, function, pairs=True)), ARGUMENTS
    for name, function in LAX.items():
        yield f"lax.{name}", list(_binary(name, function, pairs=False)), ARGUMENTS
    for first in range(0, len(UNARY), 6):
        part = list(UNARY.items())[first : first + 6]
        cases = [case for name, function in part for case in _unary(name, function)]
        yield " ".join(name for name, _ in part), cases, ARGUMENTS
    for name, function in REDUCTIONS.items():
        # Complex numbers have no order, which these say late.
        dtypes = [d for d in DTYPES if name not in ("argmax", "argmin") or d != "complex64"]
        yield name, list(_unary(name, function, dtypes)), ARGUMENTS
    for name, function in SCATTERS.items():
        yield f"at.{name}", list(_scatters(name, function)), ARGUMENTS
    yield "casts", list(_casts()), ARGUMENTS


if __name__ == "__main__":
    raise SystemExit(main(__doc__, Jax(), programs))
