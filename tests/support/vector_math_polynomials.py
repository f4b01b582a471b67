"""The polynomials that vector_math_coefficients.py derives.

Names: ``_F32`` serves float32 arithmetic, ``_F64`` full float64 precision, ``_WIDE`` float64
arithmetic whose result is rounded to float32 (about 2^-36 is enough).
Intervals are a little wider than needed, so that a rounded reduction never leaves them.
"""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp, mpf
from vector_math_remez import Spec, near_zero

LN2 = mp.log(2)
HALF_LN2 = LN2 / 2 * mpf("1.001")
ROOT = (mp.sqrt(mpf(1) / 2) - 1) * mpf("1.0005"), (mp.sqrt(2) - 1) * mpf("1.0005")
QUARTER_PI_SQUARED = (mp.pi / 4) ** 2 * mpf("1.001")
# float32 rounds x * 2/pi to integers of up to 19 bits, with an error of up to 0.014.
SINGLE_SQUARED = (mp.pi / 4) ** 2 * mpf("1.057")


def _exp(name: str, degree: int, about: str, limit: mpf, minus_one: bool) -> Spec:
    return Spec(
        name,
        f"(exp(r) - 1 - r) / r^2{about}",
        near_zero(lambda r: (mp.expm1(r) - r) / r**2, mpf(1) / 2),
        near_zero(
            (lambda r: abs(r**2 / mp.expm1(r))) if minus_one else (lambda r: r**2 / mp.exp(r)),
            mpf(0),
        ),
        -limit,
        limit,
        degree,
    )


def _exp2(name: str, degree: int, limit: str = "0.5001") -> Spec:
    return Spec(
        name,
        "(2^r - 1) / r",
        near_zero(lambda r: mp.expm1(r * LN2) / r, LN2),
        lambda r: abs(r) / mpf(2) ** r,
        -mpf(limit),
        mpf(limit),
        degree,
    )


def _log2(name: str, degree: int, base: str) -> Spec:
    scale = 1 / mp.log(mpf(base))
    return Spec(
        name,
        f"(log{base}(1+f) - f*log{base}(e)) / f^2",
        near_zero(lambda f: (mp.log1p(f) - f) * scale / f**2, -scale / 2),
        near_zero(lambda f: abs(f**2 / (mp.log1p(f) * scale)), mpf(0)),
        ROOT[0],
        ROOT[1],
        degree,
    )


def _odd(
    name: str,
    function: Callable[[mpf], mpf],
    text: str,
    limit_at_zero: mpf,
    square_high: mpf,
    degree: int,
) -> Spec:
    """(function(x)/x - 1) / x^2 as a polynomial in s = x^2; see limit_at_zero for s = 0."""
    return Spec(
        name,
        f"({text}(x)/x - 1) / x^2 in s = x^2",
        near_zero(lambda s: (function(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, limit_at_zero),
        near_zero(lambda s: s * mp.sqrt(s) / function(mp.sqrt(s)), mpf(0)),
        mpf(0),
        square_high,
        degree,
    )


def _cos(name: str, square_high: mpf, degree: int) -> Spec:
    return Spec(
        name,
        "(cos(x) - 1 + x^2/2) / x^4 in s = x^2",
        near_zero(lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2, mpf(1) / 24),
        lambda s: s**2 / mp.cos(mp.sqrt(s)),
        mpf(0),
        square_high,
        degree,
    )


def _erf(name: str, degree: int, bound: mpf) -> Spec:
    edge = 2 / mp.sqrt(mp.pi)
    return Spec(
        name,
        "erf(x)/x - 1 in s = x^2",
        near_zero(lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1, edge - 1),
        near_zero(lambda s: mp.sqrt(s) / mp.erf(mp.sqrt(s)), 1 / edge),
        mpf(0),
        bound**2,
        degree,
    )


def _erfcx(name: str, degree: int, centre: int, high: mpf) -> Spec:
    """exp(t^2) erfc(t) (1 + 2t), in q = (t - centre) / (t + centre), for t in [0, high]."""

    def scaled(q: mpf) -> mpf:
        t = centre * (1 + q) / (1 - q)
        return mp.exp(t * t) * mp.erfc(t) * (1 + 2 * t)

    return Spec(
        name,
        f"exp(t^2) erfc(t) (1 + 2t) in q = (t - {centre}) / (t + {centre})",
        scaled,
        lambda q: 1 / scaled(q),
        mpf(-1),
        (high - centre) / (high + centre),
        degree,
    )


SPECS = [
    # exp and log families, float32.
    _exp("EXP_F32", 4, "", HALF_LN2, False),
    _exp("EXPM1_F32", 5, " with error relative to expm1", mpf("0.5505"), True),
    _exp("EXPM1_NEAR_F32", 4, " with error relative to expm1", HALF_LN2, True),
    _exp2("EXP2_F32", 5),
    _exp2("EXP2_SIXTEENTH_F32", 2, "0.03126"),
    Spec(
        "LOG_F32",
        "(log1p(f) - f + f^2/2) / f^3",
        near_zero(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, mpf(1) / 3),
        near_zero(lambda f: f**3 / mp.log1p(f), mpf(0)),
        ROOT[0],
        ROOT[1],
        7,
    ),
    _log2("LOG2_F32", 8, "2"),
    _log2("LOG10_F32", 8, "10"),
    # Trigonometry, float32.
    _odd("SIN_F32", mp.sin, "sin", -mpf(1) / 6, SINGLE_SQUARED, 2),
    _cos("COS_F32", SINGLE_SQUARED, 2),
    _odd("TAN_F32", mp.tan, "tan", mpf(1) / 3, QUARTER_PI_SQUARED, 6),
    # Hyperbolic and error functions, float32.
    _odd("SINH_F32", mp.sinh, "sinh", mpf(1) / 6, mpf("1.0005") ** 2, 3),
    _erf("ERF_F32", 6, mpf("1.051")),
    Spec(
        "ERFC_ROOT_F32",
        "erfc(x)^(1/4), error relative to erf of its fourth power",
        lambda x: mp.erfc(x) ** (mpf(1) / 4),
        lambda x: 4 * mp.erfc(x) ** (mpf(3) / 4) / mp.erf(x),
        mpf("1.049"),
        mpf("4.0"),
        8,
    ),
    # float64 arithmetic for float32 results.
    Spec(
        "LOG2_WIDE",
        "log2((1+s)/(1-s)) / s in z = s^2",
        near_zero(
            lambda z: mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z))) / mp.sqrt(z) / LN2, 2 / LN2
        ),
        near_zero(
            lambda z: mp.sqrt(z) * LN2 / mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z))), LN2 / 2
        ),
        mpf(0),
        mpf("0.02948"),
        4,
    ),
    Spec(
        "EXP2_WIDE",
        "2^r",
        lambda r: mpf(2) ** r,
        lambda r: mpf(2) ** -r,
        mpf("-0.5001"),
        mpf("0.5001"),
        6,
    ),
    _odd("ASIN_F32", mp.asin, "asin", mpf(1) / 6, mpf("0.2501"), 5),
    _odd("ATAN_F32", mp.atan, "atan", -mpf(1) / 3, mpf("0.1915"), 4),
    _odd("ATAN_UNIT_F32", mp.atan, "atan", -mpf(1) / 3, mpf("1.0"), 8),
    _erfcx("ERFCX_WIDE", 11, 2, mpf("11.0")),
    # float64.
    _exp("EXP_F64", 9, "", HALF_LN2, False),
    _exp("EXPM1_F64", 11, " with error relative to expm1", mpf("0.5505"), True),
    _exp2("EXP2_F64", 10),
    Spec(
        "LOG_F64",
        "(log((1+s)/(1-s))/s - 2) / s^2 in z = s^2",
        near_zero(
            lambda z: (mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z))) / mp.sqrt(z) - 2) / z,
            mpf(2) / 3,
        ),
        near_zero(lambda z: z, mpf(0)),
        mpf(0),
        mpf("0.02948"),
        6,
    ),
    _odd("SIN_F64", mp.sin, "sin", -mpf(1) / 6, QUARTER_PI_SQUARED, 5),
    _cos("COS_F64", QUARTER_PI_SQUARED, 5),
    _odd("TAN_F64", mp.tan, "tan", mpf(1) / 3, QUARTER_PI_SQUARED, 13),
    _odd("TANH_F64", mp.tanh, "tanh", -mpf(1) / 3, mpf("0.6255") ** 2, 10),
    _odd("SINH_F64", mp.sinh, "sinh", mpf(1) / 6, mpf("1.0005") ** 2, 6),
    _odd("ASIN_F64", mp.asin, "asin", mpf(1) / 6, mpf("0.2501"), 12),
    _odd("ATAN_F64", mp.atan, "atan", -mpf(1) / 3, mpf("0.1915"), 10),
    _erf("ERF_F64", 11, mpf("0.951")),
    Spec(
        "ERFC_ROOT_F64",
        "erfc(u + 1.5)^(1/4), error relative to erf of its fourth power",
        lambda u: mp.erfc(u + 1.5) ** (mpf(1) / 4),
        lambda u: 4 * mp.erfc(u + 1.5) ** (mpf(3) / 4) / mp.erf(u + 1.5),
        mpf("0.949") - 1.5,
        mpf("5.95") - 1.5,
        20,
    ),
    _erfcx("ERFCX_F64", 24, 4, mpf("27.5")),
    Spec(
        "CBRT_F64",
        "r^(-1/3)",
        lambda r: r ** (-mpf(1) / 3),
        lambda r: r ** (mpf(1) / 3),
        mpf("0.85"),
        mpf("1.16"),
        4,
    ),
    Spec(
        "POW_LOG_F64",
        "(log((1+s)/(1-s))/s - 2 - 2/3 s^2) / s^4 in z = s^2",
        near_zero(
            lambda z: (
                ((mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z))) / mp.sqrt(z) - 2) / z - mpf(2) / 3)
                / z
            ),
            mpf(2) / 5,
        ),
        near_zero(lambda z: z * z, mpf(0)),
        mpf(0),
        mpf("0.02948"),
        6,
    ),
]
