"""Floating-point ops and intrinsics of the llvm dialect on lanes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyblocks.simt.integers import as_number, bits_of
from polyblocks.simt.rounding import convert, fma, to_bf16
from polyblocks.simt.semantics import Instruction, Operation, Run
from polyblocks.simt.types import (
    Array,
    Float,
    Int,
    container_bits,
    scalar_of,
    signed,
    unsigned,
)

Function = Callable[..., Array]


def float_name(instruction: Instruction, index: int = 0) -> str:
    """The float type of an operand."""
    scalar = scalar_of(instruction.operands[index])
    assert isinstance(scalar, Float), instruction.name
    return scalar.name


def elementwise(function: Function, kind: str = "float") -> Operation:
    """An op whose NumPy function rounds right in the type of its operands."""

    def decode(instruction: Instruction) -> Run:
        if float_name(instruction) == "bf16":
            return lambda m, *values: to_bf16(function(*values))
        return lambda m, *values: function(*values)

    return Operation(decode, kind)


def in_double(function: Function, kind: str = "special") -> Operation:
    """A function that is evaluated in float64 and rounded once."""

    def decode(instruction: Instruction) -> Run:
        name = float_name(instruction)
        return lambda m, *values: convert(function(*(v.astype(np.float64) for v in values)), name)

    return Operation(decode, kind)


def _fma(instruction: Instruction) -> Run:
    name = float_name(instruction)
    return lambda m, a, b, c: fma(a, b, c, name)


def _pick_zero(result: Array, a: Array, b: Array, largest: bool) -> Array:
    """Of two zeros the greater or the smaller one, which NumPy does not tell apart."""
    zeros = (a == 0) & (b == 0)
    if not zeros.any():
        return result
    sign = np.signbit(a) & np.signbit(b) if largest else np.signbit(a) | np.signbit(b)
    none = result.dtype.type(0)
    return np.where(zeros, np.where(sign, -none, none), result)


def minnum(a: Array, b: Array) -> Array:
    """IEEE 754-2008 minNum: the number where one operand is NaN."""
    return _pick_zero(np.fmin(a, b), a, b, largest=False)


def maxnum(a: Array, b: Array) -> Array:
    """IEEE 754-2008 maxNum."""
    return _pick_zero(np.fmax(a, b), a, b, largest=True)


def minimum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 minimum: NaN where one operand is."""
    return _pick_zero(np.minimum(a, b), a, b, largest=False)


def maximum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 maximum."""
    return _pick_zero(np.maximum(a, b), a, b, largest=True)


def _round_half_away(a: Array) -> Array:
    size = np.abs(a)
    whole = np.trunc(size)
    return np.copysign(whole + (size - whole >= 0.5).astype(a.dtype), a)


#: ``llvm.fcmp``: false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true.
_RELATIONS: dict[int, Function] = {
    1: np.equal, 2: np.greater, 3: np.greater_equal, 4: np.less, 5: np.less_equal,
}  # fmt: skip


def compare_floats(predicate: int, a: Array, b: Array) -> Array:
    """The relation with this number in the llvm dialect, as bools."""
    if predicate in (0, 15):
        return np.full(np.broadcast_shapes(a.shape, b.shape), predicate == 15)
    if predicate in _RELATIONS:
        return _RELATIONS[predicate](a, b)
    if predicate == 13:
        return a != b
    unordered = np.isnan(a) | np.isnan(b)
    if predicate == 6:
        return (a != b) & ~unordered
    if predicate == 7:
        return ~unordered
    if predicate == 14:
        return unordered
    return _RELATIONS[predicate - 7](a, b) | unordered


def _compare(instruction: Instruction) -> Run:
    predicate = instruction.integer("predicate")
    return lambda m, a, b: compare_floats(predicate, a, b)


def _to_float(instruction: Instruction) -> Run:
    to = scalar_of(instruction.result)
    assert isinstance(to, Float)
    name = to.name
    return lambda m, a: convert(a, name)


def _from_int(with_sign: bool) -> Callable[[Instruction], Run]:
    def decode(instruction: Instruction) -> Run:
        bits, to = bits_of(instruction), scalar_of(instruction.result)
        assert isinstance(to, Float)
        name, read = to.name, as_number if with_sign else unsigned
        if name == "bf16" and bits <= 53:
            return lambda m, a: to_bf16(read(a, bits).astype(np.float64))
        return lambda m, a: convert(_float_of(read(a, bits), name), name)

    return decode


def _float_of(value: Array, name: str) -> Array:
    if name == "f64":
        return value.astype(np.float64)
    if name == "f32" or name == "bf16":
        return value.astype(np.float32)
    return value.astype(np.float64)


def to_int(value: Array, bits: int, with_sign: bool) -> Array:
    """Truncated toward zero; what does not fit becomes the nearest bound and NaN zero."""
    low = float(-(1 << (bits - 1))) if with_sign else 0.0
    top = 1 << (bits - 1 if with_sign else bits)
    whole = np.trunc(value.astype(np.float64))
    fits = (whole >= low) & (whole < float(top))
    container = np.dtype(f"{'int' if with_sign else 'uint'}{container_bits(bits)}")
    inside = np.where(fits, whole, 0.0).astype(container)
    bound = np.where(whole < low, container.type(int(low)), container.type(top - 1))
    return np.where(fits | np.isnan(whole), inside, bound)


def _to_int(with_sign: bool) -> Callable[[Instruction], Run]:
    def decode(instruction: Instruction) -> Run:
        to = scalar_of(instruction.result)
        assert isinstance(to, Int)
        bits = to.bits
        return lambda m, a: signed(to_int(a, bits, with_sign), bits)

    return decode


def _is_class(instruction: Instruction) -> Run:
    wanted = instruction.integer("bit")
    tiny = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}
    normal = tiny[float_name(instruction)]

    def run(m: object, a: Array) -> Array:
        size, minus = np.abs(a.astype(np.float64)), np.signbit(a)
        nan, infinite = np.isnan(a), np.isinf(a)
        small = (size > 0) & (size < normal)
        usual = ~nan & ~infinite & (size >= normal)
        # Bits: signalling, quiet NaN, -inf, -normal, -subnormal, -0, +0, +subnormal, …
        classes = [
            nan & False, nan, infinite & minus, usual & minus, small & minus, (size == 0) & minus,
            (size == 0) & ~minus, small & ~minus, usual & ~minus, infinite & ~minus,
        ]  # fmt: skip
        found = np.zeros(a.shape, bool)
        for bit, members in enumerate(classes):
            if wanted >> bit & 1:
                found |= members
        return found

    return run


def _power_of_int(a: Array, n: Array) -> Array:
    return np.power(a, n.astype(np.float64))


def _powi(instruction: Instruction) -> Run:
    name = float_name(instruction)
    return lambda m, a, n: convert(_power_of_int(a.astype(np.float64), n), name)


def _ldexp(instruction: Instruction) -> Run:
    name = float_name(instruction)
    return lambda m, a, n: convert(
        np.ldexp(a.astype(np.float64), np.clip(n, -4000, 4000).astype(np.int32)), name
    )


OPERATIONS: dict[str, Operation] = {
    "llvm.fadd": elementwise(np.add),
    "llvm.fsub": elementwise(np.subtract),
    "llvm.fmul": elementwise(np.multiply),
    "llvm.fdiv": elementwise(np.divide),
    "llvm.frem": elementwise(np.fmod, "special"),
    "llvm.fneg": Operation(lambda i: lambda m, a: np.negative(a), "float"),
    "llvm.fcmp": Operation(_compare, "float"),
    "llvm.fpext": Operation(_to_float, "conversion"),
    "llvm.fptrunc": Operation(_to_float, "conversion"),
    "llvm.sitofp": Operation(_from_int(True), "conversion"),
    "llvm.uitofp": Operation(_from_int(False), "conversion"),
    "llvm.fptosi": Operation(_to_int(True), "conversion"),
    "llvm.fptoui": Operation(_to_int(False), "conversion"),
    "llvm.intr.fptosi.sat": Operation(_to_int(True), "conversion"),
    "llvm.intr.fptoui.sat": Operation(_to_int(False), "conversion"),
    "llvm.intr.fma": Operation(_fma, "fma"),
    "llvm.intr.fmuladd": Operation(_fma, "fma"),
    "llvm.intr.fabs": elementwise(np.abs),
    "llvm.intr.copysign": elementwise(np.copysign),
    "llvm.intr.floor": elementwise(np.floor),
    "llvm.intr.ceil": elementwise(np.ceil),
    "llvm.intr.trunc": elementwise(np.trunc),
    "llvm.intr.rint": elementwise(np.rint),
    "llvm.intr.nearbyint": elementwise(np.rint),
    "llvm.intr.roundeven": elementwise(np.rint),
    "llvm.intr.round": elementwise(_round_half_away),
    "llvm.intr.minnum": elementwise(minnum),
    "llvm.intr.maxnum": elementwise(maxnum),
    "llvm.intr.minimum": elementwise(minimum),
    "llvm.intr.maximum": elementwise(maximum),
    "llvm.intr.sqrt": elementwise(np.sqrt, "special"),
    "llvm.intr.is.fpclass": Operation(_is_class, "float"),
    "llvm.intr.powi": Operation(_powi, "special"),
    "llvm.intr.ldexp": Operation(_ldexp, "special"),
    **{
        f"llvm.intr.{name}": in_double(function)
        for name, function in {
            "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10,
            "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sinh": np.sinh,
            "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
            "atan2": np.arctan2, "pow": np.power,
        }.items()
    },
}  # fmt: skip
