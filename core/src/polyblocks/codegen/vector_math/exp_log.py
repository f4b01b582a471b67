"""exp, exp2, expm1, log, log2, log10, log1p.

Exponentials: Cody-Waite reduction to r = x - n*ln2, |r| <= ln2/2, polynomial, scaling by 2^n in
two factors so that overflow and gradual underflow come from the last multiplication. Vectors of
numbers whose exp is normal add n to the exponent instead; others branch. Where a
target looks numbers up in a table of 16 and multiplies by powers of two in one instruction, float32
exp and exp2 take the power of two in sixteenths, 2^(n mod 1) out of the table, and a shorter
polynomial.
Logarithms: x = 2^e * m with m in [sqrt(1/2), sqrt(2)), f = m - 1; float32 takes a polynomial in f
with the first two terms exact, float64 the s = f/(2+f) form of FDLIBM (e_log.c), and for log2 and
log10 its two-part combination (FreeBSD e_log2.c, k_log.h).
"""

from __future__ import annotations

from collections.abc import Callable

from polyblocks.codegen.builder import Builder, Val, bits_of
from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.double_double import two_product
from polyblocks.codegen.vector_math.formats import (
    INFINITY,
    LN2_HI,
    LN2_LO,
    LOG2_E,
    LOG2_E_PARTS,
    NAN,
    ROUNDER,
    SMALLEST_NORMAL,
    power_of_two,
    round_scaled,
    scale_by_power_of_two,
    split_exponent,
    times_power_of_two,
)

#: Below LOW exp rounds to 0, above HIGH it overflows; the reduction works in between.
_EXP_RANGE = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}
#: Of magnitudes below, exp and what it is computed from are normal numbers.
_NORMAL_EXP = {"f32": 86.9, "f64": 707.9}
#: Of a float32: set from 2 on.
_HIGHEST_EXPONENT_BIT = 1 << 30
#: Powers of two between 1 and 2.
_SIXTEENTHS = tuple(2.0 ** (i / 16) for i in range(16))
_EXP2_RANGE = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}


def exp_reduced(b: Builder, x: Val, n: Val) -> Val:
    """``r = x - n*ln2`` for an integer-valued ``n``."""
    r = b.fnma(n, LN2_HI[x.kind], x)
    return b.fnma(n, LN2_LO[x.kind], r)


def exp_polynomial(b: Builder, r: Val) -> Val:
    """exp(r) for ``|r| <= ln2/2``."""
    p = b.horner(r, table.EXP_F32 if r.kind == "f32" else table.EXP_F64)
    return b.fma(r * r, p, r) + 1.0


def exp(b: Builder, x: Val) -> Val:
    """e^x, float32 and float64."""
    by_table = _power_by_table(b, x, *LOG2_E_PARTS)
    if by_table is not None:
        return by_table

    def anywhere() -> list[Val]:
        low, high = _EXP_RANGE[x.kind]
        y = b.clamp(x, low, high)
        n, i = round_scaled(b, y, LOG2_E)
        return [scale_by_power_of_two(exp_polynomial(b, exp_reduced(b, y, n)), n, i)]

    if b.shape is None or b.has_scale or b.has_ldexp:
        return anywhere()[0]
    n, i = round_scaled(b, x, LOG2_E)
    p = exp_polynomial(b, exp_reduced(b, x, n))
    return b.when_any(~(abs(x) < _NORMAL_EXP[x.kind]), anywhere, [times_power_of_two(p, i)])[0]


def _power_by_table(b: Builder, x: Val, log2: float, rest: float) -> Val | None:
    """``2^(x * (log2 + rest))`` in float32; None where the target has not what it takes."""
    pick = _sixteenths(b, x.kind)
    if pick is None:
        return None
    positive = x.negated()
    if positive is not None:
        x, log2, rest = positive, -log2, -rest
    n, r, bits = _in_sixteenths(b, x, log2, rest)
    # Where the result overflows, rounds to 0 or is NaN, n alone tells it. Without this bit r is
    # between -2 and 2 there too, and 2^r positive.
    r = (r.bits() & ~_HIGHEST_EXPONENT_BIT).as_float()
    step = pick(bits)
    return b.scaled(b.fma(step * r, b.horner(r, table.EXP2_SIXTEENTH_F32), step), n)


def _sixteenths(b: Builder, kind: str) -> Callable[[Val], Val] | None:
    """The table of powers; None where the target has not what it takes."""
    return b.table(_SIXTEENTHS) if kind == "f32" and b.has_fma and b.has_scale else None


def _in_sixteenths(b: Builder, x: Val, log2: float, rest: float) -> tuple[Val, Val, Val]:
    """``x * (log2 + rest) = n + r`` with n in sixteenths: n, r, and bits that count them."""
    magic = ROUNDER["f32"] / len(_SIXTEENTHS)
    shifted = b.fma(x, log2, magic)
    n = shifted - magic
    r = b.fma(x, log2, -n)
    if rest:
        r = b.fma(x, rest, r)
    return n, r, shifted.bits()


def exp_product(b: Builder, high: Val, low: Val, factor: Val) -> Val | None:
    """``factor * exp(high + low)`` in float32, for ``|low|`` below a rounding error of ``high``.

    ``high`` is between the logarithms of the smallest and the largest float32, ``factor`` between
    2^-6 and 2. None where the target has not what `_power_by_table` takes.
    """
    pick = _sixteenths(b, high.kind)
    if pick is None:
        return None
    n, r, bits = _in_sixteenths(b, high, *LOG2_E_PARTS)
    r = b.fma(low, LOG2_E_PARTS[0], r)
    p = r * b.horner(r, table.EXP2_SIXTEENTH_F32)
    step, error = two_product(b, pick(bits), factor)
    return b.scaled(step + b.fma(step, p, error), n)


def exp_sum(b: Builder, high: Val, low: Val, factor: tuple[Val, Val] | None = None) -> Val:
    """``factor * exp(high + low)`` in float64, for ``|low|`` below a rounding error of ``high``.

    ``high`` is within the range of `exp`; ``factor`` is a sum of two, of size 2^-6 to 2.
    """
    n, i = round_scaled(b, high, LOG2_E)
    exact = b.fnma(n, LN2_HI["f64"], high)
    product = n * LN2_LO["f64"]
    r = exact - product
    rest = ((exact - r) - product) + low
    tail = r * r * b.horner(r, table.EXP_F64)
    # exp(r + rest) = exp(r) + rest * exp(r), the smallest terms first.
    total = b.fma(rest, (tail + r) + 1.0, tail) + r + 1.0
    if factor is not None:
        total = b.fma(total, factor[0], total * factor[1])
    return scale_by_power_of_two(total, n, i)


def exp2(b: Builder, x: Val) -> Val:
    """2^x, float32 and float64."""
    by_table = _power_by_table(b, x, 1.0, 0.0)
    if by_table is not None:
        return by_table
    low, high = _EXP2_RANGE[x.kind]
    x = b.clamp(x, low, high)
    n, i = round_scaled(b, x, 1.0)
    r = x - n
    p = b.horner(r, table.EXP2_F32 if x.kind == "f32" else table.EXP2_F64)
    return scale_by_power_of_two(b.fma(r, p, 1.0), n, i)


def expm1(b: Builder, x: Val) -> Val:
    """e^x - 1, float32 and float64."""
    low, high = {"f32": (-18.0, 89.0), "f64": (-38.0, 710.0)}[x.kind]
    clamped = b.clamp(x, low, high)
    n, i = round_scaled(b, clamped, LOG2_E)
    # Without reduction up to 0.55: 2*expm1(r) + 1 would lose bits to cancellation there.
    near = abs(x) < 0.55
    n, i = b.select(near, 0.0, n), b.select(near, 0, i)
    r = exp_reduced(b, clamped, n)
    p = b.horner(r, table.EXPM1_F32 if x.kind == "f32" else table.EXPM1_F64)
    p = b.fma(r * r, p, r)
    # 2^n as 2 * 2^(n-1), since 2^128 is not a float32.
    half = power_of_two(i - 1, x.kind)
    result = (b.fma(half, p, half - 0.5)) * 2.0
    # Denormals would be lost in the halving; copysign is for -0.
    return b.select(near, p, result).copysign(x)


def _logarithm(b: Builder, x: Val, reduced: Callable[[Val, Val], Val]) -> Val:
    """A logarithm of any base, ``reduced(m - 1, e)`` being that of ``m * 2^e``.

    Vectors without a denormal, 0, negative number, infinity or NaN skip what these need.
    """

    def special() -> list[Val]:
        m, e = split_exponent(b, x)
        result = reduced(m - 1.0, e)
        result = b.select(x > 0.0, result, b.select(x.eq(0.0), b.const(x.kind, -INFINITY), NAN))
        return [b.select(x.eq(INFINITY), x, result)]

    if b.shape is None:
        # A loop vectorizer would do both sides.
        return special()[0]
    m, e = split_exponent(b, x, denormals=False)
    normals = bits_of(x.kind, INFINITY) - bits_of(x.kind, SMALLEST_NORMAL[x.kind])
    rare = ~(x.bits() - bits_of(x.kind, SMALLEST_NORMAL[x.kind])).compare("ult", normals)
    return b.when_any(rare, special, [reduced(m - 1.0, e)])[0]


def log(b: Builder, x: Val) -> Val:
    """Natural logarithm, float32 and float64."""
    return _logarithm(b, x, lambda f, e: _log_reduced(b, f, e))


def _log_reduced(b: Builder, f: Val, e: Val, correction: Val | None = None) -> Val:
    """``e*ln2 + log1p(f)``, plus a small ``correction`` to the logarithm."""
    if f.kind == "f32":
        p = b.horner(f, table.LOG_F32)
        tail = f * f * b.fma(f, p, -0.5)
        low = b.fma(e, LN2_LO["f32"], tail)
        if correction is not None:
            low = low + correction
        return b.fma(e, LN2_HI["f32"], f + low)
    s, half_square, r = _log_pieces(b, f)
    low = e * LN2_LO["f64"]
    if correction is not None:
        low = low + correction
    low = b.fma(s, half_square + r, low)
    return b.fma(e, LN2_HI["f64"], f - (half_square - low))


def _log_pieces(b: Builder, f: Val) -> tuple[Val, Val, Val]:
    """``log1p(f) = f - h + s*(h + R)`` with ``h = f^2/2``, ``s = f/(2+f)``; returns s, h, R."""
    s = f / (f + 2.0)
    z = s * s
    r = z * b.horner(z, table.LOG_F64)
    return s, f * f * 0.5, r


def log2(b: Builder, x: Val) -> Val:
    """Base-2 logarithm, float32 and float64; exact at powers of two."""
    return _logarithm(b, x, lambda f, e: _log2_reduced(b, f, e))


def _log2_reduced(b: Builder, f: Val, e: Val) -> Val:
    if f.kind == "f32":
        # log2(e) = 1.44269502162933349609375 + 1.92596299e-8
        scale, rest = 1.4426950216293335, 1.9259629911266175e-08
        return e + _scaled_log_f32(b, f, table.LOG2_F32, scale, rest)
    high, low = _scaled_log_f64(b, f, 1.44269504072144627571e00, 1.67517131648865118353e-10)
    total = e + high
    return total + (low + ((e - total) + high))


def log10(b: Builder, x: Val) -> Val:
    """Base-10 logarithm, float32 and float64."""
    return _logarithm(b, x, lambda f, e: _log10_reduced(b, f, e))


def _log10_reduced(b: Builder, f: Val, e: Val) -> Val:
    if f.kind == "f32":
        # log10(e) and log10(2) in two parts; e times the high part of log10(2) is exact.
        result = _scaled_log_f32(b, f, table.LOG10_F32, 0.4342944920063019, -1.0103050052231684e-08)
        low = b.fma(e, 4.605038981195214e-06, result)
        return b.fma(e, 0.301025390625, low)
    high, low = _scaled_log_f64(b, f, 4.34294481878168880939e-01, 2.50829467116452752298e-11)
    whole = e * 3.01029995663611771306e-01
    low = b.fma(e, 3.69423907715893078616e-13, low)
    total = whole + high
    return total + (low + ((whole - total) + high))


def _scaled_log_f32(
    b: Builder, f: Val, polynomial: tuple[float, ...], high: float, low: float
) -> Val:
    """``log1p(f) * (high + low)``, the polynomial giving the part beyond the linear term."""
    tail = b.fma(f * f, b.horner(f, polynomial), f * low)
    return b.fma(f, high, tail)


def _scaled_log_f64(b: Builder, f: Val, scale_high: float, scale_low: float) -> tuple[Val, Val]:
    """``log1p(f) * (scale_high + scale_low)`` as a sum; ``scale_high`` has its low half clear."""
    s, half_square, r = _log_pieces(b, f)
    difference = f - half_square
    high = (difference.bits() & ~0xFFFFFFFF).as_float()
    low = b.fma(s, half_square + r, (f - high) - half_square)
    scaled_low = b.fma(low + high, scale_low, low * scale_high)
    return high * scale_high, scaled_low


def log1p(b: Builder, x: Val) -> Val:
    """log(1 + x), float32 and float64."""
    kind = x.kind
    u = x + 1.0
    m, e = split_exponent(b, u, denormals=False)
    # Rounding error of the addition above, relative to u (FDLIBM s_log1p.c).
    lost = b.select(x > 1.0, 1.0 - (u - x), x - (u - 1.0)) / u
    unreduced = e.eq(0.0)
    f = b.select(unreduced, x, m - 1.0)
    correction = b.select(unreduced, b.const(kind, 0.0), lost)
    result = _log_reduced(b, f, e, correction)
    result = b.select(x.eq(0.0), x, result)
    return b.select(
        x > -1.0,
        b.select(x.eq(INFINITY), x, result),
        b.select(x.eq(-1.0), b.const(kind, -INFINITY), NAN),
    )
