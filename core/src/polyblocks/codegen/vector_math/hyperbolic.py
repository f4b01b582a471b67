"""tanh, sinh, cosh.

tanh: float32 from t = (exp(2x) - 1) / 2 in one polynomial and one quotient, or by 16 pieces where
numbers are looked up; float64 an odd polynomial below 0.625, beyond it 1 - 2/(exp(2x)+1).
sinh and cosh: from h = exp(|x|)/2 as h -+ 1/(4h), sinh with an odd polynomial below 1.
"""

from __future__ import annotations

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.exp_log import exp_polynomial, exp_reduced
from polyblocks.codegen.vector_math.formats import (
    LN2,
    LOG2_E,
    power_of_two,
    round_scaled,
    scale_by_power_of_two,
)
from polyblocks.codegen.vector_math.pieces import TANH, odd_by_pieces


def tanh(b: Builder, x: Val) -> Val:
    """Hyperbolic tangent, float32 and float64."""
    if x.kind == "f64":
        return _tanh_f64(b, abs(x)).copysign(x)
    by_pieces = odd_by_pieces(b, x, TANH, table.TANH_PIECES_F32)
    return _tanh_f32(b, abs(x)).copysign(x) if by_pieces is None else by_pieces


def _tanh_f32(b: Builder, magnitude: Val) -> Val:
    # Beyond 10 it is 1 to working precision, and 2^n below stays in range.
    y = b.clamp(magnitude + magnitude, None, 20.0)
    n, i = round_scaled(b, y, LOG2_E)
    # One step when fused: the rounding of ln 2 counts less than t is larger than 1.
    r = b.fnma(n, LN2, y) if b.has_fma else exp_reduced(b, y, n)
    expm1 = b.fma(r * r, b.horner(r, table.EXPM1_NEAR_F32), r)
    # t = (exp(y) - 1) / 2 = 2^(n-1) * (expm1 + 1) - 1/2, and tanh(y/2) = t / (t + 1).
    half = power_of_two(i - 1, "f32")
    t = b.fma(half, expm1, half - 0.5)
    # As t - t*t/(t + 1) below t = 1 and as 1 - 1/(t + 1) above, where the rounding errors of the
    # quotient count little; min is both.
    m = b.clamp(t, None, 1.0)
    return b.fnma(m, m / (t + 1.0), m)


def _tanh_f64(b: Builder, magnitude: Val) -> Val:
    y = b.clamp(magnitude, None, 20.0) * 2.0
    n, i = round_scaled(b, y, LOG2_E)
    e = exp_polynomial(b, exp_reduced(b, y, n)) * power_of_two(i, "f64")
    large = 1.0 - 2.0 / (e + 1.0)
    s = magnitude * magnitude
    small = b.fma(magnitude * s, b.horner(s, table.TANH_F64), magnitude)
    return b.select(magnitude < 0.625, small, large)


def _half_exp(b: Builder, magnitude: Val) -> Val:
    """exp(magnitude) / 2, finite up to where sinh overflows."""
    y = b.clamp(magnitude, None, 91.0 if magnitude.kind == "f32" else 712.0)
    n, i = round_scaled(b, y, LOG2_E)
    return scale_by_power_of_two(exp_polynomial(b, exp_reduced(b, y, n)), n - 1.0, i - 1)


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
