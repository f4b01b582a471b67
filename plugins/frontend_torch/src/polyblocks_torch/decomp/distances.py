"""Distances between rows, and their gradients as sums over all pairs."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


#: Strips into which the triangle of all pairs is cut, at most, and rows of each, at least: three
#: strips compute two thirds of the square.
STRIPS = 3
STRIP_ROWS = 256


@decomposition(aten._cdist_forward.default)
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    # As in PyTorch: above 25 rows the Euclidean distance is a matrix product.
    large = x1.shape[-2] > 25 or x2.shape[-2] > 25
    if p == 2 and (compute_mode == 1 or (compute_mode in (None, 0) and large)):
        return aten._euclidean_dist(x1, x2)
    return _distances(x1, x2, p)


@decomposition(aten._pdist_forward.default)
def pdist(x: Tensor, p: float = 2) -> Tensor:
    """The distances ``[n * (n - 1) / 2]`` of all pairs of rows of ``x`` ``[n, M]``."""
    rows = x.shape[0]
    if rows < 2:
        return x.new_zeros((0,))
    strips = min(STRIPS, max(1, rows // STRIP_ROWS))
    bounds = [rows * s // strips for s in range(strips + 1)]
    parts = [_strip(x[low:], high - low, p) for low, high in pairwise(bounds)]
    return parts[0] if strips == 1 else torch.cat(parts)


def _strip(x: Tensor, count: int, p: float) -> Tensor:
    """The distances of each of the first ``count`` rows of ``x`` ``[n, M]`` to all later rows.

    All rows are compared with all: register tiles of that are faster than half as many distances
    one by one.
    """
    rows = x.shape[0]
    square = _distances(x[:count], x, p).reshape(-1)
    pairs = count * (2 * rows - count - 1) // 2
    # The pairs of the last r rows are the last r * (r - 1) / 2 ones. The root is exact: 8 * behind
    # + 1 is the square of an odd number at the last pair of a row, and far below one elsewhere.
    behind = rows * (rows - 1) // 2 - 1 - torch.arange(pairs, device=x.device)
    root = torch.sqrt((8 * behind + 1).to(torch.float64))
    later = ((root - 1) * 0.5).to(torch.int64)
    first = rows - 2 - later
    second = rows - 1 - behind + ((later * (later + 1)) >> 1)
    return aten._unsafe_index.Tensor(square, [first * rows + second])


def _distances(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    """The distances ``[..., P, R]`` of rows ``[..., P, M]`` and ``[..., R, M]``."""
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if difference.shape[-1] == 0:
        return difference.new_zeros(difference.shape[:-1])
    if p == 0:
        # Not a comparison: NaN is NaN, also when counted.
        return difference.abs().ceil().clamp(max=1).sum(-1)
    return torch.linalg.vector_norm(difference, p, dim=-1)


@decomposition(aten._cdist_backward.default)
def cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, distances: Tensor) -> Tensor:
    """The gradient of ``x1``.

    Args:
        grad: ``[..., P, R]``, of the distances.
        x1: ``[..., P, M]``.
        x2: ``[..., R, M]``.
        p: of the norm.
        distances: ``[..., P, R]``.
    """
    if p == 0 or not x1.numel() or not x2.numel():
        return torch.zeros_like(x1)
    return _gradient(grad, x1, x2, p, distances)


@decomposition(aten._pdist_backward.default)
def pdist_backward(grad: Tensor, x: Tensor, p: float, distances: Tensor) -> Tensor:
    """The gradient of ``x`` ``[n, M]``; there is one distance for each pair of rows."""
    rows = x.shape[0]
    if p == 0 or rows < 2 or not x.numel():
        return torch.zeros_like(x)
    number = torch.arange(rows, device=x.device)
    first, second = number[:, None], number
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    pair = low * (2 * rows - low - 1) // 2 + high - low - 1
    others = first != second
    pair = torch.where(others, pair, 0)
    shares, lengths = (
        torch.where(others, aten._unsafe_index.Tensor(each, [pair]), 0)
        for each in (grad, distances)
    )
    return _gradient(shares, x, x, p, lengths)


def _gradient(grad: Tensor, x1: Tensor, x2: Tensor, p: float, distances: Tensor) -> Tensor:
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if p == 1:
        return (difference.sign() * grad.unsqueeze(-1)).sum(-2)
    if p == math.inf:
        # All elements that are as large as the largest one have its gradient.
        largest = difference.abs() == distances.unsqueeze(-1)
        return torch.where(largest, difference.sign() * grad.unsqueeze(-1), 0).sum(-2)
    apart = distances != 0
    share = torch.where(apart, grad / distances.pow(p - 1), 0).unsqueeze(-1)
    if p == 2:
        return (difference * share).sum(-2)
    power = difference.sign() * difference.abs().pow(p - 1)
    if p < 1:
        power = torch.where(difference == 0, 0, power)
    return (power * share).sum(-2)
