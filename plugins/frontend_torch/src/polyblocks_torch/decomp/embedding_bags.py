"""Bags of embeddings: rows of a table, combined per bag, and their gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch._prims_common import get_computation_dtype

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.recording.known_ranges import arange_of

aten = torch.ops.aten

_SUM, _MEAN, _MAX = range(3)


def _even(indices: Tensor, offsets: Tensor) -> int | None:
    """How many indices each bag has, where all have as many, as those of a matrix have."""
    count, rows = offsets.shape[0], indices.shape[0]
    known = arange_of(offsets)
    if not count or not rows or known is None or known[0]:
        return None
    return known[1] if known[1] * count == rows else None


def _bag_of(indices: Tensor, offsets: Tensor) -> Tensor:
    """The bag that each index is in, [n]: the last one that begins before it or there."""
    places = torch.arange(indices.shape[0], dtype=offsets.dtype, device=indices.device)
    if size := _even(indices, offsets):
        return places // size
    return torch.searchsorted(offsets, places, right=True) - 1


def _counted(indices: Tensor, padding_idx: int) -> Tensor:
    return (
        indices != padding_idx if padding_idx >= 0 else torch.ones_like(indices, dtype=torch.bool)
    )


@decomposition(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Bags [B, E], and for the gradients: the bag of each index, sizes, and rows of maxima.

    Sums need no sizes, and have zeros for them; only maxima have rows, means have sizes there, too.

    Args:
        weight: [V, E].
        indices: [n], of rows.
        offsets: [B], where bags begin; one more with ``include_last_offset``.
        per_sample_weights: [n], of the summands.
        padding_idx: a row that does not count; none if negative.
    """
    rows, width = indices.shape[0], weight.shape[1]
    count = offsets.shape[0] - int(include_last_offset)
    # The op leaves the bags out where eager mode's kernel needs none.
    quick = weight.dtype in (torch.float32, torch.float16) and padding_idx < 0
    quick = quick and weight.stride(1) == 1
    if per_sample_weights is not None:
        quick = quick and per_sample_weights.stride(0) == 1
    bags = _bag_of(indices, offsets)
    told = offsets.new_zeros(0) if mode == _SUM and quick else bags.to(offsets.dtype)
    counted = _counted(indices, padding_idx)
    sizes = offsets.new_zeros(count)
    if mode != _SUM:
        sizes = sizes.scatter_add(0, bags, counted.to(offsets.dtype))
    dtype = get_computation_dtype(weight.dtype)
    values = weight.index_select(0, indices).to(dtype)
    if mode == _MAX:
        places = bags[:, None].expand(rows, width)
        values = torch.where(counted[:, None], values, -math.inf)
        largest = torch.full((count, width), -math.inf, dtype=dtype, device=weight.device)
        largest = largest.scatter_reduce(0, places, values, "amax")
        # The first of equal ones gets the gradient.
        order = torch.arange(rows, device=weight.device)[:, None]
        order = torch.where(values == largest.gather(0, places), order, rows)
        first = torch.full((count, width), rows, device=weight.device)
        first = first.scatter_reduce(0, places, order, "amin")
        chosen = indices.index_select(0, torch.where(first < rows, first, 0).reshape(-1))
        result = torch.where((sizes > 0)[:, None], largest, 0.0)
        return result.to(weight.dtype), told, sizes, chosen.reshape(count, width).to(offsets.dtype)
    if per_sample_weights is not None:
        values = values * per_sample_weights.to(dtype)[:, None]
    values = torch.where(counted[:, None], values, 0.0)
    if size := None if include_last_offset else _even(indices, offsets):
        result = values.reshape(count, size, width).sum(1)
    else:
        result = torch.zeros((count, width), dtype=dtype, device=weight.device)
        result = result.index_add(0, bags, values)
    if mode == _MEAN:
        result = result / sizes.clamp(min=1)[:, None]
    return result.to(weight.dtype), told, sizes, sizes.clone()


@decomposition(aten._embedding_bag_backward.default)
def embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """The gradient of the table [V, E] from that of the bags [B, E]."""
    if sparse or scale_grad_by_freq:
        # Eager mode scales by other counts than those of the rows, and is to give what it gives.
        return NotImplemented
    dtype, width = get_computation_dtype(grad.dtype), grad.shape[1]
    result = torch.zeros((num_weights, width), dtype=dtype, device=grad.device)
    if mode == _MAX:
        shares = torch.where((bag_size > 0)[:, None], grad.to(dtype), 0.0)
        return result.scatter_add(0, maximum_indices.to(torch.int64), shares).to(grad.dtype)
    bags = _bag_of(indices, offsets)
    shares = grad.to(dtype).index_select(0, bags)
    if mode == _MEAN:
        shares = shares / bag_size.index_select(0, bags).clamp(min=1)[:, None]
    if per_sample_weights is not None:
        shares = shares * per_sample_weights.to(dtype)[:, None]
    shares = torch.where(_counted(indices, padding_idx)[:, None], shares, 0.0)
    return result.index_add(0, indices, shares).to(grad.dtype)


@decomposition(aten._embedding_bag_per_sample_weights_backward.default)
def per_sample_weights_backward(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    """The gradient of the weights of summands [n]."""
    dtype = get_computation_dtype(grad.dtype)
    shares = grad.to(dtype).index_select(0, _bag_of(indices, offsets))
    products = (shares * weight.to(dtype).index_select(0, indices)).sum(1)
    return torch.where(_counted(indices, padding_idx), products, 0.0).to(grad.dtype)


@decomposition(aten.embedding_dense_backward.default)
def embedding_dense_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """Of a single row, which has no dimension for its index, too."""
    op = aten.embedding_dense_backward.default
    if not indices.dim():
        grad, indices = grad.reshape(1, -1), indices.reshape(1)
    return decomposition_table[op](grad, indices, num_weights, padding_idx, scale_grad_by_freq)
