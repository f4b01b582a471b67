"""Scalar operations on known numbers, in NumPy.

Results are those of the generated code: exact operations in their own type, elementary functions
rounded from double precision, which is as good as these or better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]


class Unknown(Exception):
    """Something that is not computed here."""


#: MLIR element type -> what holds its numbers; integers without signedness have a sign.
DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}

_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)

_EXACT: dict[str, Callable[..., Any]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.negf": np.negative,
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.select": np.where,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.sqrt": np.sqrt,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.copysign": np.copysign,
}

#: Computed in double precision, and rounded.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "math.rsqrt": lambda x: 1.0 / np.sqrt(x),
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.expm1": np.expm1,
    "math.log": np.log,
    "math.log2": np.log2,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tan": np.tan,
    "math.asin": np.arcsin,
    "math.acos": np.arccos,
    "math.atan": np.arctan,
    "math.atan2": np.arctan2,
    "math.sinh": np.sinh,
    "math.cosh": np.cosh,
    "math.tanh": np.tanh,
    "math.asinh": np.arcsinh,
    "math.acosh": np.arccosh,
    "math.atanh": np.arctanh,
    "math.powf": np.power,
    "math.cbrt": np.cbrt,
    "math.erf": lambda x: np.asarray(_erf(x), np.float64),
    "math.erfc": lambda x: np.asarray(_erfc(x), np.float64),
}

_CONVERSIONS = frozenset(
    "arith.extf arith.truncf arith.sitofp arith.uitofp arith.fptosi arith.extsi arith.extui "
    "arith.trunci arith.index_cast arith.index_castui".split()
)

#: Operations that NumPy defines differently for truth values.
_OF_WIDER_INTEGERS = frozenset("arith.addi arith.subi arith.muli arith.maxsi arith.minsi".split())

#: Of two zeros NumPy may return the other one.
_OF_TWO_FLOATS = frozenset("arith.maximumf arith.minimumf arith.maxnumf arith.minnumf".split())

#: ``arith.cmpi`` and ``arith.cmpf``, by their predicates' numbers.
_INTEGERS: tuple[Callable[..., Any], ...] = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
)
_FLOATS: tuple[Callable[..., Any], ...] = (
    *(np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal),
)
_ORDERED, _UNORDERED_EQUAL, _UNORDERED = 7, 8, 14

NAMES = frozenset((*_EXACT, *_FUNCTIONS, *_CONVERSIONS, "arith.cmpf", "arith.cmpi"))


def compute(name: str, operands: Sequence[Values], element: str, predicate: int = 0) -> Values:
    """The result of an operation on arrays that broadcast against each other.

    Args:
        name: one of :data:`NAMES`.
        operands: with the dtypes of :data:`DTYPES`.
        element: MLIR type of the result.
        predicate: of a comparison.

    Raises:
        Unknown: it is not computed here for these numbers.
    """
    dtype = DTYPES.get(element)
    if dtype is None:
        raise Unknown(f"numbers of type {element}")
    with np.errstate(all="ignore"):
        if name == "arith.cmpi":
            return _compare_integers(predicate, *operands)
        if name == "arith.cmpf":
            return _compare_floats(predicate, *operands)
        if name in _CONVERSIONS:
            return _converted(name, operands[0], dtype)
        if name in _FUNCTIONS:
            wide = [operand.astype(np.float64) for operand in operands]
            return np.asarray(_FUNCTIONS[name](*wide), dtype)
        if name not in _EXACT:
            raise Unknown(name)
        if dtype is np.bool_ and name in _OF_WIDER_INTEGERS:
            raise Unknown(f"{name} of truth values")
        if name in _OF_TWO_FLOATS and _zeros_meet(*operands):
            raise Unknown("the sign of a zero")
        return np.asarray(_EXACT[name](*operands), dtype)


def _zeros_meet(x: Values, y: Values) -> bool:
    """Whether zeros of different signs are compared."""
    return bool(np.any((x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))))


def _compare_integers(predicate: int, x: Values, y: Values) -> Values:
    if x.dtype == np.bool_ and predicate > 1:
        raise Unknown("an order of truth values")
    if predicate >= len(_INTEGERS):
        unsigned = x.dtype.str.replace("i", "u")
        return np.asarray(_INTEGERS[predicate - 4](x.view(unsigned), y.view(unsigned)))
    return np.asarray(_INTEGERS[predicate](x, y))


def _compare_floats(predicate: int, x: Values, y: Values) -> Values:
    nan = np.isnan(x) | np.isnan(y)
    if 1 <= predicate < _ORDERED:
        return np.asarray(_FLOATS[predicate - 1](x, y) & ~nan)
    if predicate == _ORDERED:
        return np.asarray(~nan)
    if _UNORDERED_EQUAL <= predicate < _UNORDERED:
        return np.asarray(_FLOATS[predicate - _UNORDERED_EQUAL](x, y) | nan)
    if predicate == _UNORDERED:
        return np.asarray(nan)
    raise Unknown(f"predicate {predicate}")


def _converted(name: str, x: Values, dtype: Any) -> Values:
    if name == "arith.fptosi":
        if dtype is np.bool_:
            raise Unknown("a truth value of a float")
        # As `define-arithmetic` has it: the lowest number of 32 or 64 bits for what does not fit.
        bits = 64 if np.dtype(dtype).itemsize == 8 else 32
        fits = np.abs(x) < 2.0 ** (bits - 1)
        whole = np.where(fits, x, 0).astype(f"int{bits}")
        return np.where(fits, whole, -(1 << (bits - 1))).astype(dtype)
    signed = name in ("arith.sitofp", "arith.extsi", "arith.index_cast")
    if x.dtype == np.bool_:
        # The one bit of a truth value is its sign; a float's zero has one of its own.
        return (-x.astype(np.int8)).astype(dtype) if signed else x.astype(dtype)
    if dtype is np.bool_:
        return (x & 1).astype(bool)
    if not signed and x.dtype.kind == "i" and name != "arith.trunci":
        x = x.view(x.dtype.str.replace("i", "u"))
    return x.astype(dtype)
