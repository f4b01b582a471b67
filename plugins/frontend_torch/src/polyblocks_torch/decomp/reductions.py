"""Reductions, and reductions of tensors without dimensions.

A 0-d tensor may be reduced along "dimension 0"; torch-mlir lowers that for few ops only. Such a
reduction is the identity, up to the result's dtype.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.amax.default, aten.amin.default)
def amax(x: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Tensor:
    return x.clone() if x.dim() == 0 else NotImplemented


def _truth(op: torch._ops.OpOverload) -> None:
    """Let a question about bytes, whose answer is a byte, be one about booleans."""
    of_others = decomposition_table.get(op)

    @decomposition(op)
    def answer(x: Tensor, *dims: Any, **options: Any) -> Tensor:
        if x.dtype != torch.uint8 and (x.dim() or not dims):
            return NotImplemented if of_others is None else of_others(x, *dims, **options)
        result = x != 0
        if x.dtype != torch.uint8:
            return result
        if x.dim():
            result = op(result, *dims, **options)
        return result.to(torch.uint8)


for _op in (
    *(aten.any.default, aten.any.dim, aten.any.dims),
    *(aten.all.default, aten.all.dim, aten.all.dims),
):
    _truth(_op)


@decomposition(aten.prod.default)
def prod(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    kind = x.dtype if dtype is None else dtype
    return _complex_product(x.to(kind).reshape(-1), 0) if kind.is_complex else NotImplemented


@decomposition(aten.prod.dim_int)
def prod_dim(
    x: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    if x.dim() == 0:
        return torch.prod(x, dtype=dtype)
    kind = x.dtype if dtype is None else dtype
    if not kind.is_complex:
        return NotImplemented
    product = _complex_product(x.to(kind), dim % x.dim())
    return product.unsqueeze(dim) if keepdim else product


def _complex_product(x: Tensor, dim: int) -> Tensor:
    """Pairs first: one operation for each halving."""
    if not x.shape[dim]:
        return x.new_ones([*x.shape[:dim], *x.shape[dim + 1 :]])
    while (count := x.shape[dim]) > 1:
        half = count // 2
        pairs = x.narrow(dim, 0, half) * x.narrow(dim, half, half)
        x = torch.cat([pairs, x.narrow(dim, count - 1, 1)], dim) if count % 2 else pairs
    return x.squeeze(dim)


@decomposition(aten.dist.default)
def dist(x: Tensor, other: Tensor, p: float = 2) -> Tensor:
    return torch.linalg.vector_norm(x - other, p)


@decomposition(aten.linalg_vector_norm.default)
def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    kind = x.dtype if dtype is None else dtype
    if kind in (torch.float16, torch.bfloat16):
        # Powers of 16-bit numbers overflow where the norm does not.
        return torch.linalg.vector_norm(x.to(torch.float32), ord, dim, keepdim).to(kind)
    dims = [d % x.dim() for d in dim or range(x.dim())] if x.dim() else []
    if math.prod(x.shape[d] for d in dims) != 1:
        return NotImplemented
    # The norm of one number is its magnitude: no power overflows or underflows.
    x = x if dtype is None else x.to(dtype)
    norm = (x != 0).to(x.dtype.to_real()) if ord == 0 else x.abs()
    return norm if keepdim else norm.squeeze(dims)


@decomposition(aten.sum.dim_IntList)
def sum_dim(
    x: Tensor,
    dim: Sequence[int] | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    if x.dim():
        return NotImplemented
    if dtype is None and not (x.is_floating_point() or x.is_complex()):
        dtype = torch.int64
    # Not torch.sum, which PyTorch decomposes into this op.
    return x.clone() if dtype is None else x.to(dtype, copy=True)


@decomposition(aten.mean.dim)
def mean_dim(
    x: Tensor,
    dim: Sequence[int] | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    return torch.mean(x, dtype=dtype) if not x.dim() else NotImplemented


@decomposition(aten._softmax.default)
def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    if x.dim():
        return NotImplemented
    # One, unless the only element is NaN or infinite.
    return torch.exp(x - x)


@decomposition(aten._safe_softmax.default, rounds=True)
def safe_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """A softmax whose fully masked rows are zeros; their largest element says that they are.

    PyTorch's own decomposition looks at all elements once more, masked ones included.
    """
    result = x.dtype if dtype is None else dtype
    if not x.numel():
        return x.to(result, copy=True)
    if not x.dim():
        return safe_softmax(x.reshape(1), 0, dtype).reshape(())
    rounded = x.to(result)
    computed = rounded.to(torch.float32) if result in (torch.float16, torch.bfloat16) else rounded
    largest = computed.amax(dim, keepdim=True)
    weights = torch.exp(computed - torch.where(largest == -math.inf, 0.0, largest))
    total = weights.sum(dim, keepdim=True)
    return (weights / torch.where(total == 0, 1.0, total)).to(result)


@decomposition(aten._log_softmax.default)
def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    if not x.dim():
        return x - x
    computed = x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x
    shifted = computed - computed.amax(dim, keepdim=True)
    result = shifted - shifted.exp().sum(dim, keepdim=True).log()
    return result if half_to_float else result.to(x.dtype)
