"""expand-remainder: ``arith.remf`` (C's fmod), for which no chip has an instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.rewrite import expand_ops


@dataclass(frozen=True)
class _Format:
    """Fraction bits, largest exponent field, exponent of the lowest fraction bit at field 0."""

    fraction: int
    exponents: int
    lowest: int


_FORMATS = {"f32": _Format(23, 255, 150), "f64": _Format(52, 2047, 1075)}


@dataclass(frozen=True)
class _Steps:
    """Of quotients too large for their type: the divisor is multiplied by powers of two.

    Attributes:
        far: logarithm of a quotient from which on it may overflow.
        stride: of what the divisor is multiplied by, once or twice: less than ``far``, and the
            largest quotient of two numbers divided by it twice is below ``far``.
    """

    far: int
    stride: int


_STEPS = {"f32": _Steps(120, 96), "f64": _Steps(1000, 900)}


@dataclass(frozen=True)
class ExpandRemainderPass:
    """The exact remainder.

    With fused multiply-add: ``x - trunc(x / y) * y`` is a number of the type, whatever the size of
    the quotient, since the quotient is off by no more than half a unit in its last place. It is
    the remainder if it is smaller than ``y``, but for one of the other sign, to which the divisor
    is added: so for quotients of as many bits as a significand has. For others, zeros, infinities
    and NaN there is a branch that hardly ever runs: each step there leaves a remainder that is
    smaller by all bits of a significand.

    ``(x - remf(x, y)) / y``, the way to the quotient that is rounded down, is the quotient that
    the remainder is computed with, where that is small enough for one to be told from the next,
    also by a bit behind the point.

    Without: long division of the significands in 64-bit integers. With ``x = m * 2**e``,
    ``y = n * 2**f`` and ``e >= f`` the remainder is ``(m * 2**(e - f) mod n) * 2**f``; the power
    of two is multiplied in as many bits at a time as fit, once for nearly all f32 arguments.

    Before::

        %r = arith.remf %x, %y : f32

    After::

        %q = arith.divf %x, %y
        %n = math.trunc %q
        %m = math.fma %minus_n, %y, %x
        %k = math.copysign %magnitude_of_m, %x : f32
        %r = scf.if %not_smaller_than_y { %l = scf.while (...) { ... } ... } else { yield %k }

    Attributes:
        fma: whether the chip has fused multiply-add.
    """

    fma: bool = True
    name: ClassVar[str] = "expand-remainder"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was a remainder."""
        del context
        return expand_ops(module, {"arith.remf": _expand}, fma=self.fma) > 0


def _expand(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
    x, y = operands
    if x.kind not in _FORMATS:
        return None
    if not b.has_fma:
        return (_any(b, x, y),)
    step = _one_step(b, x, y)
    quotients = _quotients(op)
    if not quotients:
        return b.when_any(~step.reduced, lambda: [_any(b, x, y)], [step.rest])
    told = step.reduced & (abs(step.quotient) < 2.0 ** (_FORMATS[x.kind].fraction - 1))

    def rare() -> Sequence[Val]:
        rest = _any(b, x, y)
        return [rest, (x - rest) / y]

    # Nothing is left of the dividend but a positive zero.
    quotient = b.select(step.quotient.eq(0.0), b.const(x.kind, 0.0).copysign(y), step.quotient)
    rest, quotient = b.when_any(~told, rare, [step.rest, quotient])
    for division in quotients:
        division.results[0].replace_all_uses_with(quotient.value)
    return (rest,)


@dataclass(frozen=True)
class _Step:
    """Remainder and truncated quotient after one step, and whether that was enough."""

    rest: Val
    quotient: Val
    reduced: Val


def _one_step(b: Builder, x: Val, y: Val) -> _Step:
    exact = x / y
    quotient = _truncated(b, exact)
    rest = b.fma(-quotient, y, x)
    reduced = abs(rest) < abs(y)
    # A quotient that was rounded up to a number leaves a remainder of the other sign.
    signs = b.const(x.kind, -0.0).bits()
    along = (rest.bits() ^ (x.bits() & signs)).as_float()
    beyond = along < 0.0
    along = b.select(beyond, along + abs(y), along)
    nearer = quotient - b.const(x.kind, 1.0).copysign(exact)
    return _Step(along.copysign(x), b.select(beyond, nearer, quotient), reduced)


def _quotients(op: Any) -> list[Any]:
    """Divisions ``(x - op) / y`` that may be rounded otherwise."""
    x, y = op.operands
    differences = [
        user
        for user in _users(op)
        if user.name == "arith.subf" and list(user.operands) == [x, op.results[0]]
    ]
    return [
        user
        for difference in differences
        for user in _users(difference)
        if user.name == "arith.divf" and user.operands[1] == y and _reassociates(user)
    ]


def _users(op: Any) -> list[Any]:
    return [use.owner.operation for use in op.results[0].uses]


def _reassociates(op: Any) -> bool:
    return "reassoc" in str(op.attributes["fastmath"]) if "fastmath" in op.attributes else False


def _any(b: Builder, x: Val, y: Val) -> Val:
    """The remainder of whatever numbers."""
    dividend, divisor = abs(x), abs(y)
    valid = (dividend < float("inf")) & (divisor > 0.0)
    rest = (_by_fma if b.has_fma else _by_integers)(b, dividend, divisor, valid)
    # A number is not changed by an infinite divisor, from which no step above can tell anything.
    rest = b.select(dividend < divisor, dividend, rest).copysign(x)
    return b.select(valid, rest, float("nan"))


def _by_fma(b: Builder, x: Val, y: Val, valid: Val) -> Val:
    """``x mod y`` for positive numbers that are valid; anything for the others."""
    steps = _STEPS[x.kind]
    x, y = b.select(valid, x, 0.0), b.select(valid, y, 1.0)
    quotient = _truncated(b, x / y)
    rest = b.select(quotient < 2.0**steps.far, b.fma(-quotient, y, x), x)

    def step(values: Sequence[Val]) -> Sequence[Val]:
        (rest,) = values
        divisor = y
        for _ in range(2):
            far = abs(rest) * 2.0**-steps.far > divisor
            divisor = b.select(far, divisor * 2.0**steps.stride, divisor)
        return [b.fma(-_truncated(b, rest / divisor), divisor, rest)]

    (rest,) = b.while_any(lambda values: abs(values[0]) >= y, step, [rest])
    return b.select(rest < 0.0, rest + y, rest)


def _truncated(b: Builder, x: Val) -> Val:
    return b.op("math.trunc", x.kind, x)


def _by_integers(b: Builder, x: Val, y: Val, valid: Val) -> Val:
    """The same without fused multiply-add."""
    format_ = _FORMATS[x.kind]
    m, e = _significand(b, x, format_)
    n, f = _significand(b, y, format_)
    divisor = b.select(valid & n.ne(0), n, 1)
    distance = b.select(valid & (e > f), e - f, 0)
    rest = b.op("arith.remui", "i64", m, divisor)
    rest = _shifted_remainder(b, rest, divisor, distance, 63 - format_.fraction)
    # Two factors, since the power alone may be smaller than the smallest normal number; all
    # products but the last are normal or zero, and the last is exact.
    power = f - format_.lowest
    half = power >> 1
    magnitude = rest.to("f64") * _power_of_two(half) * _power_of_two(power - half)
    return magnitude.to(x.kind)


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

    def shifted(values: Sequence[Val]) -> Sequence[Val]:
        value, left = values
        shift = b.select(left < step, left, step)
        return [b.op("arith.remui", "i64", value << shift, divisor), left - shift]

    return b.while_any(lambda values: values[1] > 0, shifted, [rest, distance])[0]


def _power_of_two(exponent: Val) -> Val:
    """2**exponent in f64, for exponents of normal numbers."""
    return ((exponent + 1023) << 52).as_float()
