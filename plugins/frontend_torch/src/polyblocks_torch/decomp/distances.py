"""Gradients of distances between rows, as sums over all pairs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


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
