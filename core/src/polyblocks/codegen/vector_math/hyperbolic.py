"""tanh, sinh, cosh.

tanh: odd polynomial below 0.625, beyond it 1 - 2/(exp(2x)+1). sinh and cosh: from
h = exp(|x|)/2 as h -+ 1/(4h), sinh with an odd polynomial below 1.
"""

from __future__ import annotations

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.exp_log import exp_polynomial, exp_reduced
from polyblocks.codegen.vector_math.formats import (
    LOG2_E,
    power_of_two,
    round_scaled,
    scale_by_power_of_two,
)


def tanh(b: Builder, x: Val) -> Val:
    """Hyperbolic tangent, float32 and float64."""
    single = x.kind == "f32"
    magnitude = abs(x)
    # Beyond these it is 1 to working precision, and 2^n below stays in range.
    y = b.clamp(magnitude, None, 10.0 if single else 20.0) * 2.0
    n, i = round_scaled(b, y, LOG2_E)
    e = exp_polynomial(b, exp_reduced(b, y, n)) * power_of_two(i, x.kind)
    large = 1.0 - 2.0 / (e + 1.0)
    s = x * x
    p = b.horner(s, table.TANH_F32 if single else table.TANH_F64)
    small = b.fma(magnitude * s, p, magnitude)
    return b.select(magnitude < 0.625, small, large).copysign(x)


def _half_exp(b: Builder, magnitude: Val) -> Val:
    """exp(magnitude) / 2, finite up to where sinh overflows."""
    y = b.clamp(magnitude, None, 91.0 if magnitude.kind == "f32" else 712.0)
    n, i = round_scaled(b, y, LOG2_E)
    return scale_by_power_of_two(exp_polynomial(b, exp_reduced(b, y, n)), i - 1)


def sinh(b: Builder, x: Val) -> Val:
    """Hyperbolic sine, float32 and float64."""
    magnitude = abs(x)
    h = _half_exp(b, magnitude)
    large = h - 0.25 / h
    s = x * x
    p = b.horner(s, table.SINH_F32 if x.kind == "f32" else table.SINH_F64)
    small = b.fma(magnitude * s, p, magnitude)
    return b.select(magnitude < 1.0, small, large).copysign(x)


def cosh(b: Builder, x: Val) -> Val:
    """Hyperbolic cosine, float32 and float64."""
    h = _half_exp(b, abs(x))
    return h + 0.25 / h
