"""Scans: prefix operations along one dimension, brought to the dtypes that are lowered."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

HALVES = (torch.float16, torch.bfloat16)
#: Dtypes that the lowering of scans supports.
_FLOATS = (torch.float32, torch.float64)
_INTEGERS = (torch.int16, torch.int32, torch.int64)


def _accumulated(op: Any, x: Tensor, dim: int, dtype: torch.dtype | None) -> Tensor:
    """A cumulative sum or product in a dtype that is lowered, converted to what it shall be."""
    result = dtype or (x.dtype if x.is_floating_point() or x.is_complex() else torch.int64)
    if result.is_complex:
        return NotImplemented
    # Halves keep what they accumulate in float32, as eager does; small integers wrap around in
    # any wider one.
    through = torch.float32 if result in HALVES else result
    if result not in (*HALVES, *_FLOATS, *_INTEGERS):
        through = torch.int64
    if through is result and dtype is None and x.dtype is result:
        return NotImplemented
    return op(x.to(result).to(through), dim).to(result)


@decomposition(aten.cumsum.default)
def cumsum(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    if x.dim() == 0:
        return torch.sum(x, dtype=dtype)
    return _accumulated(torch.cumsum, x, dim, dtype)


@decomposition(aten.cumprod.default)
def cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    if x.dim() == 0:
        return torch.prod(x, dtype=dtype)
    kind = x.dtype if dtype is None else dtype
    if kind.is_complex:
        return _complex_products(x.to(kind), dim)
    return _accumulated(torch.cumprod, x, dim, dtype)


def _complex_products(x: Tensor, dim: int) -> Tensor:
    """After each of log2(n) steps twice as many factors are in."""
    count, step = x.shape[dim], 1
    while step < count:
        later = x.narrow(dim, step, count - step) * x.narrow(dim, 0, count - step)
        x = torch.cat([x.narrow(dim, 0, step), later], dim)
        step *= 2
    return x.clone() if count < 2 else x


def _extremum(op: Any, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    if x.dtype in (*_FLOATS, *_INTEGERS):
        return NotImplemented
    # Both hold every value of what is converted.
    wide = torch.float32 if x.dtype in HALVES else torch.int32
    values, positions = op(x.to(wide), dim)
    return values.to(x.dtype), positions


@decomposition(aten.cummax.default)
def cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _extremum(torch.cummax, x, dim)


@decomposition(aten.cummin.default)
def cummin(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _extremum(torch.cummin, x, dim)


@decomposition(aten.logcumsumexp.default)
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    if x.dim() == 0:
        return x.clone()
    if x.dtype not in HALVES:
        return NotImplemented
    return torch.logcumsumexp(x.float(), dim).to(x.dtype)
