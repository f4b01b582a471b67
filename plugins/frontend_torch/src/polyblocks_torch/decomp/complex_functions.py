"""Functions of complex numbers, of real functions of their parts.

Numbers of complex64 are computed in float64. Branch cuts and zeros are as C99's Annex G has them;
of operands with an infinite or unknown part some results are NaN where C knows one part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

Parts = tuple[Tensor, Tensor]


def _of_complex(*ops: torch._ops.OpOverload) -> Callable[[Callable[[Tensor, Tensor], Parts]], Any]:
    """Register a function of the parts, in float64, for complex operands; others stay."""

    def register(function: Callable[[Tensor, Tensor], Parts]) -> Any:
        def decomposed(x: Tensor) -> Tensor:
            if not x.is_complex():
                return NotImplemented
            return _joined(function(*_parts(x)), x.dtype)

        decomposition(*ops)(decomposed)
        return function

    return register


def _parts(x: Tensor) -> Parts:
    return torch.real(x).to(torch.float64), torch.imag(x).to(torch.float64)


def _joined(parts: Parts, dtype: torch.dtype) -> Tensor:
    kind = torch.float64 if dtype == torch.complex128 else torch.float32
    return torch.complex(parts[0].to(kind), parts[1].to(kind))


def _log_of_magnitude(re: Tensor, im: Tensor) -> Tensor:
    """Also near 1, where the logarithm of a rounded magnitude would lose digits."""
    large, small = torch.maximum(re.abs(), im.abs()), torch.minimum(re.abs(), im.abs())
    near = 0.5 * torch.log1p((large - 1) * (large + 1) + small * small)
    is_near = (large > 0.5) & (large < 2)
    return torch.where(is_near, near, torch.log(torch.hypot(re, im)))


@_of_complex(aten.log.default)
def log(re: Tensor, im: Tensor) -> Parts:
    return _log_of_magnitude(re, im), torch.atan2(im, re)


@_of_complex(aten.log2.default)
def log2(re: Tensor, im: Tensor) -> Parts:
    real, angle = log(re, im)
    return real / math.log(2), angle / math.log(2)


@_of_complex(aten.log10.default)
def log10(re: Tensor, im: Tensor) -> Parts:
    real, angle = log(re, im)
    return real / math.log(10), angle / math.log(10)


@_of_complex(aten.log1p.default)
def log1p(re: Tensor, im: Tensor) -> Parts:
    near = 0.5 * torch.log1p(re * (re + 2) + im * im)
    is_near = (re.abs() < 0.5) & (im.abs() < 0.5)
    return torch.where(is_near, near, _log_of_magnitude(re + 1, im)), torch.atan2(im, re + 1)


@_of_complex(aten.sqrt.default)
def sqrt(re: Tensor, im: Tensor) -> Parts:
    """W. Kahan, Branch Cuts for Complex Elementary Functions (1987)."""
    root = torch.sqrt((re.abs() + torch.hypot(re, im)) / 2)
    other = torch.where(root == 0, 0.0, im.abs() / (2 * root))
    infinite = im.isinf()
    other = torch.where(infinite, math.inf, torch.where(re.isinf(), 0.0, other))
    root = torch.where(infinite, math.inf, root)
    positive = ~torch.signbit(re)
    unknown = re.isinf() & im.isnan()
    real = torch.where(positive, root, other)
    imaginary = torch.copysign(torch.where(positive, other, root), im)
    return (
        torch.where(unknown & ~positive, math.nan, real),
        torch.where(unknown & positive, math.nan, imaginary),
    )


def _reciprocal(re: Tensor, im: Tensor) -> Parts:
    quotient = torch.div(1.0, torch.complex(re, im))
    return torch.real(quotient), torch.imag(quotient)


def _product(x: Parts, y: Parts) -> Parts:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _conjugate(x: Parts) -> Parts:
    return x[0], -x[1]


@_of_complex(aten.rsqrt.default)
def rsqrt(re: Tensor, im: Tensor) -> Parts:
    return _reciprocal(*sqrt(re, im))


def _scaled(x: Tensor, factor: Tensor) -> Tensor:
    """A product that is zero where the factor is, also of what is infinite."""
    return torch.where(factor == 0, factor, x * factor)


@_of_complex(aten.sinh.default)
def sinh(re: Tensor, im: Tensor) -> Parts:
    return torch.where(re == 0, re, torch.sinh(re) * torch.cos(im)), _scaled(
        torch.cosh(re), torch.sin(im)
    )


@_of_complex(aten.cosh.default)
def cosh(re: Tensor, im: Tensor) -> Parts:
    return torch.cosh(re) * torch.cos(im), torch.where(
        re == 0, re * torch.sin(im), _scaled(torch.sinh(re), torch.sin(im))
    )


@_of_complex(aten.tanh.default)
def tanh(re: Tensor, im: Tensor) -> Parts:
    """Kahan's, as above: beyond 20 the real part is 1."""
    tangent, low = torch.tan(im), torch.sinh(re.clamp(-30, 30))
    beta = 1 + tangent * tangent
    below = 1 + beta * low * low
    real = beta * torch.sqrt(1 + low * low) * low / below
    far = re.abs() > 20
    least = 2 * torch.sin(2 * im) * torch.exp(-2 * re.abs())
    least = torch.where(re.isinf() & ~im.isfinite(), 0.0, least)
    return (
        torch.where(far, torch.copysign(torch.ones_like(re), re), real),
        torch.where(far, least, tangent / below),
    )


def _turned(function: Callable[[Tensor, Tensor], Parts]) -> Callable[[Tensor, Tensor], Parts]:
    """sin of sinh, tan of tanh: f(z) = -i g(iz)."""

    def turned(re: Tensor, im: Tensor) -> Parts:
        real, imaginary = function(-im, re)
        return imaginary, -real

    return turned


_of_complex(aten.sin.default)(_turned(sinh))
_of_complex(aten.tan.default)(_turned(tanh))


@_of_complex(aten.cos.default)
def cos(re: Tensor, im: Tensor) -> Parts:
    return cosh(-im, re)


@_of_complex(aten.exp2.default)
def exp2(re: Tensor, im: Tensor) -> Parts:
    return _exp(re * math.log(2), im * math.log(2))


@_of_complex(aten.expm1.default)
def expm1(re: Tensor, im: Tensor) -> Parts:
    half = torch.sin(im / 2)
    return torch.expm1(re) * torch.cos(im) - 2 * half * half, _scaled(torch.exp(re), torch.sin(im))


@_of_complex(aten.sigmoid.default)
def sigmoid(re: Tensor, im: Tensor) -> Parts:
    real, imaginary = _exp(-re, -im)
    return _reciprocal(1 + real, imaginary)


@_of_complex(aten.sgn.default)
def sgn(re: Tensor, im: Tensor) -> Parts:
    size = torch.hypot(re, im)
    zero = size == 0
    return torch.where(zero, 0.0, re / size), torch.where(zero, 0.0, im / size)


# Inverses: W. Kahan, as above.


@_of_complex(aten.asin.default)
def asin(re: Tensor, im: Tensor) -> Parts:
    below, above = sqrt(1 - re, -im), sqrt(1 + re, im)
    real = torch.atan2(re, _product(below, above)[0])
    quarter = torch.copysign(torch.full_like(re, math.pi / 2), re)
    return (
        torch.where(re.isinf() & im.isfinite(), quarter, real),
        torch.asinh(_product(_conjugate(below), above)[1]),
    )


@_of_complex(aten.acos.default)
def acos(re: Tensor, im: Tensor) -> Parts:
    below, above = sqrt(1 - re, -im), sqrt(1 + re, im)
    return (
        2 * torch.atan2(below[0], above[0]),
        torch.asinh(_product(_conjugate(above), below)[1]),
    )


@_of_complex(aten.acosh.default)
def acosh(re: Tensor, im: Tensor) -> Parts:
    below, above = sqrt(re - 1, im), sqrt(re + 1, im)
    return (
        torch.asinh(_product(_conjugate(below), above)[0]),
        2 * torch.atan2(below[1], above[0]),
    )


@_of_complex(aten.atanh.default)
def atanh(re: Tensor, im: Tensor) -> Parts:
    squared, infinite = im * im, re.isinf() | im.isinf()
    size = re.abs()
    real = 0.25 * torch.log1p(4 * size / ((1 - size) * (1 - size) + squared))
    real = torch.copysign(real, re)
    imaginary = 0.5 * torch.atan2(2 * im, (1 - re) * (1 + re) - squared)
    return (
        torch.where(infinite, torch.copysign(torch.zeros_like(re), re), real),
        torch.where(infinite, torch.copysign(torch.full_like(im, math.pi / 2), im), imaginary),
    )


_of_complex(aten.asinh.default)(_turned(asin))
_of_complex(aten.atan.default)(_turned(atanh))


def _exp(re: Tensor, im: Tensor) -> Parts:
    size, zero, turns = torch.exp(re), re == -math.inf, (re == math.inf) & ~im.isfinite()
    return (
        torch.where(zero, 0.0, torch.where(turns, math.inf, _scaled(size, torch.cos(im)))),
        torch.where(zero, 0.0, _scaled(size, torch.sin(im))),
    )


def _power(base: Parts, exponent: Parts) -> Parts:
    """exp(w log z), as C's ``cpow``: 0 to the power of 0 is NaN."""
    (x, y), (a, b) = log(*base), exponent
    return _exp(a * x - b * y, a * y + b * x)


def _complex_parts(x: Tensor | complex, like: Tensor) -> Parts:
    if isinstance(x, Tensor):
        return _parts(x) if x.is_complex() else (x.to(torch.float64), torch.zeros_like(x).double())
    value = complex(x)
    parts = [
        torch.full((), p, dtype=torch.float64, device=like.device) for p in (value.real, value.imag)
    ]
    return parts[0], parts[1]


def _raised(x: Tensor | complex, exponent: Tensor | complex) -> Tensor:
    like = x if isinstance(x, Tensor) else exponent
    assert isinstance(like, Tensor), "one of both is a tensor"
    dtype = torch.result_type(x, exponent)
    made = _power(_complex_parts(x, like), _complex_parts(exponent, like))
    return _joined(torch.broadcast_tensors(*made), dtype)


#: Exponents that PyTorch's kernels take products, roots and quotients for.
_SIMPLE: dict[complex, Callable[[Tensor], Tensor]] = {
    0: lambda x: torch.ones_like(x),
    1: lambda x: x.clone(),
    0.5: lambda x: x.sqrt(),
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    -0.5: lambda x: x.rsqrt(),
    -1: lambda x: x.reciprocal(),
    -2: lambda x: (x * x).reciprocal(),
}


def power(x: Tensor | complex, exponent: Tensor | complex) -> Tensor:
    """A power, one of both complex, one a tensor."""
    if isinstance(x, Tensor) and not isinstance(exponent, Tensor) and exponent in _SIMPLE:
        return _SIMPLE[exponent](x.to(torch.result_type(x, exponent)))
    return _raised(x, exponent)


@decomposition(aten.nan_to_num.default)
def nan_to_num(
    x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    if not x.is_complex():
        return NotImplemented
    parts = (torch.nan_to_num(part, nan, posinf, neginf) for part in (torch.real(x), torch.imag(x)))
    return torch.complex(*parts)
