"""asinh, acosh, atanh through log1p (FDLIBM s_asinh.c, e_acosh.c, e_atanh.c)."""

from __future__ import annotations

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.vector_math.exp_log import log1p
from polyblocks.codegen.vector_math.formats import LN2, NAN

#: From here on sqrt(x^2 +- 1) is x to working precision.
_HUGE = {"f32": 2.0**14, "f64": 2.0**28}


def asinh(b: Builder, x: Val) -> Val:
    """asinh(x) = log1p(x + x^2 / (1 + sqrt(1 + x^2))), float32 and float64."""
    magnitude = abs(x)
    huge = magnitude > _HUGE[x.kind]
    s = magnitude * magnitude
    argument = magnitude + s / ((s + 1.0).sqrt() + 1.0)
    argument = b.select(huge, magnitude - 1.0, argument)
    offset = b.select(huge, b.const(x.kind, LN2), 0.0)
    return (log1p(b, argument) + offset).copysign(x)


def acosh(b: Builder, x: Val) -> Val:
    """acosh(x) = log1p(t + sqrt(t^2 + 2t)) with t = x - 1, float32 and float64."""
    huge = x > _HUGE[x.kind]
    t = x - 1.0
    argument = b.select(huge, t, t + b.fma(t, t, t * 2.0).sqrt())
    result = log1p(b, argument) + b.select(huge, b.const(x.kind, LN2), 0.0)
    return b.select(x < 1.0, NAN, result)


def atanh(b: Builder, x: Val) -> Val:
    """atanh(x) = log1p(2x / (1 - x)) / 2, float32 and float64."""
    t = abs(x)
    double = t * 2.0
    quotient = 1.0 - t
    argument = b.select(t < 0.5, b.fma(double, t / quotient, double), double / quotient)
    return (log1p(b, argument) * 0.5).copysign(x)
