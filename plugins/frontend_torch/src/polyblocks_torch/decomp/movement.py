"""Data movement as slices, which later stages read as accesses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.roll.default)
def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        return roll(x.reshape(-1), shifts, (0,)).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        extent = x.shape[dim]
        split = -shift % extent if extent else 0
        if split:
            parts = x.narrow(dim, split, extent - split), x.narrow(dim, 0, split)
            x = torch.cat(parts, dim)
    return x.clone()


@decomposition(aten.constant_pad_nd.default)
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Negative padding cuts off; torch-mlir makes pads of negative size of it."""
    if all(amount >= 0 for amount in pad):
        return NotImplemented
    for k in range(len(pad) // 2):
        dim, before, after = x.dim() - 1 - k, max(-pad[2 * k], 0), max(-pad[2 * k + 1], 0)
        x = x.narrow(dim, before, x.shape[dim] - before - after)
    rest = [max(amount, 0) for amount in pad]
    return aten.constant_pad_nd.default(x, rest, value) if any(rest) else x.clone()
