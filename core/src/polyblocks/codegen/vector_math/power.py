"""powf, fpowi, ipowi, rsqrt, cbrt.

powf in float32 is 2^(y * log2|x|) in float64 arithmetic: the logarithm is good to 2^-37 relative,
so that the largest exponents (150) still leave 2^-30. powf in float64 takes the logarithm, the
product and the reduction of the exponential in double-double arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.codegen.builder import Builder, Val, bits_of
from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.double_double import fast_two_sum, two_product, two_sum
from polyblocks.codegen.vector_math.exp_log import exp_sum
from polyblocks.codegen.vector_math.formats import (
    INFINITY,
    LN2_HI,
    LN2_LO,
    MANTISSA_BITS,
    NAN,
    ROUNDER,
    round_scaled,
    split_exponent,
)

#: Largest constant exponent that is done by products.
_LARGEST_PRODUCT = 64


def rsqrt(b: Builder, x: Val) -> Val:
    """1 / sqrt(x), the two correctly rounded operations that frameworks use."""
    return 1.0 / x.sqrt()


def _log2_wide(b: Builder, x: Val) -> Val:
    """log2 of a positive float64 that came from a float32; -inf for 0, +inf for +inf."""
    # A denormal float32 is a normal float64.
    m, e = split_exponent(b, x, denormals=False)
    s = (m - 1.0) / (m + 1.0)
    result = b.fma(s, b.horner(s * s, table.LOG2_WIDE), e)
    result = b.select(x.eq(0.0), -INFINITY, result)
    return b.select(x < INFINITY, result, x)


def exp2_wide(b: Builder, x: Val) -> Val:
    """2^x in float64 for a float32 result; saturates well outside the float32 range."""
    x = b.clamp(x, -300.0, 300.0)
    n, i = round_scaled(b, x, 1.0)
    # The exponents of normal numbers suffice, so that an integer addition does it.
    power = b.horner(x - n, table.EXP2_WIDE).bits() + (i << MANTISSA_BITS["f64"])
    return power.as_float()


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


def powf(b: Builder, x: Val, y: Val) -> Val:
    """x^y, float32 and float64."""
    if x.kind == "f32":
        wide_y = y.to("f64")
        magnitude = exp2_wide(b, wide_y * _log2_wide(b, abs(x).to("f64"))).to("f32")
    else:
        magnitude = _powf_f64(b, abs(x), y)
    # A positive base is special only where the product with the logarithm is (0 * inf, NaN).
    rare = (x.bits() < 0) | magnitude.is_nan()
    (result,) = b.when_any(rare, lambda: [pow_specials(b, x, y, magnitude)], [magnitude])
    return result


def constant_power(b: Builder, x: Val, exponent: float) -> Val | None:
    """x^exponent where a few products, a quotient or a root do it; None for other exponents.

    At most three roundings, float32 with exponents beyond 3 a single one.
    """
    if exponent == 0.0:
        return b.const(x.kind, 1.0)
    if exponent in (1.0, 2.0, 3.0):
        return _product(x, int(exponent))
    if exponent == -1.0:
        return 1.0 / x
    if abs(exponent) == 0.5:
        # pow(-0, 0.5) is +0 and pow(-inf, 0.5) is +inf, unlike the square root.
        root = (x + 0.0).sqrt()
        root = b.select(x.eq(-INFINITY), INFINITY, root)
        return root if exponent > 0 else 1.0 / root
    if x.kind == "f32" and exponent.is_integer() and 2 <= abs(exponent) <= _LARGEST_PRODUCT:
        # Overflow and underflow in float64 imply the same in float32.
        power = _product(x.to("f64"), int(abs(exponent)))
        return (power if exponent > 0 else 1.0 / power).to("f32")
    return None


def _product(x: Val, exponent: int) -> Val:
    """x^exponent for ``exponent >= 1``, with as few products as its bits ask for."""
    result: Val | None = None
    while True:
        if exponent & 1:
            result = x if result is None else result * x
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        x = x * x


def _powf_f64(b: Builder, x: Val, y: Val) -> Val:
    """x^y for x >= 0 without the special cases of `pow_specials`."""
    log_high, log_low = _log_double(b, x)
    # 2^70 times any nonzero logarithm is beyond the range; larger factors could not be split.
    y = b.clamp(y, -(2.0**70), 2.0**70)
    product, error = two_product(b, y, log_high)
    beyond = abs(product) > 800.0
    low = b.select(beyond, 0.0, b.fma(y, log_low, error))
    return exp_sum(b, b.clamp(product, -800.0, 800.0), low)


def _log_double(b: Builder, x: Val) -> tuple[Val, Val]:
    """log(x) in double-double arithmetic, to about 2^-67 relative; x >= 0.

    log((1+s)/(1-s)) = 2s + (2/3) s^3 + s^5 P(s^2) with s = f/(2+f): the first two terms in
    double-double, the polynomial in plain float64.
    """
    m, e = split_exponent(b, x)
    f = m - 1.0
    divisor, divisor_low = fast_two_sum(b.const("f64", 2.0), f)
    s = f / divisor
    product, product_error = two_product(b, s, divisor)
    s_low = (((f - product) - product_error) - s * divisor_low) / divisor
    square, square_error = two_product(b, s, s)
    square_error = square_error + s * s_low * 2.0
    # 2/3 = 0.666... rounded down plus 3.7e-17, plus the polynomial.
    rest = square * b.horner(square, table.POW_LOG_F64)
    c, c_low = fast_two_sum(b.const("f64", 0.6666666666666666), rest)
    c_low = c_low + 3.700743415417188e-17
    cube, cube_error = two_product(b, s, square)
    cube_error = cube_error + (s * square_error + s_low * square)
    term, term_error = two_product(b, cube, c)
    term_error = term_error + (cube * c_low + cube_error * c)
    high, low = fast_two_sum(s * 2.0, term)
    low = low + (s_low * 2.0 + term_error)
    # e * LN2_HI is exact and, unless e is 0, larger than the rest.
    total, total_error = two_sum(e * LN2_HI["f64"], high)
    low = low + total_error + e * LN2_LO["f64"]
    high, low = fast_two_sum(total, low)
    special = x.eq(0.0) | ~(x < INFINITY)
    high = b.select(special, b.select(x.eq(0.0), -INFINITY, x), high)
    return high, b.select(special, 0.0, low)


def cbrt(b: Builder, x: Val) -> Val:
    """Cube root, float32 (in float64) and float64.

    A first estimate from a third of the exponent bits, a polynomial step to 20 bits, then one
    Newton step whose quotient is nearly exact (FDLIBM s_cbrt.c).
    """
    if x.kind == "f32":
        return _cbrt(b, abs(x).to("f64")).to("f32").copysign(x)
    magnitude = abs(x)
    tiny = magnitude < 2.0**-1000
    scaled = b.select(tiny, magnitude * 2.0**120, magnitude)
    root = _cbrt(b, scaled)
    return b.select(tiny, root * 2.0**-40, root).copysign(x)


def _cbrt(b: Builder, x: Val) -> Val:
    magic = ROUNDER["f64"]
    top = ((x.bits().shr_u(32)) | bits_of("f64", 2.0**52)).as_float() - 2.0**52
    # The constant balances the error of taking a third of the biased exponent and significand.
    third = b.fma(top, 1.0 / 3.0, 715094163.0) + magic
    t = ((third.bits() - bits_of("f64", magic)) << 32).as_float()
    r = t * t * (t / x)
    t = t * b.horner(r, table.CBRT_F64)
    # 23 bits, so that the square below is exact.
    t = ((t.bits() + 0x80000000) & ~0x3FFFFFFF).as_float()
    quotient = x / (t * t)
    t = b.fma(t, (quotient - t) / (t + t + quotient), t)
    return b.select(x.eq(0.0) | ~(x < INFINITY), x, t)


def fpowi(b: Builder, x: Val, n: Val) -> Val:
    """x^n for an integer n, float32 and float64; x^0 is 1 even for NaN."""
    if x.kind == "f32":
        magnitude = exp2_wide(b, n.to("f64") * _log2_wide(b, abs(x).to("f64"))).to("f32")
    else:
        magnitude = _powf_f64(b, abs(x), n.to("f64"))
    odd = (n & 1).ne(0)
    result = b.select((x.bits() < 0) & odd, -magnitude, magnitude)
    return b.select(x.eq(1.0) | n.eq(0), 1.0, result)


def ipowi(b: Builder, x: Val, n: Val) -> Val:
    """x^n for integers, wrapping; n < 0 gives 1/x^|n| rounded to zero, and 0^n is 0 then.

    Square and multiply, in an ``scf.while`` that ends after the highest set bit of any exponent:
    unrolled for all bits it would be hundreds of multiplications.
    """
    one = b.const(x.kind, 1)

    def step(values: Sequence[Val]) -> Sequence[Val]:
        result, power, rest = values
        result = b.select((rest & 1).ne(0), result * power, result)
        return result, power * power, rest >> 1

    result, _, _ = b.while_any(lambda values: values[2] > 0, step, (one, x, n))
    minus_one = b.select((n & 1).ne(0), b.const(x.kind, -1), 1)
    inverse = b.select(x.eq(1), 1, b.select(x.eq(-1), minus_one, 0))
    return b.select(n < 0, inverse, result)


def constant_ipowi(b: Builder, x: Val, exponent: int) -> Val:
    """x^exponent for integers and ``exponent >= 0``."""
    return _product(x, exponent) if exponent else b.const(x.kind, 1)
