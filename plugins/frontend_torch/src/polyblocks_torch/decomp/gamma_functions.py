"""The gamma function and its relatives: see :mod:`polyblocks_torch.decomp.special`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
from torch import Tensor

from polyblocks_torch.decomp.numbers import number_like
from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.decomp.special import polynomial, special

aten = torch.ops.aten

#: B(2k) / (2k (2k - 1)): Stirling's series of log(gamma), lowest order first.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)

#: B(2k) / (2k): the series of digamma.
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)

#: Of sin(pi x) / x in the square of x, which is at most 0.5.
_SINE = tuple((-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(12))

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


def _series_and_factor(y: Tensor) -> tuple[Tensor, Tensor]:
    """Of float64 numbers of at least 0.5: gamma is the first's exponential over the second."""
    # Eight factors push the argument to where Stirling's series converges.
    product = y
    for k in range(1, 8):
        product = product * (y + k)
    small = y < 8
    z = torch.where(small, y + 8, y)
    w = 1 / z
    series = w * polynomial(w * w, _STIRLING[::-1])
    result = (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + series
    return result, torch.where(small, product, 1.0)


def log_gamma(y: Tensor) -> Tensor:
    """The logarithm of the gamma function of float64 numbers of at least 0.5."""
    series, factor = _series_and_factor(y)
    return series - factor.log()


@special(aten.lgamma.default)
@_in_double
def lgamma(x: Tensor) -> Tensor:
    reflected = x < 0.5
    y = torch.where(reflected, 1 - x, x)
    finite = y < 1e300
    series, factor = _series_and_factor(torch.where(finite, y, 1.0))
    # Gamma(x) gamma(1 - x) = pi / sin(pi x).
    fraction = (x - x.round()).abs()
    sine = fraction * polynomial(fraction * fraction, _SINE[::-1])
    pole = reflected & (fraction == 0)
    # One logarithm for the factors of both.
    factor = torch.where(reflected, torch.where(pole, 1.0, sine) / factor, factor)
    result = torch.where(reflected, math.log(math.pi) - series, series) - factor.log()
    return torch.where(x.isnan(), x, torch.where(pole | ~finite | x.isinf(), torch.inf, result))


@special(aten.digamma.default)
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
    result = total + z.log() - 0.5 / z - w * polynomial(w, _DIGAMMA[::-1])
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
    slope = math.pi ** (n + 1) * polynomial(cotangent, _cotangent_derivative(n))
    mirror = -sign * result - slope
    result = torch.where(reflected, mirror, result)
    if n > 1:
        # As eager's series for zeta does it.
        result = torch.where(pole, torch.inf if n % 2 else -torch.inf, result)
        result = torch.where(y == torch.inf, torch.nan, result)
    else:
        result = torch.where(pole, torch.where(y.isinf(), torch.nan, torch.inf), result)
    return torch.where(y.isnan(), torch.nan, result).to(x.dtype)


# Hurwitz's zeta function of two tensors

#: Terms that are summed before the Euler-Maclaurin series.
_SUMMED = 10


@decomposition(aten.special_zeta.default)
def special_zeta(s: Tensor, q: Tensor) -> Tensor:
    """Hurwitz's zeta function, the sum of ``(q + k) ** -s`` over k >= 0.

    Cephes' method: terms are summed, and the Euler-Maclaurin series is the rest. For a negative
    ``q`` with the fraction ``f`` the sum over all integers, ``zeta(s, f) + (-1)^s zeta(s, 1 - f)``,
    has the terms below it, ``(-1)^s zeta(s, 1 - q)``, too many.
    """
    dtype = torch.result_type(s, q)
    if dtype.is_complex:
        return NotImplemented
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    s, q = torch.broadcast_tensors(s.to(torch.float64), q.to(torch.float64))
    below = q < 0
    pole = (q <= 0) & (q == q.floor())
    defined = (s > 1) & (~below | (s == s.floor())) & ~pole & ~q.isnan()
    order = torch.where(defined, s, 2.0)
    fraction = q - q.floor()
    ahead = torch.where(defined, torch.where(below, fraction, q), 1.0)
    parity = torch.where(order == 2 * (order / 2).floor(), 1.0, -1.0)
    sign = torch.where(below & defined, parity, 0.0)
    # Not one minus the fraction, which is rounded.
    mirrored = torch.where(below & defined, q.floor() + 1 - q, 1.0)
    beyond = torch.where(below & defined, 1 - q, 1.0)
    places = [x.unsqueeze(-1) for x in (ahead, mirrored, beyond)]
    number = torch.arange(3, device=q.device)
    first, second = number == 0, number == 1
    place = torch.where(first, places[0], torch.where(second, places[1], places[2]))
    sign = sign.unsqueeze(-1)
    factor = torch.where(first, 1.0, torch.where(second, sign, -sign))
    zetas = _zeta_of_tensors(order.unsqueeze(-1), place, exactly=dtype is torch.float64)
    result = torch.where(factor == 0, 0.0, factor * zetas).sum(-1)
    # As eager's series has them.
    endless = (q == torch.inf) | ((s == torch.inf) & (q > 1))
    result = torch.where(defined & ~endless, result, torch.nan)
    result = torch.where((s == 1) | (~(s < 1) & pole), torch.inf, result)
    return result.to(dtype)


def _zeta_of_tensors(s: Tensor, q: Tensor, *, exactly: bool) -> Tensor:
    """As :func:`_zeta`; an order above 1, which needs not be whole.

    Args:
        exactly: whether more digits are asked for than a float32 holds. Exponential functions of
            logarithms lose as many as the exponent has.
    """

    def power(base: Tensor, exponent: Tensor) -> Tensor:
        if exactly:
            return base**exponent
        return torch.where(base == 1, 1.0, (base.log() * exponent).exp())

    number = torch.arange(_SUMMED, dtype=q.dtype, device=q.device)
    total = power(q.unsqueeze(-1) + number, -s.unsqueeze(-1)).sum(-1)
    a = q + (_SUMMED - 1)
    b = power(a, -s)
    rest = b * a / (s - 1) - 0.5 * b
    inverse = 1 / a
    term = s * b * inverse
    for k, divisor in enumerate(_ZETA):
        rest = rest + term * (1 / divisor)
        term = term * ((s + (2 * k + 1)) * inverse) * ((s + (2 * k + 2)) * inverse)
    # The terms could be infinity times zero.
    return torch.where(b == 0, total, total + rest)


@decomposition(aten.special_zeta.self_scalar)
def special_zeta_of_order(s: float, q: Tensor) -> Tensor:
    return torch.special.zeta(number_like(s, q), q)


@decomposition(aten.special_zeta.other_scalar)
def special_zeta_at(s: Tensor, q: float) -> Tensor:
    return torch.special.zeta(s, number_like(q, s))
