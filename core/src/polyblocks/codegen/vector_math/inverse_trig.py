"""asin, acos, atan, atan2.

asin and acos: odd polynomial up to 1/2, beyond it asin(x) = pi/2 - 2 asin(sqrt((1-x)/2)) with the
square root in two parts (FDLIBM e_asin.c, e_acos.c). atan: |x| is reduced below tan(pi/8) with
one quotient, x, (x-1)/(x+1) or -1/x, and the angles 0, pi/4, pi/2 are added in two parts.
atan2 forms the quotient from both arguments; float32 runs it in float64, where no quotient of
float32 numbers overflows or underflows.
"""

from __future__ import annotations

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.double_double import clear_low_half
from polyblocks.codegen.vector_math.formats import INFINITY, NAN

_TAN_PI_8 = 0.41421356237309503
_TAN_3PI_8 = 2.414213562373095
#: pi/4, rounded to the format, and what is left; pi/2 and pi are exact multiples.
_QUARTER_PI = {
    "f32": (0.7853981852531433, -2.1855694143368964e-08),
    "f64": (0.7853981633974483, 3.061616997868383e-17),
}
#: 3 pi/4 in two float64 parts (only atan2 needs it, which computes in float64).
_THREE_QUARTERS_PI = (2.356194490192345, 9.184850993605148e-17)


def _asin_pieces(b: Builder, x: Val) -> tuple[Val, Val, Val, Val, Val]:
    """For ``t`` = |x| up to 1/2, beyond it sqrt((1-|x|)/2).

    Returns:
        Whether |x| < 1/2; ``t``; ``t`` as ``high + low`` with half a significand in ``high``;
        ``R`` with ``asin(t) = t + t*R``.
    """
    magnitude = abs(x)
    small = magnitude < 0.5
    z = b.select(small, x * x, (1.0 - magnitude) * 0.5)
    root = z.sqrt()
    t = b.select(small, magnitude, root)
    high = clear_low_half(root)
    low = (z - high * high) / (root + high)
    # The root of 0 is exact; 0/0 is not.
    low = b.select(z.eq(0.0), 0.0, low)
    ratio = z * b.horner(z, table.ASIN_F32 if x.kind == "f32" else table.ASIN_F64)
    return small, t, high, low, ratio


def asin(b: Builder, x: Val) -> Val:
    """asin(x), float32 and float64; NaN outside [-1, 1]."""
    quarter, quarter_low = _QUARTER_PI[x.kind]
    small, t, high, low, ratio = _asin_pieces(b, x)
    p = t * ratio
    minus_low = (p + low) * 2.0 - 2.0 * quarter_low
    large = quarter - (minus_low - (quarter - high * 2.0))
    return b.select(small, t + p, large).copysign(x)


def acos(b: Builder, x: Val) -> Val:
    """acos(x), float32 and float64; NaN outside [-1, 1]."""
    quarter, quarter_low = _QUARTER_PI[x.kind]
    half, half_low = 2.0 * quarter, 2.0 * quarter_low
    small, t, high, low, ratio = _asin_pieces(b, x)
    p = t * ratio
    middle = half - (x - (half_low - x * ratio))
    positive = (high + (p + low)) * 2.0
    negative = (half - (t + (p - half_low))) * 2.0
    return b.select(small, middle, b.select(x < 0.0, negative, positive))


def atan(b: Builder, x: Val) -> Val:
    """atan(x), float32 and float64."""
    one = b.const(x.kind, 1.0)
    return _angle(b, abs(x), one, table.ATAN_F32 if x.kind == "f32" else table.ATAN_F64).copysign(x)


def _angle(
    b: Builder, y: Val, x: Val, polynomial: tuple[float, ...], mirror: Val | None = None
) -> Val:
    """The angle of the point (x, y) of the first quadrant, of (-x, y) where ``mirror`` holds."""
    kind = y.kind
    big = y > x * _TAN_3PI_8
    middle = y > x * _TAN_PI_8
    numerator = b.select(big, -x, b.select(middle, y - x, y))
    denominator = b.select(big, y, b.select(middle, y + x, x))
    r = numerator / denominator
    if mirror is not None:
        r = b.select(y.eq(0.0), 0.0, r)
        r = b.select(mirror, -r, r)
    quarter, quarter_low = _QUARTER_PI[kind]
    bases = []
    for part, three_quarters in zip((quarter, quarter_low), _THREE_QUARTERS_PI, strict=True):
        zero, one = b.const(kind, 0.0), b.const(kind, part)
        if mirror is not None:
            zero = b.select(mirror, 4.0 * part, zero)
            one = b.select(mirror, three_quarters, one)
        bases.append(b.select(big, 2.0 * part, b.select(middle, one, zero)))
    s = r * r
    return bases[0] + (r + b.fma(r * s, b.horner(s, polynomial), bases[1]))


def atan2(b: Builder, y: Val, x: Val) -> Val:
    """The angle of the point (x, y), float32 and float64."""
    if y.kind == "f32":
        return _atan2(b, y.to("f64"), x.to("f64"), table.ATAN_WIDE).to("f32")
    # Sums of huge coordinates must not overflow, comparisons of denormals need their low bits.
    huge = (abs(y) > 2.0**1020) | (abs(x) > 2.0**1020)
    tiny = (abs(y) < 2.0**-900) & (abs(x) < 2.0**-900)
    scale = b.select(huge, b.const("f64", 2.0**-8), b.select(tiny, b.const("f64", 2.0**200), 1.0))
    return _atan2(b, y * scale, x * scale, table.ATAN_F64)


def _atan2(b: Builder, y: Val, x: Val, polynomial: tuple[float, ...]) -> Val:
    ay, ax = abs(y), abs(x)
    both_infinite = ay.eq(INFINITY) & ax.eq(INFINITY)
    ay, ax = b.select(both_infinite, 1.0, ay), b.select(both_infinite, 1.0, ax)
    angle = _angle(b, ay, ax, polynomial, x.bits() < 0).copysign(y)
    return b.select(x.compare("uno", y), NAN, angle)
