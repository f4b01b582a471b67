"""Operations of TensorFlow over dtypes and sources of operands, against its own eager kernels.

Every elementwise, comparing, bitwise, integer and scatter operation on arguments, constants and
Python numbers; conversions between all pairs of dtypes; `tf.experimental.numpy`, which promotes.
Takes about ten minutes.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.experimental.numpy as tnp

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from stablehlo_type_matrix import (
    DTYPES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Case,
    Framework,
    main,
    numbers,
)

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

Function = Callable[..., Any]

BINARY: dict[str, Function] = {
    "add": tf.add, "subtract": tf.subtract, "multiply": tf.multiply, "truediv": tf.truediv,
    "divide_no_nan": tf.math.divide_no_nan, "multiply_no_nan": tf.math.multiply_no_nan,
    "floordiv": tf.math.floordiv, "floormod": tf.math.floormod, "truncatediv": tf.truncatediv,
    "truncatemod": tf.truncatemod, "pow": tf.pow, "maximum": tf.maximum, "minimum": tf.minimum,
    "squared_difference": tf.math.squared_difference, "atan2": tf.atan2,
    "xlogy": tf.math.xlogy, "xlog1py": tf.math.xlog1py, "xdivy": tf.math.xdivy,
    "nextafter": tf.math.nextafter, "equal": tf.equal, "not_equal": tf.not_equal,
    "less": tf.less, "less_equal": tf.less_equal, "greater": tf.greater,
    "greater_equal": tf.greater_equal, "logical_and": tf.logical_and, "logical_or": tf.logical_or,
    "logical_xor": tf.math.logical_xor, "bitwise_and": tf.bitwise.bitwise_and,
    "bitwise_or": tf.bitwise.bitwise_or, "bitwise_xor": tf.bitwise.bitwise_xor,
    "left_shift": tf.bitwise.left_shift, "right_shift": tf.bitwise.right_shift,
    "where": lambda x, y: tf.where([True, False, True, True] * 4, x, y),
    "clip": lambda x, y: tf.clip_by_value(x, y, y), "fmod": lambda x, y: tf.raw_ops.Mod(x=x, y=y),
    "approximate_equal": lambda x, y: tf.raw_ops.ApproximateEqual(x=x, y=y),
    "complex": tf.complex, "x + y": lambda x, y: x + y, "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y, "x / y": lambda x, y: x / y, "x // y": lambda x, y: x // y,
    "x % y": lambda x, y: x % y, "x ** y": lambda x, y: x**y, "x & y": lambda x, y: x & y,
    "x | y": lambda x, y: x | y, "x ^ y": lambda x, y: x ^ y, "x < y": lambda x, y: x < y,
    "x >= y": lambda x, y: x >= y, "x == y": lambda x, y: x == y, "x != y": lambda x, y: x != y,
}  # fmt: skip

#: Whose second operand is not 0 where it is an integer, as TensorFlow raises there.
DIVIDING = ("floordiv", "floormod", "truncatediv", "truncatemod", "fmod", "//", "%")

UNARY: dict[str, Function] = {
    name: getattr(tf.math, name)
    for name in (
        "abs acos acosh angle asin asinh atan atanh ceil conj cos cosh digamma erf erfc erfinv exp "
        "expm1 floor imag is_finite is_inf is_nan lgamma log log1p logical_not log_sigmoid ndtri "
        "negative real reciprocal rint round rsqrt sigmoid sign sin sinh softplus softsign sqrt "
        "square tan tanh bessel_i0e bessel_i1e"
    ).split()
} | {
    "invert": tf.bitwise.invert, "relu": tf.nn.relu, "relu6": tf.nn.relu6, "elu": tf.nn.elu,
    "selu": tf.nn.selu, "leaky_relu": tf.nn.leaky_relu, "gelu": tf.nn.gelu, "swish": tf.nn.swish,
    "zeros_like": tf.zeros_like, "ones_like": tf.ones_like,
    "population_count": lambda x: tf.raw_ops.PopulationCount(x=x),
    "-x": lambda x: -x, "~x": lambda x: ~x, "abs(x)": abs,
}  # fmt: skip

REDUCTIONS: dict[str, Function] = {
    name: getattr(tf, name)
    for name in (
        "reduce_sum reduce_prod reduce_max reduce_min reduce_mean reduce_any reduce_all".split()
    )
} | {
    "cumsum": tf.math.cumsum, "cumprod": tf.math.cumprod, "argmax": tf.argmax, "argmin": tf.argmin,
    "top_k": lambda x: tf.math.top_k(x, 5)[0], "sort": tf.sort, "unstack": lambda x: x[::-1],
    "bincount-free count": lambda x: tf.math.count_nonzero(x),
}  # fmt: skip

SCATTERS: dict[str, Function] = {
    "tensor_scatter_nd_update": tf.tensor_scatter_nd_update,
    "tensor_scatter_nd_add": tf.tensor_scatter_nd_add,
    "tensor_scatter_nd_sub": tf.tensor_scatter_nd_sub,
    "tensor_scatter_nd_min": tf.tensor_scatter_nd_min,
    "tensor_scatter_nd_max": tf.tensor_scatter_nd_max,
    "scatter_nd": lambda x, i, u: tf.scatter_nd(i, u, [16]) + x,
    "segment_sum": lambda x, i, u: tf.math.unsorted_segment_sum(u, i[:, 0], 16),
    "segment_prod": lambda x, i, u: tf.math.unsorted_segment_prod(u, i[:, 0], 16),
    "segment_max": lambda x, i, u: tf.math.unsorted_segment_max(u, i[:, 0], 16),
    "segment_min": lambda x, i, u: tf.math.unsorted_segment_min(u, i[:, 0], 16),
    "gather": lambda x, i, u: tf.gather(x, i[:, 0]),
    "gather_nd": lambda x, i, u: tf.gather_nd(x, i),
}

GRADIENTS = (
    "EluGrad InvGrad ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad SigmoidGrad "
    "SoftplusGrad SoftsignGrad SqrtGrad TanhGrad LeakyReluGrad"
).split()

#: With whose names those of `tf.experimental.numpy` do not agree.
PROMOTING = (
    "add subtract multiply true_divide maximum minimum equal less greater_equal power where "
    "logical_and bitwise_or floor_divide"
).split()

#: Of functions that are computed otherwise, in units of the usual tolerance.
SLACK = {"pow": 8, "x ** y": 8, "power": 8, "digamma": 50, "lgamma": 50, "erfinv": 20, "ndtri": 20,
         "atanh": 8, "reduce_prod": 16, "cumprod": 16, "reduce_mean": 8, "reduce_sum": 8,
         "cumsum": 8, "floormod": 1, "gelu": 8, "log_sigmoid": 8, "softplus": 8, "sinh": 8,
         "acosh": 50, "asinh": 50, "segment_prod": 16, "bessel_i0e": 8, "bessel_i1e": 8,
         "elu": 600, "selu": 600}  # fmt: skip


#: Where TensorFlow's own kernel is off: by 1e-7 in absolute terms, or NaN at infinity; `lgamma` is
#: XLA's, which is off by 5e-7 at 1.
INEXACT = {("xlog1py", "complex64"), ("log1p", "complex64"), ("erf", "float64"),
           ("erfinv", "float32"), ("lgamma", "float32")}  # fmt: skip


class TensorFlow(Framework):
    """Eager TensorFlow is the reference."""

    def __init__(self) -> None:
        self._graph = tf.Graph()
        with self._graph.as_default():
            self._symbols = {
                name: tf.compat.v1.placeholder(value.dtype, value.shape)
                for name, value in ARGUMENTS.items()
            }

    def trace(self, function: Function, arguments: Mapping[str, Any]) -> Any:
        """See the base class."""
        with self._graph.as_default():
            return function(self._symbols)

    def references(self, functions: Sequence[Function], arguments: Mapping[str, Any]) -> list[Any]:
        """See the base class."""
        return [_result(function, arguments) for function in functions]

    def numpy(self, result: Any) -> Any:
        """See the base class. NumPy by itself takes no tensor without dimensions."""
        return np.asarray(result.numpy())

    def compiled(self, function: Function, arguments: Mapping[str, Any]) -> Any:
        """See the base class."""
        wrapped = tf.autograph.experimental.do_not_convert(function)
        call = polyblocks_jit_tf(wrapped)
        results = call(dict(arguments))
        self.left += len(call.polyblocks_report().fallbacks)
        return results


def _result(function: Function, arguments: Mapping[str, Any]) -> Any:
    try:
        return function(arguments)
    except Exception as error:
        return error


def _arguments() -> dict[str, Any]:
    found = {}
    for dtype in DTYPES:
        for name, seed in (("x", 0), ("y", 1)):
            found[f"{name} {dtype}"] = tf.constant(numbers(dtype, seed))
        nonzero = numbers(dtype, 1)
        nonzero[nonzero == 0] = 1
        found[f"z {dtype}"] = tf.constant(nonzero)
    for dtype in ("int32", "int64"):
        found[f"i {dtype}"] = tf.constant([[3], [0], [15], [3], [7]], dtype)
    return found


ARGUMENTS = _arguments()


def _source(name: str) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
    held = ARGUMENTS[name].numpy()
    dtype = ARGUMENTS[name].dtype
    return {"argument": lambda a: a[name], "constant": lambda a: tf.constant(held, dtype)}


def _binary(name: str, function: Function) -> Iterator[Case]:
    slack = SLACK.get(name, 1)
    second = "z" if any(part in name for part in DIVIDING) else "y"
    for dtype in DTYPES:
        if (name, dtype) in INEXACT:
            continue
        left, right = _source(f"x {dtype}"), _source(f"{second} {dtype}")
        for a, x in left.items():
            for b, y in right.items():
                label = f"{name} {dtype} {a}, {b}"
                yield Case(label, lambda v, x=x, y=y: function(x(v), y(v)), slack)
            for number in NUMBERS:
                yield Case(
                    f"{name} {dtype} {a}, {number!r}",
                    lambda v, x=x, n=number: function(x(v), n),
                    slack,
                )
        for b, y in right.items():
            for number in NUMBERS:
                yield Case(
                    f"{name} {number!r}, {dtype} {b}",
                    lambda v, y=y, n=number: function(n, y(v)),
                    slack,
                )


def _unary(name: str, function: Function, dtypes: Sequence[str] = DTYPES) -> Iterator[Case]:
    for dtype in dtypes:
        if (name, dtype) in INEXACT:
            continue
        for a, x in _source(f"x {dtype}").items():
            yield Case(f"{name} {dtype} {a}", lambda v, x=x: function(x(v)), SLACK.get(name, 1))


def _scatters(name: str, function: Function) -> Iterator[Case]:
    for dtype in DTYPES:
        for index in ("int32", "int64"):
            for a, x in _source(f"x {dtype}").items():
                for b, i in _source(f"i {index}").items():
                    for c, u in _source(f"y {dtype}").items():
                        yield Case(
                            f"{name} {dtype} {a}, {index} {b}, {c}",
                            lambda v, x=x, i=i, u=u: function(x(v), i(v), u(v)[:5]),
                            SLACK.get(name, 1),
                        )


def _gradients(name: str) -> Iterator[Case]:
    op = getattr(tf.raw_ops, name)
    names = list(op.__signature__.parameters)[:2]
    for dtype in FLOATS:
        for a, x in _source(f"x {dtype}").items():
            for b, y in _source(f"y {dtype}").items():
                yield Case(
                    f"{name} {dtype} {a}, {b}",
                    lambda v, x=x, y=y: op(**dict(zip(names, (x(v), y(v)), strict=True))),
                    4,
                )


def _casts() -> Iterator[Case]:
    for source in DTYPES:
        for target in DTYPES:
            if (source in FLOATS or source == "complex64") and target in INTEGERS:
                continue  # see below; of complex numbers the real part counts
            for a, x in _source(f"x {source}").items():
                yield Case(
                    f"cast {source} {a} to {target}", lambda v, x=x, t=target: tf.cast(x(v), t)
                )
                yield Case(
                    f"saturate_cast {source} {a} to {target}",
                    lambda v, x=x, t=target: tf.saturate_cast(x(v), t),
                )
            for b, x in _source(f"x {source}").items():
                yield Case(
                    f"bitcast {source} {b} to {target}",
                    lambda v, x=x, t=target: tf.bitcast(x(v), t),
                )


def _casts_in_range() -> Iterator[Case]:
    """Out of range TensorFlow's own results depend on where in a vector an element is."""
    for source in FLOATS:
        for target in INTEGERS:
            for a, x in _source(f"x {source}").items():
                low = 0 if target.startswith("u") else -100

                def function(v: Any, x: Any = x, low: int = low, t: str = target) -> Any:
                    values = x(v)
                    known = tf.where(tf.math.is_nan(values), tf.zeros_like(values), values)
                    return tf.cast(tf.clip_by_value(known, low, 100), t)

                yield Case(f"cast {source} {a} to {target}", function)
                if target in ("int32", "int64"):
                    yield Case(
                        f"cast {source} {a} to {target} out of range",
                        lambda v, x=x, t=target: tf.cast(x(v) * 1e30, t),
                    )


def _promoting(name: str) -> Iterator[Case]:
    function = getattr(tnp, name)
    if name == "where":
        chosen = function
        function = lambda x, y: chosen(x > y, x, y)  # noqa: E731
    second = "z" if name == "floor_divide" else "y"
    for first in DTYPES:
        for other in DTYPES:
            x, y = f"x {first}", f"{second} {other}"
            yield Case(
                f"tnp.{name} {first}, {other}",
                lambda v, x=x, y=y: function(v[x], v[y]),
                SLACK.get(name, 1),
            )


def programs() -> Iterator[tuple[str, list[Case], Mapping[str, Any]]]:
    """Names, cases and arguments."""
    for name, function in BINARY.items():
        yield name, list(_binary(name, function)), ARGUMENTS
    for first in range(0, len(UNARY), 6):
        part = list(UNARY.items())[first : first + 6]
        cases = [case for name, function in part for case in _unary(name, function)]
        yield " ".join(name for name, _ in part), cases, ARGUMENTS
    for name, function in REDUCTIONS.items():
        dtypes = [d for d in DTYPES if name not in ("top_k", "sort") or d not in FLOATS]
        yield name, list(_unary(name, function, dtypes)), ARGUMENTS
    for name, function in SCATTERS.items():
        yield name, list(_scatters(name, function)), ARGUMENTS
    for name in GRADIENTS:
        yield name, list(_gradients(name)), ARGUMENTS
    yield "casts", list(_casts()), ARGUMENTS
    yield "casts in range", list(_casts_in_range()), ARGUMENTS
    tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="legacy")
    for name in PROMOTING:
        yield f"tnp.{name}", list(_promoting(name)), ARGUMENTS


if __name__ == "__main__":
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    raise SystemExit(main(__doc__, TensorFlow(), programs))
