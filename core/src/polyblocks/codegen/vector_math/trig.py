"""sin, cos, tan and sincos, right for every argument including the largest.

Reduction to x = n*pi/2 + r + rest, |r| <= pi/4. float64 reduces in double-double arithmetic with
pi/2 in parts of 33 bits (FDLIBM e_rem_pio2.c), float32 with pi/2 in three float32 (W. J. Cody, W.
Waite, 1980), or in float64 where products are rounded before they are added. All hold while n has
at most 19 bits. Larger arguments multiply by as many bits of 2/pi as matter (M. Payne, R. Hanek,
SIGNUM 18(1), 1983), in `huge_arguments`.
Kernels: odd and even polynomials on [0, pi/4], the rounding error of r carried along.
"""

from __future__ import annotations

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.double_double import fast_two_sum, two_product, two_sum
from polyblocks.codegen.vector_math.formats import round_scaled
from polyblocks.codegen.vector_math.huge_arguments import reduce_huge_f32, reduce_huge_f64

_TWO_OVER_PI = 0.63661977236758134308
#: pi/2 in parts of 33 bits, so that n * part is exact for |n| < 2^20, and what remains.
_HALF_PI = (
    1.57079632673412561417e00,
    6.07710050630396597660e-11,
    2.02226624871116645580e-21,
    8.47842766036889956997e-32,
)
#: pi/2 less its first part, rounded.
_HALF_PI_REST = 6.07710050650619224932e-11
#: pi/2 in three float32, each rounded down.
_HALF_PI_F32 = (1.5707962512969971, 7.549789415861596e-08, 5.390302529957765e-15)
#: Beyond it the rounding of n takes r out of the polynomials' interval.
_HUGE_F32 = 2.0**19
#: Beyond it n has more than 20 bits.
_HUGE = 1.0e6


def _reduce(b: Builder, x: Val) -> tuple[Val, Val, Val]:
    """r, rest and the low bits of n (i32 for float32, i64 for float64)."""
    if x.kind == "f32":
        return _reduce_f32(b, x)
    n, i = round_scaled(b, x, _TWO_OVER_PI)
    exact = b.fnma(n, _HALF_PI[0], x)
    high, error = two_sum(exact, n * -_HALF_PI[1])
    high, error2 = two_sum(high, n * -_HALF_PI[2])
    low = b.fnma(n, _HALF_PI[3], error + error2)
    r, rest = fast_two_sum(high, low)
    r, rest, i = b.when_any(abs(x) > _HUGE, lambda: reduce_huge_f64(b, x), (r, rest, i))
    return r, rest, i


def _reduce_f32(b: Builder, x: Val) -> tuple[Val, Val, Val]:
    wide = x.to("f64")
    n, i = round_scaled(b, wide, _TWO_OVER_PI)
    exact = b.fnma(n, _HALF_PI_REST, b.fnma(n, _HALF_PI[0], wide))
    exact, i = b.when_any(abs(x) > _HUGE, lambda: reduce_huge_f32(b, x), (exact, i.to("i32")))
    r = exact.to("f32")
    return r, (exact - r.to("f64")).to("f32"), i


def _reduce_single(b: Builder, x: Val) -> tuple[Val, Val, Val]:
    """r, the excess of r but for its rounding, and n; no float64 up to `_HUGE_F32`.

    Needs fused multiply-add.
    """
    n, i = round_scaled(b, x, _TWO_OVER_PI)
    # The first difference is exact, a multiple of 2^-24 below 1; the second is rounded, once.
    exact = b.fnma(n, _HALF_PI_F32[0], x)
    r = b.fnma(n, _HALF_PI_F32[1], exact)
    excess = n * _HALF_PI_F32[2]

    def huge() -> tuple[Val, Val, Val]:
        wide, quadrant = reduce_huge_f32(b, x)
        single = wide.to("f32")
        return single, (single.to("f64") - wide).to("f32"), quadrant

    r, excess, i = b.when_any(abs(x) > _HUGE_F32, huge, (r, excess, i))
    return r, excess, i


def _sin_kernel(b: Builder, r: Val, rest: Val, s: Val) -> Val:
    p = b.horner(s, table.SIN_F32 if r.kind == "f32" else table.SIN_F64)
    return r + b.fma(r * s, p, b.fma(rest * s, -0.5, rest))


def _cos_kernel(b: Builder, r: Val, rest: Val, s: Val) -> Val:
    p = b.horner(s, table.COS_F32 if r.kind == "f32" else table.COS_F64)
    half = s * 0.5
    w = 1.0 - half
    return w + (((1.0 - w) - half) + b.fma(s * s, p, -(r * rest)))


def _kernels(b: Builder, x: Val) -> tuple[Val, Val, Val]:
    """sin(r), cos(r) and n; NaN for infinite x."""
    if x.kind == "f32" and b.has_fma:
        return _kernels_f32(b, x)
    r, rest, n = _reduce(b, x)
    s = r * r
    sine = b.select(x.eq(0.0), x, _sin_kernel(b, r, rest, s))
    return sine, _cos_kernel(b, r, rest, s), n


def _kernels_f32(b: Builder, x: Val) -> tuple[Val, Val, Val]:
    """As `_kernels`, without float64 up to `_HUGE_F32`; needs fused multiply-add."""
    r, excess, i = _reduce_single(b, x)
    s = r * r
    p = b.horner(s, [-c for c in table.SIN_F32])
    # Parts of pi/2 that are all positive, and a difference here: so -0 stays -0.
    sine = r - b.fma(r * s, p, excess)
    cosine = b.fma(s, b.fma(s, b.horner(s, table.COS_F32), -0.5), 1.0)
    return sine, cosine, i


def _quadrant(b: Builder, n: Val, even: Val, odd: Val) -> Val:
    """``even`` or ``odd`` by bit 0 of ``n``, negated by bit 1."""
    chosen = b.select((n & 1).ne(0), odd, even)
    top = 31 if n.kind == "i32" else 63
    return (chosen.bits() ^ ((n << (top - 1)) & -(1 << top))).as_float()


def sincos(b: Builder, x: Val) -> tuple[Val, Val]:
    """sin(x) and cos(x) from one reduction."""
    sine, cosine, n = _kernels(b, x)
    return _quadrant(b, n, sine, cosine), _quadrant(b, n + 1, sine, cosine)


def sin(b: Builder, x: Val) -> Val:
    """sin(x), float32 and float64."""
    sine, cosine, n = _kernels(b, x)
    return _quadrant(b, n, sine, cosine)


def cos(b: Builder, x: Val) -> Val:
    """cos(x), float32 and float64."""
    sine, cosine, n = _kernels(b, x)
    return _quadrant(b, n + 1, sine, cosine)


def tan(b: Builder, x: Val) -> Val:
    """tan(x), float32 and float64: tan(r) or -1/tan(r), with tan(r) in two parts."""
    if x.kind == "f32" and b.has_fma:
        r, excess, n = _reduce_single(b, x)
        rest = -excess
    else:
        r, rest, n = _reduce(b, x)
    s = r * r
    p = b.horner(s, table.TAN_F32 if x.kind == "f32" else table.TAN_F64)
    tail = b.fma(r * s, p, b.fma(rest, s, rest))
    high, low = fast_two_sum(r, tail)
    inverse = -1.0 / high
    product, error = two_product(b, inverse, high)
    residual = (1.0 + product) + b.fma(inverse, low, error)
    # inverse is infinite only for r = 0, where n is even; its NaN is selected away.
    inverse = b.fma(inverse, residual, inverse)
    result = b.select((n & 1).ne(0), inverse, high)
    return b.select(x.eq(0.0), x, result)
