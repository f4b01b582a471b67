"""Samples of element-wise operations, over dtypes and shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from arrays import COMPLEX, FLOATS, INTEGERS, array
from check import Sample
from forked_sweep import Entry

#: Name of a raw operation -> interval of its arguments.
UNARY = {
    "Abs": (-2, 2), "Acos": (-0.99, 0.99), "Acosh": (1.01, 4), "Asin": (-0.99, 0.99),
    "Asinh": (-3, 3), "Atan": (-3, 3), "Atanh": (-0.95, 0.95), "BesselI0e": (-3, 3),
    "BesselI1e": (-3, 3), "Ceil": (-3, 3), "Conj": (-2, 2), "Cos": (-4, 4), "Cosh": (-2, 2),
    "Digamma": (0.2, 4), "Elu": (-2, 2), "Erf": (-3, 3), "Erfc": (-3, 3), "Erfinv": (-0.95, 0.95),
    "Exp": (-3, 3), "Expm1": (-2, 2), "Floor": (-3, 3), "Inv": (0.5, 3), "Invert": (0, 100),
    "IsFinite": (-2, 2), "IsInf": (-2, 2), "IsNan": (-2, 2), "Lgamma": (0.2, 5), "Log": (0.1, 5),
    "Log1p": (-0.5, 4), "LogicalNot": (0, 1), "Ndtri": (0.05, 0.95), "Neg": (-2, 2),
    "OnesLike": (-2, 2), "PopulationCount": (0, 100), "Reciprocal": (0.5, 3), "Relu": (-2, 2),
    "Relu6": (-2, 8), "Rint": (-3, 3), "Round": (-3, 3), "Rsqrt": (0.1, 4), "Selu": (-2, 2),
    "Sigmoid": (-4, 4), "Sign": (-2, 2), "Sin": (-4, 4), "Sinh": (-2, 2), "Softplus": (-4, 4),
    "Softsign": (-4, 4), "Sqrt": (0.1, 4), "Square": (-2, 2), "Tan": (-1.2, 1.2), "Tanh": (-3, 3),
    "ZerosLike": (-2, 2), "Real": (-2, 2), "Imag": (-2, 2), "Angle": (-2, 2),
    "ComplexAbs": (-2, 2), "LeakyRelu": (-2, 2),
}  # fmt: skip

BINARY = {
    "Add": (-2, 2), "AddV2": (-2, 2), "Atan2": (-2, 2), "BitwiseAnd": (0, 100),
    "BitwiseOr": (0, 100), "BitwiseXor": (0, 100), "Div": (1, 9), "DivNoNan": (-2, 2),
    "Equal": (-2, 2), "FloorDiv": (1, 9), "FloorMod": (1, 9), "Greater": (-2, 2),
    "GreaterEqual": (-2, 2), "Igamma": (0.2, 4), "Igammac": (0.2, 4), "LeftShift": (0, 6),
    "Less": (-2, 2), "LessEqual": (-2, 2), "LogicalAnd": (0, 1), "LogicalOr": (0, 1),
    "Maximum": (-3, 3), "Minimum": (-3, 3), "Mod": (1, 9), "Mul": (-3, 3), "MulNoNan": (-2, 2),
    "NextAfter": (-2, 2), "NotEqual": (-2, 2), "Polygamma": (1, 3), "Pow": (0.2, 3),
    "RealDiv": (0.5, 4), "RightShift": (0, 6), "SquaredDifference": (-3, 3), "Sub": (-3, 3),
    "TruncateDiv": (1, 9), "TruncateMod": (1, 9), "Xdivy": (0.2, 3), "Xlog1py": (0.2, 3),
    "Xlogy": (0.2, 3), "Zeta": (1.2, 5), "RandomGammaGrad": (0.5, 3),
    "ApproximateEqual": (-2, 2), "Complex": (-2, 2),
}  # fmt: skip

GRADIENTS = (
    "EluGrad InvGrad ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad SigmoidGrad "
    "SoftplusGrad SoftsignGrad SqrtGrad TanhGrad LeakyReluGrad"
).split()

#: Of operations; conversions are between all.
DTYPES = (*FLOATS, "complex64", "int32", "int64", "uint8", "bool")
ALL = (*FLOATS, *COMPLEX, *INTEGERS, "bool")
SHAPES = ((3, 5), (), (0, 3), (41,))
PAIRS = (((3, 5), (3, 5)), ((3, 1), (5,)), ((), (4,)), ((0, 3), (3,)))


def entries() -> Iterator[Entry]:
    """One per raw operation."""
    for name, (low, high) in UNARY.items():
        samples = []
        for dtype in DTYPES:
            for shape in SHAPES if dtype == "float32" else SHAPES[:1]:
                x = array(*shape, dtype=dtype, low=low, high=high)
                samples.append(_sample(f"{dtype}{list(shape)}", name, x))
        yield Entry(name, samples)
    for name, (low, high) in BINARY.items():
        samples = []
        for dtype in DTYPES:
            for a, b in PAIRS if dtype == "float32" else PAIRS[:1]:
                x = array(*a, dtype=dtype, low=low, high=high)
                y = array(*b, dtype=dtype, low=low, high=high, seed=1)
                samples.append(_sample(f"{dtype}{list(a)}{list(b)}", name, x, y))
        yield Entry(name, samples)
    for name in GRADIENTS:
        yield Entry(
            name,
            [
                _sample(dtype, name, array(3, 5, dtype=dtype, low=0.2), array(3, 5, dtype=dtype))
                for dtype in FLOATS
            ],
        )
    yield Entry("Cast", list(_casts()))


def _sample(label: str, name: str, *arguments: Any) -> tuple[str, Sample]:
    op = getattr(tf.raw_ops, name)
    parameters = [
        p for p in op.__signature__.parameters if p != "name"
    ] if hasattr(op, "__signature__") else op.__wrapped__.__code__.co_varnames  # fmt: skip

    def function(*tensors: Any) -> Any:
        return op(**dict(zip(parameters, tensors, strict=False)))

    return label, Sample(function, arguments)


def _casts() -> Iterator[tuple[str, Sample]]:
    for source in ALL:
        x = array(3, 5, dtype=source, low=0, high=9)
        for target in ALL:
            if source not in COMPLEX or target in COMPLEX:

                def function(x: Any, target: str = target) -> Any:
                    return tf.cast(x, target)

                yield f"{source} to {target}", Sample(function, (x,))
