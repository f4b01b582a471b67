"""powf, fpowi, ipowi, rsqrt, cbrt.

powf in float32 is 2^(y * log2|x|) in float64 arithmetic: the logarithm is good to 2^-41 relative,
so that the largest exponents (128) still leave 2^-34.
"""

from __future__ import annotations

from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.builder import Builder, Val
from polyblocks.codegen.vector_math.formats import (
    INFINITY,
    NAN,
    round_scaled,
    scale_by_power_of_two,
    split_exponent,
)


def rsqrt(b: Builder, x: Val) -> Val:
    """1 / sqrt(x), the two correctly rounded operations that frameworks use."""
    return 1.0 / x.sqrt()


def _log2_wide(b: Builder, x: Val) -> Val:
    """log2 of a positive float64 that came from a float32; -inf for 0, +inf for +inf."""
    # A denormal float32 is a normal float64, so no scaling is needed, but sharing
    # split_exponent keeps one implementation.
    m, e = split_exponent(b, x, 0.70710678118654752440)
    f = m - 1.0
    result = b.fma(f, b.horner(f, table.LOG2_WIDE), e)
    result = b.select(x.eq(0.0), -INFINITY, result)
    return b.select(x < INFINITY, result, x)


def exp2_wide(b: Builder, x: Val) -> Val:
    """2^x in float64 for a float32 result; saturates well outside the float32 range."""
    x = b.clamp(x, -300.0, 300.0)
    n, i = round_scaled(b, x, 1.0)
    return scale_by_power_of_two(b.horner(x - n, table.EXP2_WIDE), i)


def integer_and_odd(b: Builder, y: Val) -> tuple[Val, Val]:
    """Whether ``y`` is an integer (infinities count), and whether it is an odd one."""
    big = 2.0**52 if y.kind == "f64" else 2.0**23
    magnitude = abs(y)
    # In [2^52, 2^53) the lowest bit counts ones; from 2^53 on everything is even.
    near = magnitude < big
    shifted = b.select(near, magnitude + big, magnitude)
    whole = b.select(near, shifted - big, magnitude)
    integer = whole.eq(magnitude)
    low_bit = (shifted.bits() & 1).ne(0)
    return integer, integer & low_bit & (magnitude < 2.0 * big)


def pow_specials(b: Builder, x: Val, y: Val, magnitude: Val) -> Val:
    """pow(x, y) from ``magnitude = pow(|x|, y)``: signs and special cases (C99 F.9.4.4)."""
    integer, odd = integer_and_odd(b, y)
    negative = x.bits() < 0
    result = b.select(negative & odd, -magnitude, magnitude)
    invalid = (x < 0.0) & ~integer & (x > -INFINITY)
    result = b.select(invalid, NAN, result)
    minus_one_to_infinity = x.eq(-1.0) & abs(y).eq(INFINITY)
    return b.select(x.eq(1.0) | y.eq(0.0) | minus_one_to_infinity, 1.0, result)


def powf_f32(b: Builder, x: Val, y: Val) -> Val:
    """x^y, float32."""
    wide_y = y.to("f64")
    magnitude = exp2_wide(b, wide_y * _log2_wide(b, abs(x).to("f64"))).to("f32")
    return pow_specials(b, x, y, magnitude)
