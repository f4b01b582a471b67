"""Gradients of paddings with a tensor's own elements, added up where those were read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


def _slice(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    return aten.slice.Tensor(x, dim, start, start + length)


def _at(x: Tensor, dim: int, start: int, extent: int) -> Tensor:
    """Zeros before and behind elements along a dimension."""
    widths = [0, 0] * (x.dim() - 1 - dim) + [start, extent - start - x.shape[dim]]
    return aten.constant_pad_nd.default(x, widths, 0) if any(widths) else x


def _of_repeated(grad: Tensor, dim: int, extent: int, before: int, after: int) -> Tensor:
    """The first and the last element were read for all that is beyond them, too."""
    if not before and not after:
        return grad
    count = grad.shape[dim]
    if extent == 1:
        return grad.sum(dim, keepdim=True)
    low, high = before + 1, before + extent - 1
    parts = []
    if low > 0:
        parts.append(_slice(grad, dim, 0, min(low, count)).sum(dim, keepdim=True))
    start, stop = max(low, 0), min(high, count)
    if stop > start:
        parts.append(_slice(grad, dim, start, stop - start))
    if high < count:
        first = max(high, 0)
        parts.append(_slice(grad, dim, first, count - first).sum(dim, keepdim=True))
    # Cropped elements were not read; if all were cropped, the last one was.
    return _at(torch.cat(parts, dim), dim, min(max(-before, 0), extent - 1), extent)


def _of_mirrored(grad: Tensor, dim: int, extent: int, before: int, after: int) -> Tensor:
    """Elements beside the first and the last one were read a second time."""
    if not before and not after:
        return grad
    count = grad.shape[dim]
    start, stop = max(before, 0), min(before + extent, count)
    total = _at(_slice(grad, dim, start, stop - start), dim, start - before, extent)
    if before > 0:
        total = total + _at(_slice(grad, dim, 0, before).flip(dim), dim, 1, extent)
    if after > 0:
        mirrored = _slice(grad, dim, count - after, after).flip(dim)
        total = total + _at(mirrored, dim, extent - 1 - after, extent)
    return total


def _register(kind: str, of_axis: Callable[[Tensor, int, int, int, int], Tensor]) -> None:
    @decomposition(*(getattr(aten, f"{kind}_pad{dims}d_backward").default for dims in (1, 2, 3)))
    def gradient(grad: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
        total = grad
        for k in range(len(padding) // 2):
            dim = x.dim() - 1 - k
            total = of_axis(total, dim, x.shape[dim], padding[2 * k], padding[2 * k + 1])
        return total.clone() if total is grad else total


_register("replication", _of_repeated)
_register("reflection", _of_mirrored)
