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
