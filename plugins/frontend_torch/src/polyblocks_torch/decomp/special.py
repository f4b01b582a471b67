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
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
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


def _special(*ops: torch._ops.OpOverload) -> Callable[..., Any]:
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


@_special(aten.special_i0e.default)
def i0e(x: Tensor) -> Tensor:
    return _i0e(x)


@_special(aten.i0.default, aten.special_modified_bessel_i0.default)
def i0(x: Tensor) -> Tensor:
    return _i0e(x) * x.abs().exp()


@_special(aten.special_i1e.default)
def i1e(x: Tensor) -> Tensor:
    return _i1e(x)


@_special(aten.special_i1.default, aten.special_modified_bessel_i1.default)
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


@_special(aten.special_modified_bessel_k0.default)
def k0(x: Tensor) -> Tensor:
    return _bessel_k(x, 0, scaled=False)


@_special(aten.special_modified_bessel_k1.default)
def k1(x: Tensor) -> Tensor:
    return _bessel_k(x, 1, scaled=False)


@_special(aten.special_scaled_modified_bessel_k0.default)
def scaled_k0(x: Tensor) -> Tensor:
    return _bessel_k(x, 0, scaled=True)


@_special(aten.special_scaled_modified_bessel_k1.default)
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
    p = _polynomial(z, pp) / _polynomial(z, pq)
    q = w * (_polynomial(z, qp) / _polynomial(z, qq))
    scale = _SQRT_2_OVER_PI / x.sqrt()
    return p * scale, q * scale


def _bessel_j(x: Tensor, order: int) -> Tensor:
    """For x >= 0."""
    z = x.clamp(max=5.0).square()
    if order:
        ratio = _polynomial(z, c.J1_RP) / _polynomial(z, c.J1_RQ)
        small = ratio * x * (z - 1.46819706421238932572e01) * (z - 4.92184563216946036703e01)
    else:
        ratio = _polynomial(z, c.J0_RP) / _polynomial(z, c.J0_RQ)
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
        ratio = near * (_polynomial(z, c.Y1_YP) / _polynomial(z, c.Y1_YQ))
        small = ratio + (2 / math.pi) * (_bessel_j(near, 1) * near.log() - 1 / near)
    else:
        ratio = _polynomial(z, c.Y0_YP) / _polynomial(z, c.Y0_YQ)
        small = ratio + (2 / math.pi) * near.log() * _bessel_j(near, 0)
    far = x.clamp(min=5.0)
    p, q = _modulus(far, order)
    large = p * (far - _PHASE[order]).sin() + q * (far - _PHASE[order]).cos()
    result = torch.where(x <= 5, small, large)
    result = torch.where(x == 0, -torch.inf, result)
    return torch.where((x < 0) | x.isnan(), torch.nan, result)


@_special(aten.special_bessel_j0.default)
def j0(x: Tensor) -> Tensor:
    return _bessel_j(x.abs(), 0)


@_special(aten.special_bessel_j1.default)
def j1(x: Tensor) -> Tensor:
    result = _bessel_j(x.abs(), 1)
    return torch.where(x == 0, x, torch.where(x < 0, -result, result))


@_special(aten.special_bessel_y0.default)
def y0(x: Tensor) -> Tensor:
    return _bessel_y(x, 0)


@_special(aten.special_bessel_y1.default)
def y1(x: Tensor) -> Tensor:
    return _bessel_y(x, 1)


@_special(aten.special_spherical_bessel_j0.default)
def spherical_j0(x: Tensor) -> Tensor:
    z = x * x
    taylor = [(-1) ** k / math.factorial(2 * k + 1) for k in range(6, -1, -1)]
    safe = torch.where(x == 0, 1.0, x)
    result = torch.where(x.abs() < 0.5, _polynomial(z, taylor), x.sin() / safe)
    return torch.where(x.isinf(), 0.0, result)


@_special(aten.special_airy_ai.default)
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
    u = 1 + zz * _polynomial(zz, c.AIRY_AFN) / _polynomial(zz, c.AIRY_AFD)
    v = z * _polynomial(zz, c.AIRY_AGN) / _polynomial(zz, c.AIRY_AGD)
    t = angle + 0.25 * math.pi
    negative = (t.sin() * u - t.cos() * v) / (math.sqrt(math.pi) * root.sqrt())

    high = x.clamp(min=2.09)
    root = high.sqrt()
    zeta = 2.0 * high * root / 3.0
    z = 1 / zeta
    ratio = _polynomial(z, c.AIRY_AN) / _polynomial(z, c.AIRY_AD)
    positive = ratio / (2.0 * math.sqrt(math.pi) * root.sqrt() * zeta.exp())

    result = torch.where(x < -2.09, negative, torch.where(x > 2.09, positive, center))
    result = torch.where(x > 103.892, 0.0, result)
    return torch.where(x.isinf() | x.isnan(), torch.nan, result)


# --- error function and its relatives -----------------------------------------------------------


@_special(aten.erfinv.default)
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
    near = _polynomial(w - 2.5, c.ERFINV_NEAR)
    far = _polynomial(w.clamp(min=c.ERFINV_EDGE).sqrt() - 3, c.ERFINV_FAR)
    return y * torch.where(w < c.ERFINV_EDGE, near, far)


def _erfinv_double(y: Tensor) -> Tensor:
    # Rational approximations by G. L. Pavlis (1996), then two steps of Newton's method.
    size = y.abs()
    inner = size.clamp(max=0.7)
    z = inner * inner
    central = inner * _polynomial(z, (-0.140543331, 0.914624893, -1.645349621, 0.886226899))
    central = central / _polynomial(z, (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0))
    outer = torch.where((size > 0.7) & (size < 1), size, 0.7)
    z = (-((1 - outer) / 2).log()).sqrt()
    tail = _polynomial(z, (1.641345311, 3.429567803, -1.624906493, -1.970840454))
    tail = tail / _polynomial(z, (1.637067800, 3.543889200, 1.0))
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


@_special(aten.special_erfcx.default)
def erfcx(x: Tensor) -> Tensor:
    return _erfcx(x)


@decomposition(aten.erfc.default)
def erfc(x: Tensor) -> Tensor:
    return NotImplemented if x.is_floating_point() else torch.erfc(x.to(torch.get_default_dtype()))


@_special(aten.special_log_ndtr.default)
def log_ndtr(x: Tensor) -> Tensor:
    t = x * math.sqrt(0.5)
    low = torch.where(x < -1, t, -1.0)
    tail = (_erfcx(-low) / 2).log() - low * low
    return torch.where(x < -1, tail, torch.log1p(-t.erfc() / 2))


@_special(aten.special_ndtri.default)
def ndtri(p: Tensor) -> Tensor:
    edge = math.exp(-2)
    upper = p > 1 - edge
    y = torch.where(upper, 1 - p, p)
    w = torch.where(y > edge, y - 0.5, 0.0)
    z = w * w
    ratio = _polynomial(z, c.NDTRI_P0) / _polynomial(z, c.NDTRI_Q0)
    central = (w + w * (z * ratio)) * math.sqrt(2 * math.pi)
    inside = (y > 0) & (y <= edge)
    x = (-2 * torch.where(inside, y, edge).log()).sqrt()
    first = x - x.log() / x
    z = 1 / x
    near = z * _polynomial(z, c.NDTRI_P1) / _polynomial(z, c.NDTRI_Q1)
    far = z * _polynomial(z, c.NDTRI_P2) / _polynomial(z, c.NDTRI_Q2)
    tail = first - torch.where(x < 8, near, far)
    tail = torch.where(upper, tail, -tail)
    result = torch.where(y > edge, central, tail)
    result = torch.where(p == 0, -torch.inf, torch.where(p == 1, torch.inf, result))
    return torch.where((p < 0) | (p > 1) | p.isnan(), torch.nan, result)


# --- gamma function and its relatives -----------------------------------------------------------

#: B(2k) / (2k (2k - 1)): Stirling's series of log(gamma), lowest order first.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)

#: B(2k) / (2k): the series of digamma.
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)

#: (2k)! / B(2k): the Euler-Maclaurin series of Hurwitz's zeta function.
_ZETA = (
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1.8924375803183791606e9,
    7.47242496e10,
    -2.950130727918164224e12,
    1.1646782814350067249e14,
    -4.5979787224074726105e15,
    1.8152105401943546773e17,
    -7.1661652561756670113e18,
)


def _in_double(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Compute in float64: near its zeros the function is a difference of large numbers."""

    @functools.wraps(function)
    def wrapped(x: Tensor) -> Tensor:
        return function(x.to(torch.float64)).to(x.dtype)

    return wrapped


@_special(aten.lgamma.default)
@_in_double
def lgamma(x: Tensor) -> Tensor:
    reflected = x < 0.5
    y = torch.where(reflected, 1 - x, x)
    finite = y < 1e300
    y = torch.where(finite, y, 1.0)
    # Eight factors push the argument to where Stirling's series converges.
    product = y
    for k in range(1, 8):
        product = product * (y + k)
    small = y < 8
    z = torch.where(small, y + 8, y)
    w = 1 / z
    series = w * _polynomial(w * w, _STIRLING[::-1])
    result = (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + series
    result = result - torch.where(small, torch.where(small, product, 1.0).log(), 0.0)
    # Gamma(x) gamma(1 - x) = pi / sin(pi x).
    fraction = (x - x.round()).abs()
    sine = (math.pi * fraction).sin()
    pole = reflected & (fraction == 0)
    mirror = math.log(math.pi) - torch.where(pole, 1.0, sine).log() - result
    result = torch.where(reflected, mirror, result)
    return torch.where(x.isnan(), x, torch.where(pole | ~finite | x.isinf(), torch.inf, result))


@_special(aten.digamma.default)
@_in_double
def digamma(x: Tensor) -> Tensor:
    negative = x < 0
    y = torch.where(negative, 1 - x, x)
    y = torch.where(y > 0, y, 1.0)
    total = torch.zeros_like(x)
    z = y
    for _ in range(10):
        below = z < 10
        total = total - torch.where(below, 1 / z, 0.0)
        z = torch.where(below, z + 1, z)
    w = 1 / (z * z)
    result = total + z.log() - 0.5 / z - w * _polynomial(w, _DIGAMMA[::-1])
    fraction = x - x.trunc()
    pole = negative & (fraction == 0)
    tangent = (math.pi * torch.where(pole, 0.25, fraction)).tan()
    tangent = torch.where(negative, tangent, 1.0)
    result = torch.where(negative, result - math.pi / tangent, result)
    result = torch.where(pole, torch.nan, result)
    at_zero = torch.where(torch.signbit(x), torch.inf, -torch.inf)
    return torch.where(x == 0, at_zero, torch.where(x.isnan(), x, result))


def _whole_power(x: Tensor, exponent: int) -> Tensor:
    """A power with an exponent of at least 1, by squaring."""
    result = None
    while True:
        if exponent & 1:
            result = x if result is None else result * x
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        x = x * x


def _zeta(s: int, q: Tensor) -> Tensor:
    """Hurwitz's zeta function for s > 1 and q > 0 (Cephes)."""
    a = q
    b = total = _whole_power(1 / q, s)
    for _ in range(9):
        a = a + 1
        b = _whole_power(1 / a, s)
        total = total + b
    total = total + b * a / (s - 1) - 0.5 * b
    inverse = 1 / a
    square = inverse * inverse
    factor, power = 1.0, b * inverse
    for k, divisor in enumerate(_ZETA):
        factor *= s + 2 * k
        total = total + factor / divisor * power
        power = power * square
        factor *= s + 2 * k + 1
    return total


def _cotangent_derivative(n: int) -> list[float]:
    """The n-th derivative of cot as a polynomial in cot, highest power first."""
    powers = [0.0, 1.0]
    for _ in range(n):
        slope = [k * powers[k] for k in range(1, len(powers))]
        turned = [-v for v in slope] + [0.0, 0.0]
        for k, value in enumerate(slope):
            turned[k + 2] -= value
        powers = turned
    return powers[::-1]


@decomposition(aten.polygamma.default)
def polygamma(n: int, x: Tensor) -> Tensor:
    if x.is_complex():
        return NotImplemented
    if not x.dtype.is_floating_point:
        x = x.to(torch.get_default_dtype())
    if n == 0:
        return torch.digamma(x)
    y = x.to(torch.float64)
    # psi_n(1 - x) + (-1)^(n+1) psi_n(x) = (-1)^n pi^(n+1) cot^(n)(pi x)
    sign = 1.0 if n % 2 else -1.0
    reflected = y < 0.5
    argument = torch.where(reflected, 1 - y, y)
    finite = argument < 1e300
    result = sign * math.factorial(n) * _zeta(n + 1, torch.where(finite, argument, 1.0))
    result = torch.where(finite, result, 0.0)
    fraction = y - y.round()
    pole = reflected & ((fraction == 0) | y.isinf())
    angle = math.pi * torch.where(pole | ~reflected, 0.25, fraction)
    cotangent = angle.cos() / angle.sin()
    slope = math.pi ** (n + 1) * _polynomial(cotangent, _cotangent_derivative(n))
    mirror = -sign * result - slope
    result = torch.where(reflected, mirror, result)
    if n > 1:
        # As eager's series for zeta does it.
        result = torch.where(pole, torch.inf if n % 2 else -torch.inf, result)
        result = torch.where(y == torch.inf, torch.nan, result)
    else:
        result = torch.where(pole, torch.where(y.isinf(), torch.nan, torch.inf), result)
    return torch.where(y.isnan(), torch.nan, result).to(x.dtype)
