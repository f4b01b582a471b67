"""Variances. torch-mlir divides by a negative count, or refuses, where eager divides by zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


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
    mean = wide.mean(dims, keepdim=True)
    if exact and count > 1:
        first = wide
        for d in dims:
            first = first.narrow(d, 0, 1)
        shifted = wide - first
        centered = shifted - shifted.mean(dims, keepdim=True)
    else:
        centered = wide - mean
    freedom = max(0.0, count - (1 if correction is None else correction))
    variance = (centered * centered).sum(dims, keepdim=keepdim) / freedom
    if not keepdim:
        mean = mean.reshape(variance.shape)
    if x.dim() == 0:
        variance, mean = variance.reshape(()), mean.reshape(())
    return variance, mean


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
