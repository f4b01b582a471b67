"""sin, cos, tan and sincos, right for every argument including the largest.

float32: the reduction x - n*pi/2 runs in float64 with pi/2 in two parts, exact enough for
|x| < 2^20 * pi/2; the polynomials run in float32. Larger arguments take `_reduce_huge_f32`: the
product of x with 1/(2*pi) in 29-bit chunks, each exact in float64, of which only the fraction is
kept (the idea of M. Payne and R. Hanek, SIGNUM 1983, in floating point).
"""

from __future__ import annotations

from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.builder import Builder, Val
from polyblocks.codegen.vector_math.formats import round_scaled

_TWO_OVER_PI = 0.63661977236758134308
#: pi/2 in a part of 33 bits, so that n * part is exact for |n| < 2^20, and the rest.
_HALF_PI_HIGH = 1.57079632673412561417e00
_HALF_PI_LOW = 6.07710050650619224932e-11
#: Beyond it n has more than 20 bits.
_HUGE_F32 = 1.0e6


def _chunks(bits: int, count: int) -> tuple[float, ...]:
    """1/(2*pi) cut in ``count`` pieces of ``bits`` bits, highest first; all exact float64."""
    scaled, result = _inverse_two_pi(bits * count), []
    for i in range(count):
        piece = (scaled >> (bits * (count - 1 - i))) & ((1 << bits) - 1)
        result.append(piece * 2.0 ** (-bits * (i + 1)))
    return tuple(result)


def _inverse_two_pi(bits: int) -> int:
    """``floor(2^bits / (2*pi))``, with pi from Machin's formula in integers."""
    guard = 64
    one = 1 << (bits + guard)

    def arctan_of_inverse(n: int) -> int:
        term = one // n
        total, k, sign = term, 1, 1
        while term:
            term //= n * n
            k += 2
            sign = -sign
            total += sign * (term // k)
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    return int((one * one) // (2 * pi) >> guard)


#: 7 chunks: a float32 has up to 2^104 as its unit, 62 further bits survive cancellation.
_INVERSE_TWO_PI_29 = _chunks(29, 7)


def _reduce_f32(b: Builder, x: Val) -> tuple[Val, Val]:
    """``x = n*pi/2 + r`` with ``|r| <= pi/4``: r in float64, n's low bits as i32."""
    wide = x.to("f64")
    n, i = round_scaled(b, wide, _TWO_OVER_PI)
    r = b.fnma(n, _HALF_PI_LOW, b.fnma(n, _HALF_PI_HIGH, wide))
    return tuple(  # type: ignore[return-value]
        b.when_any(
            abs(x) > _HUGE_F32, lambda: _reduce_huge_f32(b, wide), (r, i.to("i32"))
        )
    )


def _reduce_huge_f32(b: Builder, x: Val) -> tuple[Val, Val]:
    magnitude = abs(x)
    r = b.const("f64", 0.0)
    quadrants = b.const("f64", 0.0)
    big = 2.0**52
    for chunk in _INVERSE_TWO_PI_29:
        product = magnitude * chunk
        # Above 2^52 a float64 is an integer already, and the rounding trick would not hold.
        whole = b.select(product < big, (product + big) - big, product)
        r = r + (product - whole)
        # Quadrants go at once: what is left may cancel to 2^-32 and must keep its low bits.
        n, _ = round_scaled(b, r, 4.0)
        quadrants = quadrants + n
        r = b.fnma(n, 0.25, r)
    _, i = round_scaled(b, quadrants, 1.0)
    r = r * 6.283185307179586
    negative = x < 0.0
    r = b.select(negative, -r, r)
    i = i.to("i32")
    return r, b.select(negative, 0 - i, i)


def _sin_polynomial(b: Builder, r: Val, s: Val) -> Val:
    return b.fma(r * s, b.horner(s, table.SIN_F32), r)


def _cos_polynomial(b: Builder, s: Val) -> Val:
    return b.fma(s * s, b.horner(s, table.COS_F32), b.fma(s, -0.5, 1.0))


def _sin_cos_f32(b: Builder, x: Val) -> tuple[Val, Val, Val]:
    """sin(r), cos(r) and the quadrant n of the reduced argument; NaN for infinite x."""
    wide, n = _reduce_f32(b, x)
    r = wide.to("f32")
    s = r * r
    return _sin_polynomial(b, r, s), _cos_polynomial(b, s), n


def _signed(b: Builder, odd: Val, yes: Val, no: Val, sign: Val) -> Val:
    """``yes`` or ``no``, negated where bit 31 of ``sign`` is set."""
    chosen = b.select(odd, yes, no)
    return (chosen.bits() ^ (sign & -0x80000000)).as_float()


def sincos(b: Builder, x: Val) -> tuple[Val, Val]:
    """sin(x) and cos(x) from one reduction."""
    sine, cosine, n = _sin_cos_f32(b, x)
    odd = (n & 1).ne(0)
    sin_result = _signed(b, odd, cosine, sine, n << 30)
    sin_result = b.select(x.eq(0.0), x, sin_result)
    return sin_result, _signed(b, odd, sine, cosine, (n + 1) << 30)


def sin(b: Builder, x: Val) -> Val:
    """sin(x)."""
    sine, cosine, n = _sin_cos_f32(b, x)
    result = _signed(b, (n & 1).ne(0), cosine, sine, n << 30)
    return b.select(x.eq(0.0), x, result)


def cos(b: Builder, x: Val) -> Val:
    """cos(x)."""
    sine, cosine, n = _sin_cos_f32(b, x)
    return _signed(b, (n & 1).ne(0), sine, cosine, (n + 1) << 30)


def tan(b: Builder, x: Val) -> Val:
    """tan(x)."""
    wide, n = _reduce_f32(b, x)
    r = wide.to("f32")
    rest = (wide - r.to("f64")).to("f32")
    s = r * r
    t = b.fma(r * s, b.horner(s, table.TAN_F32), b.fma(rest, s, rest)) + r
    result = b.select((n & 1).ne(0), -1.0 / t, t)
    return b.select(x.eq(0.0), x, result)
