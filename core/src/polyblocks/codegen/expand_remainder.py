"""expand-remainder: ``arith.remf`` (C's fmod), for which no chip has an instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.rewrite import expand_ops
from polyblocks.mlir import ir


@dataclass(frozen=True)
class _Format:
    """Fraction bits, largest exponent field, exponent of the lowest fraction bit at field 0."""

    fraction: int
    exponents: int
    lowest: int


_FORMATS = {"f32": _Format(23, 255, 150), "f64": _Format(52, 2047, 1075)}


@dataclass(frozen=True)
class ExpandRemainderPass:
    """The exact remainder, by long division of the significands in 64-bit integers.

    With ``x = m * 2**e``, ``y = n * 2**f`` and ``e >= f`` the remainder is
    ``(m * 2**(e - f) mod n) * 2**f``; the power of two is multiplied in as many bits at a time as
    fit, once for nearly all f32 arguments.

    Before::

        %r = arith.remf %x, %y : f32

    After::

        %m:2 = scf.while (...) { ... arith.remui ... }
        ...
        %r = math.copysign %magnitude, %x : f32
    """

    name: ClassVar[str] = "expand-remainder"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was a remainder.

        Raises:
            NotImplementedError: a remainder of vectors.
        """
        del context
        return expand_ops(module, {"arith.remf": _expand}) > 0


def _expand(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
    x, y = operands
    if x.kind not in _FORMATS:
        return None
    if b.shape is not None:
        raise NotImplementedError("arith.remf on vectors has no expansion")
    format_ = _FORMATS[x.kind]
    m, e = _significand(b, x, format_)
    n, f = _significand(b, y, format_)
    # Zero is no divisor; the result is NaN then, whatever is divided here.
    divisor = b.select(n.eq(0), 1, n)
    distance = b.select(e > f, e - f, 0)
    rest = b.op("arith.remui", "i64", m, divisor)
    rest = _shifted_remainder(b, rest, divisor, distance, 63 - format_.fraction)
    # Two factors, since the power alone may be smaller than the smallest normal number; all
    # products but the last are normal or zero, and the last is exact.
    power = f - format_.lowest
    half = power >> 1
    magnitude = rest.to("f64") * _power_of_two(half) * _power_of_two(power - half)
    result = magnitude.to(x.kind)
    result = b.select(abs(x) < abs(y), abs(x), result).copysign(x)
    infinite = b.const("i64", format_.exponents)
    invalid = n.eq(0) | e.eq(infinite) | y.is_nan()
    return (b.select(invalid, float("nan"), result),)


def _significand(b: Builder, x: Val, format_: _Format) -> tuple[Val, Val]:
    """Integer significand (i64) and exponent field, at least 1, of the magnitude of ``x``."""
    bits = abs(x).bits()
    wide = bits if x.kind == "f64" else bits.zext("i64")
    field = wide.shr_u(format_.fraction)
    fraction = wide & ((1 << format_.fraction) - 1)
    subnormal = field.eq(0)
    return (
        b.select(subnormal, fraction, fraction | (1 << format_.fraction)),
        b.select(subnormal, 1, field),
    )


def _shifted_remainder(b: Builder, rest: Val, divisor: Val, distance: Val, step: int) -> Val:
    """``rest * 2**distance mod divisor``, shifting by at most ``step`` bits at a time."""
    i64 = b.type("i64")
    loop = ir.Operation.create(
        "scf.while", results=[i64, i64], operands=[rest.value, distance.value], regions=2
    )
    before = loop.regions[0].blocks.append(i64, i64)
    after = loop.regions[1].blocks.append(i64, i64)
    with ir.InsertionPoint(before):
        value, left = (Val(b, a, "i64") for a in before.arguments)
        ir.Operation.create("scf.condition", operands=[(left > 0).value, value.value, left.value])
    with ir.InsertionPoint(after):
        value, left = (Val(b, a, "i64") for a in after.arguments)
        shift = b.select(left < step, left, step)
        value = b.op("arith.remui", "i64", value << shift, divisor)
        ir.Operation.create("scf.yield", operands=[value.value, (left - shift).value])
    return Val(b, loop.results[0], "i64")


def _power_of_two(exponent: Val) -> Val:
    """2**exponent in f64, for exponents of normal numbers."""
    return ((exponent + 1023) << 52).as_float()
