"""Special functions: polynomial and rational approximations, evaluated on every element.

Both sides of a case distinction are evaluated, so arguments of the side that is not taken are
replaced by harmless ones wherever they could trap or overflow to NaN inside a ``where``.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from polyblocks_torch.decomp import coefficients as c
from polyblocks_torch.decomp.numbers import number_like
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Horner's scheme, highest power first."""
    result = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


#: Beside a float32 of at least 1/16, which is what all series here are.
_UNSEEN = 2.0**-30


def _chebyshev(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Clenshaw's recurrence for ``c0 / 2 + sum(ci Ti(x / 2))``, highest order first.

    Terms are at most as large as their coefficients: of float32 those are left out that do not
    count together.
    """
    if x.dtype is torch.float32:
        sums = itertools.accumulate(map(abs, coefficients))
        coefficients = coefficients[sum(total < _UNSEEN for total in sums) :]
    last, current = torch.zeros_like(x), torch.full_like(x, coefficients[0])
    before = last
    for coefficient in coefficients[1:]:
        before, last = last, current
        current = x * last - before + coefficient
    return 0.5 * (current - before)


def special(*ops: torch._ops.OpOverload) -> Callable[..., Any]:
    """Register a function of one floating-point tensor; other dtypes are converted as eager does.

    Half-precision numbers are computed in float32, integers in the default dtype.
    """

    def register(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        @functools.wraps(function)
        def convert(x: Tensor) -> Tensor:
            if x.is_complex():
                return NotImplemented
            if x.dtype in (torch.float16, torch.bfloat16):
                return function(x.to(torch.float32)).to(x.dtype)
            if not x.dtype.is_floating_point:
                x = x.to(torch.get_default_dtype())
            return function(x)

        decomposition(*ops)(convert)
        return convert

    return register


# --- modified Bessel functions -----------------------------------------------------------------


def _i0e(x: Tensor) -> Tensor:
    x = x.abs()
    small = _chebyshev(x.clamp(max=8.0) / 2 - 2, c.I0E_A)
    safe = x.clamp(min=8.0)
    large = _chebyshev(32 / safe - 2, c.I0E_B) / safe.sqrt()
    return torch.where(x <= 8, small, large)


def _i1e(x: Tensor) -> Tensor:
    magnitude = x.abs()
    near = magnitude.clamp(max=8.0)
    small = _chebyshev(near / 2 - 2, c.I1E_A) * near
    safe = magnitude.clamp(min=8.0)
    large = _chebyshev(32 / safe - 2, c.I1E_B) / safe.sqrt()
    result = torch.where(magnitude <= 8, small, large)
    return torch.where(x < 0, -result, result)


@special(aten.special_i0e.default)
def i0e(x: Tensor) -> Tensor:
    return _i0e(x)


@special(aten.i0.default, aten.special_modified_bessel_i0.default)
def i0(x: Tensor) -> Tensor:
    return _i0e(x) * x.abs().exp()


@special(aten.special_i1e.default)
def i1e(x: Tensor) -> Tensor:
    return _i1e(x)


@special(aten.special_i1.default, aten.special_modified_bessel_i1.default)
def i1(x: Tensor) -> Tensor:
    return _i1e(x) * x.abs().exp()


def _bessel_k(x: Tensor, order: int, scaled: bool) -> Tensor:
    near = x.clamp(max=2.0)
    near = torch.where(near > 0, near, 1.0)
    series = _chebyshev(near * near - 2, c.K1_A if order else c.K0_A)
    if order:
        small = (0.5 * near).log() * _i1e(near) * near.exp() + series / near
    else:
        small = series - (0.5 * near).log() * _i0e(near) * near.exp()
    far = x.clamp(min=2.0)
    large = _chebyshev(8 / far - 2, c.K1_B if order else c.K0_B) / far.sqrt()
    if scaled:
        small = small * near.exp()
    else:
        large = large * (-far).exp()
    result = torch.where(x <= 2, small, large)
    result = torch.where(x == 0, torch.inf, result)
    return torch.where((x < 0) | x.isnan(), torch.nan, result)


@special(aten.special_modified_bessel_k0.default)
def k0(x: Tensor) -> Tensor:
    return _bessel_k(x, 0, scaled=False)


@special(aten.special_modified_bessel_k1.default)
def k1(x: Tensor) -> Tensor:
    return _bessel_k(x, 1, scaled=False)


@special(aten.special_scaled_modified_bessel_k0.default)
def scaled_k0(x: Tensor) -> Tensor:
    return _bessel_k(x, 0, scaled=True)


@special(aten.special_scaled_modified_bessel_k1.default)
def scaled_k1(x: Tensor) -> Tensor:
    return _bessel_k(x, 1, scaled=True)


# --- Bessel functions --------------------------------------------------------------------------

_PHASE = (math.pi / 4, 3 * math.pi / 4)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


def _modulus(x: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """Factors of cosine and sine in Hankel's expansion, for x >= 5."""
    pp, pq, qp, qq = (
        (c.J1_PP, c.J1_PQ, c.J1_QP, c.J1_QQ) if order else (c.J0_PP, c.J0_PQ, c.J0_QP, c.J0_QQ)
    )
    w = 5 / x
    z = w * w
    p = polynomial(z, pp) / polynomial(z, pq)
    q = w * (polynomial(z, qp) / polynomial(z, qq))
    scale = _SQRT_2_OVER_PI / x.sqrt()
    return p * scale, q * scale


def _bessel_j(x: Tensor, order: int) -> Tensor:
    """For x >= 0."""
    z = x.clamp(max=5.0).square()
    if order:
        ratio = polynomial(z, c.J1_RP) / polynomial(z, c.J1_RQ)
        small = ratio * x * (z - 1.46819706421238932572e01) * (z - 4.92184563216946036703e01)
    else:
        ratio = polynomial(z, c.J0_RP) / polynomial(z, c.J0_RQ)
        small = (z - 5.78318596294678452118e00) * (z - 3.04712623436620863991e01) * ratio
        small = torch.where(x < 1e-5, 1 - z / 4, small)
    far = x.clamp(min=5.0)
    p, q = _modulus(far, order)
    large = p * (far - _PHASE[order]).cos() - q * (far - _PHASE[order]).sin()
    return torch.where(x <= 5, small, large)


def _bessel_y(x: Tensor, order: int) -> Tensor:
    near = x.clamp(max=5.0)
    near = torch.where(near > 0, near, 1.0)
    z = near * near
    if order:
        ratio = near * (polynomial(z, c.Y1_YP) / polynomial(z, c.Y1_YQ))
        small = ratio + (2 / math.pi) * (_bessel_j(near, 1) * near.log() - 1 / near)
    else:
        ratio = polynomial(z, c.Y0_YP) / polynomial(z, c.Y0_YQ)
        small = ratio + (2 / math.pi) * near.log() * _bessel_j(near, 0)
    far = x.clamp(min=5.0)
    p, q = _modulus(far, order)
    large = p * (far - _PHASE[order]).sin() + q * (far - _PHASE[order]).cos()
    result = torch.where(x <= 5, small, large)
    result = torch.where(x == 0, -torch.inf, result)
    return torch.where((x < 0) | x.isnan(), torch.nan, result)


@special(aten.special_bessel_j0.default)
def j0(x: Tensor) -> Tensor:
    return _bessel_j(x.abs(), 0)


@special(aten.special_bessel_j1.default)
def j1(x: Tensor) -> Tensor:
    result = _bessel_j(x.abs(), 1)
    return torch.where(x == 0, x, torch.where(x < 0, -result, result))


@special(aten.special_bessel_y0.default)
def y0(x: Tensor) -> Tensor:
    return _bessel_y(x, 0)


@special(aten.special_bessel_y1.default)
def y1(x: Tensor) -> Tensor:
    return _bessel_y(x, 1)


@special(aten.special_spherical_bessel_j0.default)
def spherical_j0(x: Tensor) -> Tensor:
    z = x * x
    taylor = [(-1) ** k / math.factorial(2 * k + 1) for k in range(6, -1, -1)]
    safe = torch.where(x == 0, 1.0, x)
    result = torch.where(x.abs() < 0.5, polynomial(z, taylor), x.sin() / safe)
    return torch.where(x.isinf(), 0.0, result)


@special(aten.special_airy_ai.default)
def airy_ai(x: Tensor) -> Tensor:
    # Maclaurin series; all terms that count for |x| <= 2.09 in float64.
    middle = x.clamp(-2.09, 2.09)
    cube = middle * middle * middle
    f, g = torch.ones_like(x), middle
    m, n = f, g
    for k in range(1, 42, 3):
        m = m * cube / ((k + 1) * (k + 2))
        n = n * cube / ((k + 2) * (k + 3))
        f, g = f + m, g + n
    center = 0.355028053887817239260 * f - 0.258819403792806798405 * g

    low = x.clamp(max=-2.09)
    root = (-low).sqrt()
    angle = -2.0 * low * root / 3.0
    z = 1 / angle
    zz = z * z
    u = 1 + zz * polynomial(zz, c.AIRY_AFN) / polynomial(zz, c.AIRY_AFD)
    v = z * polynomial(zz, c.AIRY_AGN) / polynomial(zz, c.AIRY_AGD)
    t = angle + 0.25 * math.pi
    negative = (t.sin() * u - t.cos() * v) / (math.sqrt(math.pi) * root.sqrt())

    high = x.clamp(min=2.09)
    root = high.sqrt()
    zeta = 2.0 * high * root / 3.0
    z = 1 / zeta
    ratio = polynomial(z, c.AIRY_AN) / polynomial(z, c.AIRY_AD)
    positive = ratio / (2.0 * math.sqrt(math.pi) * root.sqrt() * zeta.exp())

    result = torch.where(x < -2.09, negative, torch.where(x > 2.09, positive, center))
    result = torch.where(x > 103.892, 0.0, result)
    return torch.where(x.isinf() | x.isnan(), torch.nan, result)


# --- error function and its relatives -----------------------------------------------------------


@special(aten.erfinv.default)
def erfinv(y: Tensor) -> Tensor:
    x = _erfinv_single(y) if y.dtype is torch.float32 else _erfinv_double(y)
    # Near 1 the logarithms below end in infinities that their polynomials may turn into NaN.
    limit = torch.where(y < 0, -torch.inf, torch.inf)
    x = torch.where(y.abs() == 1, limit, x)
    return torch.where((y.abs() > 1) | y.isnan(), torch.nan, x)


def _erfinv_single(y: Tensor) -> Tensor:
    """Of a float32 whose magnitude is below 1, to 2.5 units in the last place.

    erfinv(y) / y is smooth in w = -log(1 - y^2), and for large ones in their root (M. Giles,
    Approximating the erfinv function, GPU Computing Gems 2 (2011)).
    """
    w = -((1 - y) * (1 + y)).log()
    near = polynomial(w - 2.5, c.ERFINV_NEAR)
    far = polynomial(w.clamp(min=c.ERFINV_EDGE).sqrt() - 3, c.ERFINV_FAR)
    return y * torch.where(w < c.ERFINV_EDGE, near, far)


def _erfinv_double(y: Tensor) -> Tensor:
    # Rational approximations by G. L. Pavlis (1996), then two steps of Newton's method.
    size = y.abs()
    inner = size.clamp(max=0.7)
    z = inner * inner
    central = inner * polynomial(z, (-0.140543331, 0.914624893, -1.645349621, 0.886226899))
    central = central / polynomial(z, (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0))
    outer = torch.where((size > 0.7) & (size < 1), size, 0.7)
    z = (-((1 - outer) / 2).log()).sqrt()
    tail = polynomial(z, (1.641345311, 3.429567803, -1.624906493, -1.970840454))
    tail = tail / polynomial(z, (1.637067800, 3.543889200, 1.0))
    x = torch.where(size <= 0.7, central, tail)
    for _ in range(2):
        # Near 1 all digits of erf(x) - y cancel, and none of this difference.
        beyond = torch.where(size <= 0.7, x.erf() - inner, (1 - outer) - x.erfc())
        x = x - beyond / ((2 / math.sqrt(math.pi)) * (-x * x).exp())
    return torch.copysign(x, y)


def _erfcx(x: Tensor) -> Tensor:
    far = x.abs()
    t = (far - 3.75) / (far + 3.75)
    t = torch.where(far.isinf(), 1.0, t)
    scaled = _chebyshev(2 * t, c.ERFCX) / (1 + 2 * far)
    # For a negative argument: 2 exp(x^2) - erfcx(-x).
    return torch.where(x < 0, 2 * (x * x).exp() - scaled, scaled)


@special(aten.special_erfcx.default)
def erfcx(x: Tensor) -> Tensor:
    return _erfcx(x)


@decomposition(aten.erfc.default)
def erfc(x: Tensor) -> Tensor:
    return NotImplemented if x.is_floating_point() else torch.erfc(x.to(torch.get_default_dtype()))


@special(aten.special_log_ndtr.default)
def log_ndtr(x: Tensor) -> Tensor:
    t = x * math.sqrt(0.5)
    low = torch.where(x < -1, t, -1.0)
    tail = (_erfcx(-low) / 2).log() - low * low
    return torch.where(x < -1, tail, torch.log1p(-t.erfc() / 2))


@special(aten.special_ndtri.default)
def ndtri(p: Tensor) -> Tensor:
    edge = math.exp(-2)
    upper = p > 1 - edge
    y = torch.where(upper, 1 - p, p)
    w = torch.where(y > edge, y - 0.5, 0.0)
    z = w * w
    ratio = polynomial(z, c.NDTRI_P0) / polynomial(z, c.NDTRI_Q0)
    central = (w + w * (z * ratio)) * math.sqrt(2 * math.pi)
    inside = (y > 0) & (y <= edge)
    x = (-2 * torch.where(inside, y, edge).log()).sqrt()
    first = x - x.log() / x
    z = 1 / x
    near = z * polynomial(z, c.NDTRI_P1) / polynomial(z, c.NDTRI_Q1)
    far = z * polynomial(z, c.NDTRI_P2) / polynomial(z, c.NDTRI_Q2)
    tail = first - torch.where(x < 8, near, far)
    tail = torch.where(upper, tail, -tail)
    result = torch.where(y > edge, central, tail)
    result = torch.where(p == 0, -torch.inf, torch.where(p == 1, torch.inf, result))
    return torch.where((p < 0) | (p > 1) | p.isnan(), torch.nan, result)


@decomposition(aten.xlogy.Scalar_Self, aten.xlogy.Scalar_Other)
def xlogy_of_number(x: Tensor | float, y: Tensor | float) -> Tensor:
    return torch.xlogy(*_tensors(x, y))


@decomposition(aten.special_xlog1py.self_scalar, aten.special_xlog1py.other_scalar)
def xlog1py_of_number(x: Tensor | float, y: Tensor | float) -> Tensor:
    return torch.special.xlog1py(*_tensors(x, y))


def _tensors(x: Tensor | float, y: Tensor | float) -> tuple[Tensor, Tensor]:
    if isinstance(x, Tensor):
        return x, y if isinstance(y, Tensor) else number_like(y, x)
    assert isinstance(y, Tensor), "one of both is a tensor"
    return number_like(x, y), y
