"""Variances. torch-mlir divides by a negative count, or refuses, where eager divides by zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from polyblocks_torch.decomp.parts import part_of
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

#: Elements from which on a mean is not known soon enough to read them again from a cache.
MANY = 1 << 15


def _variance(
    x: Tensor, dim: Sequence[int] | None, correction: float | None, keepdim: bool, *, exact: bool
) -> tuple[Tensor, Tensor]:
    """Variance and mean along dimensions, in the type that they are accumulated in.

    Args:
        x: of real numbers.
        dim: the dimensions; None or none: all.
        correction: of the count; None is 1.
        keepdim: whether the results keep them, of extent 1.
        exact: whether the variance of equal numbers is 0, although their mean is rounded.
    """
    dims = [d % max(x.dim(), 1) for d in dim] if dim else list(range(x.dim()))
    # Halves are accumulated as float32, as eager does.
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    if x.dim() == 0:
        wide, dims = wide.reshape(1), [0]
    count = math.prod(wide.shape[d] for d in dims)
    part = _part(wide.shape, dims)
    if part:
        mean, squares = _of_parts(wide, dims, part, exact=exact)
        squares = squares if keepdim else squares.reshape(_without(wide.shape, dims))
    else:
        mean = wide.mean(dims, keepdim=True)
        centered = _centered(wide, dims) if exact and count > 1 else wide - mean
        squares = (centered * centered).sum(dims, keepdim=keepdim)
    freedom = max(0.0, count - (1 if correction is None else correction))
    variance = squares / freedom
    if not keepdim:
        mean = mean.reshape(variance.shape)
    if x.dim() == 0:
        variance, mean = variance.reshape(()), mean.reshape(())
    return variance, mean


def _without(shape: Sequence[int], dims: Sequence[int]) -> list[int]:
    return [n for d, n in enumerate(shape) if d not in dims]


def _part(shape: Sequence[int], dims: Sequence[int]) -> int:
    """Neighbouring elements that are one part of what is reduced; 0 without parts.

    Deviations from the mean of a part need no mean of all, so that a part is read from memory once.
    """
    run = 1
    for d in reversed(range(len(shape))):
        if d not in dims:
            break
        run *= shape[d]
    return part_of(run) if math.prod(shape[d] for d in dims) >= MANY else 0


def _centered(x: Tensor, dims: Sequence[int]) -> Tensor:
    """Deviations from the mean; 0 of equal numbers."""
    shifted = x - _first(x, dims)
    return shifted - shifted.mean(list(dims), keepdim=True)


def _of_parts(x: Tensor, dims: Sequence[int], part: int, *, exact: bool) -> tuple[Tensor, Tensor]:
    """The mean, and the sum of the squares of deviations from it, with dimensions of extent 1.

    Of each part the same, and then of these (Chan, Golub, LeVeque: "Updating formulae and a
    pairwise algorithm for computing sample variances", 1982).
    """
    kept = [1 if d in dims else n for d, n in enumerate(x.shape)]
    ends = max((d + 1 for d in range(x.dim()) if d not in dims), default=0)
    parts = x.reshape(*x.shape[:ends], -1, part)
    rest, inner = [*(d for d in range(ends) if d in dims), ends], ends + 1
    firsts = parts.narrow(inner, 0, 1)
    if exact:
        # The means of parts would be rounded as numbers that are far from 0.
        parts = parts - firsts
    means = parts.mean(inner, keepdim=True)
    centered = parts - means
    squares = (centered * centered).sum(inner)
    means, first = means.squeeze(inner), _first(firsts.squeeze(inner), rest)
    if exact:
        means = (firsts.squeeze(inner) - first) + means
    mean = means.mean(rest, keepdim=True)
    apart = means - mean
    total = (squares + part * (apart * apart)).sum(rest, keepdim=True)
    if exact:
        mean = mean + first
    return mean.reshape(kept), total.reshape(kept)


def _first(x: Tensor, dims: Sequence[int]) -> Tensor:
    """The first element along dimensions, which stay."""
    for d in dims:
        x = x.narrow(d, 0, 1)
    return x


def _moments(
    x: Tensor, dim: Sequence[int] | None, correction: float | None, keepdim: bool, *, exact: bool
) -> tuple[Tensor, Tensor]:
    """As :func:`_variance`; complex numbers vary by their distances from the mean."""
    if not x.is_complex():
        return _variance(x, dim, correction, keepdim, exact=exact)
    parts = [
        _variance(part, dim, correction, keepdim, exact=exact)
        for part in (torch.real(x), torch.imag(x))
    ]
    (real, of_real), (imaginary, of_imaginary) = parts
    return real + imaginary, torch.complex(of_real, of_imaginary)


@decomposition(aten.var_mean.correction)
def var_mean(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    variance, mean = _moments(x, dim, correction, keepdim, exact=False)
    return variance.to(x.dtype.to_real()), mean.to(x.dtype)


@decomposition(aten.var.correction)
def var(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    return _moments(x, dim, correction, keepdim, exact=True)[0].to(x.dtype.to_real())


@decomposition(aten.std.correction)
def std(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    return _moments(x, dim, correction, keepdim, exact=True)[0].sqrt().to(x.dtype.to_real())


@decomposition(aten.std_mean.correction)
def std_mean(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    variance, mean = _moments(x, dim, correction, keepdim, exact=True)
    return variance.sqrt().to(x.dtype.to_real()), mean.to(x.dtype)
