"""asin, acos, atan, atan2.

asin and acos: odd polynomial up to 1/2, beyond it asin(x) = pi/2 - 2 asin(sqrt((1-x)/2)) with the
square root in two parts (FDLIBM e_asin.c, e_acos.c). atan: the angle is atan(t) + atan(r) with
t one of 0, 1/2, 1, 3/2, infinity and r = (x - t) / (1 + t x), |r| < 7/16 (FDLIBM s_atan.c), in one
quotient; the angles atan(t) are added in two parts. atan2 forms the quotient from both arguments;
that of float32 is the smaller one by the larger one, which never overflows, and its angle is one
polynomial up to 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.double_double import clear_low_half, fast_two_sum
from polyblocks.codegen.vector_math.formats import INFINITY, NAN

#: Where a quotient is reduced by one of _ANGLES, and the tangents of all of these but the last.
_ENDS = (0.4375, 0.6875, 1.1875, 2.4375)
_TANGENTS = (0.5, 1.0, 1.5)
#: atan(1/2), pi/4, atan(3/2) and pi/2 rounded to the format, and what is left of each.
_ANGLES = {
    "f32": (
        (0.46364760398864746, 0.7853981852531433, 0.9827937483787537, 1.5707963705062866),
        (
            5.01215868808913e-09,
            -2.1855694143368964e-08,
            -2.5131424052915463e-08,
            -4.371138828673793e-08,
        ),
    ),
    "f64": (
        (0.4636476090008061, 0.7853981633974483, 0.982793723247329, 1.5707963267948966),
        (
            2.2698777452961687e-17,
            3.061616997868383e-17,
            1.3903311031230998e-17,
            6.123233995736766e-17,
        ),
    ),
}
_PI = (3.141592653589793, 1.2246467991473532e-16)


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
    quarter, quarter_low = (part[1] for part in _ANGLES[x.kind])
    small, t, high, low, ratio = _asin_pieces(b, x)
    p = t * ratio
    minus_low = (p + low) * 2.0 - 2.0 * quarter_low
    large = quarter - (minus_low - (quarter - high * 2.0))
    return b.select(small, t + p, large).copysign(x)


def acos(b: Builder, x: Val) -> Val:
    """acos(x), float32 and float64; NaN outside [-1, 1]."""
    half, half_low = (part[3] for part in _ANGLES[x.kind])
    small, t, high, low, ratio = _asin_pieces(b, x)
    p = t * ratio
    middle = half - (x - (half_low - x * ratio))
    positive = (high + (p + low)) * 2.0
    negative = (half - (t + (p - half_low))) * 2.0
    return b.select(small, middle, b.select(x < 0.0, negative, positive))


def atan(b: Builder, x: Val) -> Val:
    """atan(x), float32 and float64."""
    one = b.const(x.kind, 1.0)
    polynomial = table.ATAN_F32 if x.kind == "f32" else table.ATAN_F64
    return _angle(b, abs(x), one, polynomial).copysign(x)


def _angle(
    b: Builder, y: Val, x: Val, polynomial: tuple[float, ...], mirror: Val | None = None
) -> Val:
    """The angle of the point (x, y) of the first quadrant, of (-x, y) where ``mirror`` holds.

    x is finite and not 0, except that both may be 0 if ``mirror`` is given.
    """
    kind = y.kind
    beyond = [y > x * end for end in _ENDS]

    def choose(values: Sequence[float]) -> Val:
        chosen = b.const(kind, 0.0)
        for above, value in zip(beyond, values, strict=False):
            chosen = b.select(above, value, chosen)
        return chosen

    t = choose(_TANGENTS)
    numerator = b.select(beyond[-1], -x, b.fnma(t, x, y))
    denominator = b.select(beyond[-1], y, b.fma(t, y, x))
    r = numerator / denominator
    base, base_low = (choose(part) for part in _ANGLES[kind])
    if mirror is not None:
        r = b.select(y.eq(0.0), 0.0, r)
        r = b.select(mirror, -r, r)
        opposite, error = fast_two_sum(b.const(kind, _PI[0]), -base)
        base = b.select(mirror, opposite, base)
        base_low = b.select(mirror, error + (_PI[1] - base_low), base_low)
    s = r * r
    return base + (r + b.fma(r * s, b.horner(s, polynomial), base_low))


def atan2(b: Builder, y: Val, x: Val) -> Val:
    """The angle of the point (x, y), float32 and float64."""
    if y.kind == "f32":
        return _signed(b, _single(b, y, x), y, x)
    # Sums of huge coordinates must not overflow, comparisons of denormals need their low bits.
    huge = (abs(y) > 2.0**1020) | (abs(x) > 2.0**1020)
    tiny = (abs(y) < 2.0**-900) & (abs(x) < 2.0**-900)
    scale = b.select(huge, b.const("f64", 2.0**-8), b.select(tiny, b.const("f64", 2.0**200), 1.0))
    y, x = y * scale, x * scale
    return _signed(b, _size(b, y, x), y, x)


def _single(b: Builder, y: Val, x: Val) -> Val:
    """The angle without its sign, float32: of the smaller coordinate by the larger one."""
    steep = abs(y) > abs(x)
    mirror = x.bits() < 0
    low, high = b.select(steep, abs(x), abs(y)), b.select(steep, abs(y), abs(x))
    # (0, 0) is the angle of (1, 0), two infinities that of (1, 1).
    r = b.select(low.eq(INFINITY), 1.0, low / b.select(high.eq(0.0), 1.0, high))
    r = b.select(steep, -r, r)
    r = b.select(mirror, -r, r)
    half, half_low = (part[3] for part in _ANGLES["f32"])
    base = b.select(steep, half, b.select(mirror, b.const("f32", 2 * half), 0.0))
    base_low = b.select(steep, half_low, b.select(mirror, b.const("f32", 2 * half_low), 0.0))
    s = r * r
    return base + (r + b.fma(r * s, b.horner(s, table.ATAN_UNIT_F32), base_low))


def _signed(b: Builder, angle: Val, y: Val, x: Val) -> Val:
    return b.select(x.compare("uno", y), NAN, angle.copysign(y))


def _size(b: Builder, y: Val, x: Val) -> Val:
    """The angle without its sign, float64."""
    # An infinite x: the angle of (1, 0), or of (1, 1) if y is infinite as well.
    infinite = abs(x).eq(INFINITY)
    ay = b.select(infinite, b.select(abs(y).eq(INFINITY), b.const("f64", 1.0), 0.0), abs(y))
    ax = b.select(infinite, 1.0, abs(x))
    return _angle(b, ay, ax, table.ATAN_F64, x.bits() < 0)
