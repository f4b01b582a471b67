"""Constants of the two IEEE-754 formats that expansions compute in."""

from __future__ import annotations

from polyblocks.codegen.builder import Builder, Number, Val, bits_of

MANTISSA_BITS = {"f32": 23, "f64": 52}
BIAS = {"f32": 127, "f64": 1023}
SMALLEST_NORMAL = {"f32": 2.0**-126, "f64": 2.0**-1022}
LARGEST = {"f32": (2.0 - 2.0**-23) * 2.0**127, "f64": (2.0 - 2.0**-52) * 2.0**1023}
INFINITY = float("inf")
NAN = float("nan")

#: Adding and subtracting it rounds a small float to an integer (nearest even); the integer
#: stands in the low bits of the sum. Valid for magnitudes up to a third of it.
ROUNDER = {"f32": 1.5 * 2.0**23, "f64": 1.5 * 2.0**52}

#: ln 2 = HI + LO, and n * HI is exact for every exponent n of the format.
LN2_HI = {"f32": 0.693145751953125, "f64": 6.93147180369123816490e-01}
LN2_LO = {"f32": 1.428606765330187e-06, "f64": 1.90821492927058770002e-10}
LN2 = 0.6931471805599453
LOG2_E = 1.4426950408889634
#: Its sum as two float32 numbers.
LOG2_E_PARTS = (1.4426950216293335, 1.9259629911266175e-08)
SQRT_HALF = 0.7071067811865476


def round_scaled(b: Builder, x: Val, scale: Number) -> tuple[Val, Val]:
    """``x * scale`` rounded to an integer: as a float and as an integer.

    Neither is meaningful for NaN, or beyond a third of the rounder; both stay free of
    undefined behaviour there (a float-to-integer conversion would be poison).
    """
    magic = ROUNDER[x.kind]
    shifted = b.fma(x, scale, magic)
    return shifted - magic, shifted.bits() - bits_of(x.kind, magic)


def power_of_two(exponent: Val, kind: str) -> Val:
    """``2^exponent`` for exponents of normal numbers; ``exponent`` is an integer of that width."""
    return ((exponent + BIAS[kind]) << MANTISSA_BITS[kind]).as_float()


def times_power_of_two(x: Val, exponent: Val) -> Val:
    """``x * 2^exponent`` where both ``x`` and the product are normal numbers."""
    return (x.bits() + (exponent << MANTISSA_BITS[x.kind])).as_float()


def scale_by_power_of_two(x: Val, whole: Val, exponent: Val) -> Val:
    """``x * 2^exponent`` over the whole exponent range, rounded once, for ``x`` around 1.

    The exponent comes as a float, rounded down, and as that integer. Two
    factors, since 2^exponent alone may be outside the format when the product is not.
    """
    scaled = x.b.scaled(x, whole)
    if scaled is not None:
        return scaled
    if x.b.has_ldexp:
        return x.b.ldexp(x, exponent)
    half = exponent >> 1
    return x * power_of_two(half, x.kind) * power_of_two(exponent - half, x.kind)


def split_exponent(b: Builder, x: Val, *, denormals: bool = True) -> tuple[Val, Val]:
    """``x = m * 2^e`` with ``m`` in ``[sqrt(1/2), sqrt(2))``, for positive finite ``x``.

    Args:
        b: the builder.
        x: float32 or float64.
        denormals: whether ``x`` may be denormal; it is scaled up first then.

    Returns:
        ``m`` and ``e``, both floats. Results for zero, negative, infinite or NaN ``x`` are
        finite garbage; the caller selects them away.
    """
    kind, mantissa = x.kind, MANTISSA_BITS[x.kind]
    if denormals:
        tiny = x < SMALLEST_NORMAL[kind]
        x = b.select(tiny, x * 2.0 ** (mantissa + 1), x)
    offset = x.bits() - bits_of(kind, SQRT_HALF)
    exponent = offset >> mantissa
    m = ((offset & ((1 << mantissa) - 1)) + bits_of(kind, SQRT_HALF)).as_float()
    e = exponent.to(kind) if kind == "f32" else _small_int_to_f64(exponent)
    if denormals:
        e = e - b.select(tiny, b.const(kind, mantissa + 1), 0.0)
    return m, e


def _small_int_to_f64(value: Val) -> Val:
    # i64 -> f64 has no vector instruction on most chips; |value| < 2^51 allows the rounder trick.
    magic = ROUNDER["f64"]
    return (value + bits_of("f64", magic)).as_float() - magic
