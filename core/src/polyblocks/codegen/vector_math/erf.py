"""erf and erfc.

erf: odd polynomial near 0, beyond it 1 - q(x)^4 with a polynomial q for the fourth root of erfc:
two squarings instead of an exponential. float32 by 16 pieces where numbers are looked up.
erfc: exp(-t^2) * g(q) / (1 + 2t) with the scaled function g = exp(t^2) erfc(t) (1 + 2t), which is
smooth on the whole half line in q = (t - c) / (t + c) (M. M. Shepherd, J. G. Laframboise, Math.
Comp. 36 (1981)); float32 computes it in float64, float64 carries the rounding error of t^2 and
takes 1 - erf(x) near 0. Where numbers are looked up, float32 takes exp(t^2) erfc(t) by 16 pieces,
and carries the rounding error as well.
"""

from __future__ import annotations

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.vector_math import coefficients as table
from polyblocks.codegen.vector_math.double_double import two_product, two_sum
from polyblocks.codegen.vector_math.exp_log import exp_product, exp_sum
from polyblocks.codegen.vector_math.formats import LOG2_E
from polyblocks.codegen.vector_math.pieces import ERF, ERFCX, by_pieces, odd_by_pieces
from polyblocks.codegen.vector_math.power import exp2_wide

#: Where erf changes over from its odd polynomial.
_ERF_SMALL = {"f32": 1.05, "f64": 0.95}


def erf(b: Builder, x: Val) -> Val:
    """Error function, float32 and float64."""
    if x.kind == "f32":
        by_pieces = odd_by_pieces(b, x, ERF, table.ERF_PIECES_F32)
        if by_pieces is not None:
            return by_pieces
    magnitude = abs(x)
    s = x * x
    small = b.fma(x, b.horner(s, table.ERF_F32 if x.kind == "f32" else table.ERF_F64), x)
    # From where the polynomials end on, erf rounds to 1.
    if x.kind == "f32":
        root = b.horner(b.clamp(magnitude, None, 4.0), table.ERFC_ROOT_F32)
    else:
        root = b.horner(b.clamp(magnitude, None, 5.95) - 1.5, table.ERFC_ROOT_F64)
    square = root * root
    large = b.fnma(square, square, 1.0)
    return b.select(magnitude < _ERF_SMALL[x.kind], small, large.copysign(x))


def erfc(b: Builder, x: Val) -> Val:
    """Complementary error function, float32 and float64; gradual underflow included."""
    if x.kind == "f32":
        by_table = _erfc_by_table(b, abs(x))
        if by_table is not None:
            return b.select(x < 0.0, 2.0 - by_table, by_table)
        tail = _erfc_wide(b, abs(x).to("f64"))
        return b.select(x < 0.0, 2.0 - tail, tail).to("f32")
    tail = _erfc_f64(b, abs(x))
    # Near 0 the variable q is near -1, where rounding errors of the polynomial grow.
    near = 1.0 - b.fma(x, b.horner(x * x, table.ERF_F64), x)
    return b.select(abs(x) < 0.45, near, b.select(x < 0.0, 2.0 - tail, tail))


def _scaled(b: Builder, t: Val, centre: float, polynomial: tuple[float, ...]) -> Val:
    """exp(t^2) erfc(t) (1 + 2t)."""
    return b.horner((t - centre) / (t + centre), polynomial)


def _erfc_by_table(b: Builder, t: Val) -> Val | None:
    scaled = by_pieces(b, t, ERFCX, table.ERFCX_PIECES_F32)
    if scaled is None:
        return None
    # erfc(10.1) is below half the smallest float32.
    square, error = two_product(b, *[b.clamp(t, None, ERFCX.limit)] * 2)
    return exp_product(b, -square, -error, scaled)


def _erfc_wide(b: Builder, t: Val) -> Val:
    # erfc(10.1) is far below the smallest float32.
    t = b.clamp(t, None, 11.0)
    scaled = _scaled(b, t, 2.0, table.ERFCX_WIDE) / b.fma(t, 2.0, 1.0)
    return exp2_wide(b, t * t * -LOG2_E) * scaled


def _erfc_f64(b: Builder, t: Val) -> Val:
    # erfc(27.3) is below half the smallest float64.
    t = b.clamp(t, None, 27.5)
    square, error = two_product(b, t, t)
    # The quotient by 1 + 2t in two parts; the rounding errors of the sum and of the quotient
    # would be half of the total otherwise.
    scaled = _scaled(b, t, 4.0, table.ERFCX_F64)
    divisor, divisor_low = two_sum(b.const("f64", 1.0), t * 2.0)
    inverse = 1.0 / divisor
    high = scaled * inverse
    product, product_error = two_product(b, high, divisor)
    rest = ((scaled - product) - product_error) - high * divisor_low
    return exp_sum(b, -square, -error, (high, rest * inverse))
