"""The regularized incomplete gamma functions P (``igamma``) and Q (``igammac``), ``P + Q = 1``.

Everything is computed in float64. Each region of the plane has its method, the sums have as many
terms as the worst place of their region needs, and both sides of every case distinction are
evaluated (NIST Digital Library of Mathematical Functions, chapter 8):

- near ``x = a`` for large ``a``: Temme's uniform expansion (8.12.3 and 8.12.4);
- small ``x``: the alternating series (8.7.1), from which Q follows without a difference from 1;
- ``x <= a``: the series of positive terms (8.7.3 times a power of e);
- ``x > a``: the continued fraction (8.9.2), from its end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from polyblocks_torch.decomp.gamma_functions import log_gamma
from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.decomp.special import polynomial
from polyblocks_torch.decomp.temme_coefficients import C

aten = torch.ops.aten

#: Taylor series of log(gamma(1 + a)) at 0, lowest power first: -gamma, then zeta(k) / k with
#: alternating signs.
_LOG_GAMMA = (
    -0.5772156649015329,
    0.8224670334241132,
    -0.40068563438653143,
    0.27058080842778454,
    -0.20738555102867398,
    0.1695571769974082,
    -0.1440498967688461,
    0.12550966952474304,
    -0.11133426586956469,
    0.1000994575127818,
)
#: Below it that series is right in float64. The logarithm of the rounded 1 + a, from Stirling's
#: series, is off by 1e-15, which is much of a small one.
_TINY = 0.03


@dataclass(frozen=True)
class _Method:
    """Where each method is used, and how many terms it sums.

    Attributes:
        small: the alternating series is for ``x`` below it.
        large: Temme's expansion is for ``a`` above it,
        ratios: and ``x / a`` between these.
        alternating: terms of the alternating series.
        positive: terms of the series of positive terms.
        fraction: steps of the continued fraction.
        squares: terms of the series of log(1 + s) - s.
        temme: terms of each of the polynomials in eta.
    """

    small: float
    large: float
    ratios: tuple[float, float]
    alternating: int
    positive: int
    fraction: int
    squares: int
    temme: tuple[int, ...]


#: Relative errors are below 1e-8, which no float32 shows.
_SINGLE = _Method(3.0, 12.0, (0.45, 1.8), 21, 24, 12, 13, (13, 11, 10, 8, 6, 4))
#: Relative errors are below 1e-12 where the result is above 1e-100, and then grow with its
#: logarithm.
_DOUBLE = _Method(2.0, 20.0, (0.45, 2.3), 27, 44, 45, 21, tuple(map(len, C)))


@decomposition(aten.igamma.default)
def igamma(a: Tensor, x: Tensor) -> Tensor:
    return _regularized(a, x, upper=False)


@decomposition(aten.igammac.default)
def igammac(a: Tensor, x: Tensor) -> Tensor:
    return _regularized(a, x, upper=True)


def _regularized(a: Tensor, x: Tensor, *, upper: bool) -> Tensor:
    dtype = torch.result_type(a, x)
    if not dtype.is_floating_point:
        return NotImplemented
    method = _DOUBLE if dtype is torch.float64 else _SINGLE
    a, x = torch.broadcast_tensors(a.to(torch.float64), x.to(torch.float64))
    inside = (a > 0) & (x > 0) & (a < torch.inf) & (x < torch.inf)
    lower, rest = _both(torch.where(inside, a, 1.0), torch.where(inside, x, 1.0), method)
    result = rest if upper else lower
    # P is 0 or 1 at the borders; where two of them meet, and of NaN, as eager has it.
    none = (x == 0) | (a == torch.inf)
    full = (a == 0) | (x == torch.inf)
    corner = ((a == 0) & ~(x > 0)) | ((a == torch.inf) & (x == torch.inf))
    defined = (none | full) & ~corner & ~(a < 0) & ~(x < 0)
    border = torch.where(none == upper, 1.0, 0.0)
    result = torch.where(inside, result, torch.where(defined, border, torch.nan))
    return result.to(dtype)


def _both(a: Tensor, x: Tensor, method: _Method) -> tuple[Tensor, Tensor]:
    """P and Q for positive finite numbers."""
    low, high = method.ratios
    near = (a > method.large) & (x > low * a) & (x < high * a)
    small = x < method.small
    # x^a / gamma(1 + a)
    log_power = a * x.log() - torch.where(
        a < _TINY, a * polynomial(a, _LOG_GAMMA[::-1]), log_gamma(1 + a)
    )
    below = x <= a
    prefix = (log_power - x).exp()
    lower = prefix * _positive_series(a, torch.minimum(x, a), method.positive)
    rest = prefix * a / _fraction(a, torch.clamp(torch.maximum(x, a), min=method.small), method)
    lower, rest = torch.where(below, lower, 1 - rest), torch.where(below, 1 - lower, rest)

    exponent = torch.where(small, log_power, 0.0)
    part = exponent.exp() * a * _alternating_series(a, x.clamp(max=method.small), method)
    lower = torch.where(small, exponent.exp() + part, lower)
    rest = torch.where(small, -exponent.expm1() - part, rest)

    center, correction = _uniform_expansion(
        torch.where(near, a, 1.0), torch.where(near, x, 1.0), method
    )
    lower = torch.where(near, 0.5 * (-center).erfc() - correction, lower)
    rest = torch.where(near, 0.5 * center.erfc() + correction, rest)
    return lower, rest


def _positive_series(a: Tensor, x: Tensor, terms: int) -> Tensor:
    """The sum of ``x^n / ((a + 1) ... (a + n))`` from n = 0 for x <= a."""
    result = 1 + x / (a + terms)
    for n in range(terms - 1, 0, -1):
        result = 1 + x / (a + n) * result
    return result


def _alternating_series(a: Tensor, x: Tensor, method: _Method) -> Tensor:
    """The sum of ``(-x)^n / (n! (a + n))`` from n = 1."""
    power, result = -x, -x / (a + 1)
    for n in range(2, method.alternating + 1):
        power = power * (x * (-1 / n))
        result = result + power / (a + n)
    return result


def _fraction(a: Tensor, x: Tensor, method: _Method) -> Tensor:
    """``x^a exp(-x) / Gamma(a, x)`` for x >= a."""
    beyond = x - a
    result = beyond + (2 * method.fraction + 1)
    for k in range(method.fraction, 0, -1):
        result = beyond + (2 * k - 1) - (k * k - k * a) / result
    return result


def _uniform_expansion(a: Tensor, x: Tensor, method: _Method) -> tuple[Tensor, Tensor]:
    """``eta sqrt(a / 2)`` and the correction.

    Q is half of the complementary error function of the first, and the correction.
    """
    sigma = (x - a) / a
    # log(1 + s) = 2 artanh(r), whose first term takes s away.
    r = sigma / (2 + sigma)
    squares = [1 / (2 * k + 1) for k in range(method.squares, 0, -1)]
    half = r * (sigma - 2 * (r * r) * polynomial(r * r, squares))
    eta = torch.copysign((2 * half).sqrt(), sigma)
    inverse = 1 / a
    total = None
    for row, terms in reversed(list(zip(C, method.temme, strict=False))):
        value = polynomial(eta, row[:terms][::-1])
        total = value if total is None else total * inverse + value
    assert total is not None
    correction = (-a * half).exp() * total * (inverse * (0.5 / math.pi)).sqrt()
    return eta * (0.5 * a).sqrt(), correction
