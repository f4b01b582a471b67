"""Variances. torch-mlir divides by a negative count, or refuses, where eager divides by zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.var_mean.correction)
def var_mean(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    if x.is_complex():
        return NotImplemented
    dims = [d % max(x.dim(), 1) for d in dim] if dim else list(range(x.dim()))
    # Halves are accumulated as float32, as eager does.
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    if x.dim() == 0:
        wide, dims = wide.reshape(1), [0]
    count = math.prod(wide.shape[d] for d in dims)
    mean = wide.mean(dims, keepdim=True)
    centered = wide - mean
    freedom = max(0.0, count - (1 if correction is None else correction))
    variance = (centered * centered).sum(dims, keepdim=keepdim) / freedom
    if not keepdim:
        mean = mean.reshape(variance.shape)
    if x.dim() == 0:
        variance, mean = variance.reshape(()), mean.reshape(())
    return variance.to(x.dtype), mean.to(x.dtype)


@decomposition(aten.var.correction)
def var(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    if x.is_complex():
        return NotImplemented
    return var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


@decomposition(aten.std.correction)
def std(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    if x.is_complex():
        return NotImplemented
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return var(wide, dim, correction=correction, keepdim=keepdim).sqrt().to(x.dtype)
