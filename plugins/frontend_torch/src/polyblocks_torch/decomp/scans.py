"""Scans: prefix operations along one dimension, in log2(n) element-wise steps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

Pair = tuple[Tensor, ...]


def _scan(operands: Pair, dim: int, combine: Callable[[Pair, Pair], Pair]) -> Pair:
    """Inclusive scan by Hillis and Steele: step s combines elements 2**s apart.

    ``combine(earlier, later)`` is associative and works element by element.
    """
    extent = operands[0].shape[dim]
    distance = 1
    while distance < extent:
        earlier = tuple(o.narrow(dim, 0, extent - distance) for o in operands)
        later = tuple(o.narrow(dim, distance, extent - distance) for o in operands)
        head = tuple(o.narrow(dim, 0, distance) for o in operands)
        combined = combine(earlier, later)
        operands = tuple(torch.cat((h, c), dim) for h, c in zip(head, combined, strict=True))
        distance *= 2
    return operands


def _cumulative_extremum(x: Tensor, dim: int, sign: int) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    dim %= x.dim()
    shape = [1] * x.dim()
    shape[dim] = -1
    index = torch.arange(x.shape[dim], device=x.device).reshape(shape).expand(x.shape)

    def combine(earlier: Pair, later: Pair) -> Pair:
        (a, i), (b, j) = earlier, later
        # The later of two equal elements wins, and NaN wins over all, as in PyTorch.
        take = b >= a if sign > 0 else b <= a
        if x.dtype.is_floating_point:
            take = b.isnan() | (take & ~a.isnan())
        return torch.where(take, b, a), torch.where(take, j, i)

    values, positions = _scan((x, index), dim, combine)
    return values, positions


@decomposition(aten.cummax.default)
def cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _cumulative_extremum(x, dim, 1)


@decomposition(aten.cummin.default)
def cummin(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _cumulative_extremum(x, dim, -1)


@decomposition(aten.logcumsumexp.default)
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    if x.dim() == 0:
        return x.clone()
    if x.is_complex():
        return NotImplemented

    def combine(earlier: Pair, later: Pair) -> Pair:
        (a,), (b,) = earlier, later
        return (torch.logaddexp(a, b),)

    return _scan((x,), dim % x.dim(), combine)[0]


@decomposition(aten.cumsum.default)
def cumsum(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    if x.dim() == 0:
        return torch.sum(x, dtype=dtype)
    return _in_float32(torch.cumsum, x, dim, dtype)


@decomposition(aten.cumprod.default)
def cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    if x.dim() == 0:
        return torch.prod(x, dtype=dtype)
    if dtype is not None:
        # torch-mlir takes no dtype here.
        return torch.cumprod(x.to(dtype), dim)
    return _in_float32(torch.cumprod, x, dim, dtype)


def _in_float32(
    scan: Callable[..., Tensor], x: Tensor, dim: int, dtype: torch.dtype | None
) -> Tensor:
    """A scan over halves keeps what it accumulates in float32, as eager does."""
    result = dtype or x.dtype
    if result not in (torch.float16, torch.bfloat16):
        return NotImplemented
    return scan(x.to(result).float(), dim).to(result)
