"""Memory read as elements of another type: ``view(dtype)``."""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

#: Bytes -> the type of integers of that size.
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_PARTS = {torch.complex64: torch.float32, torch.complex128: torch.float64}


@decomposition(aten.view.dtype)
def view_as(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The least significant part of an element comes first."""
    if x.dtype == dtype:
        return x.view(x.shape)
    if not x.dim() and (x.dtype.is_complex or dtype.is_complex):
        return x.reshape(1).view(dtype).reshape(())
    if x.dtype.is_complex:
        parts = torch.view_as_real(x)
        if x.itemsize == dtype.itemsize:
            # To one of the same size, a row of parts becomes one element.
            return parts.view(dtype).reshape(x.shape)
        return parts.flatten(-2).view(dtype)
    if dtype.is_complex:
        parts = x.view(_PARTS[dtype])
        if x.itemsize == dtype.itemsize:
            return torch.view_as_complex(parts.reshape(*x.shape, 2))
        return torch.view_as_complex(parts.reshape(*parts.shape[:-1], -1, 2))
    if x.dtype == torch.bool:
        # A boolean is a byte of 0 or 1.
        return x.to(torch.uint8).view(dtype)
    if dtype == torch.bool:
        return x.view(torch.uint8) != 0
    if x.itemsize == dtype.itemsize:
        return NotImplemented
    integers = x.view(_INTEGERS[x.itemsize])
    if dtype.itemsize < x.itemsize:
        return _divided(integers, dtype.itemsize).view(dtype)
    return _joined(integers, dtype.itemsize).view(dtype)


def _divided(x: Tensor, size: int) -> Tensor:
    """Integers as several of fewer bytes each."""
    wide, bits = x.to(torch.int64), 8 * size
    parts = [(wide >> (bits * k)) & ((1 << bits) - 1) for k in range(x.itemsize // size)]
    return torch.stack(parts, -1).flatten(-2).to(_INTEGERS[size])


def _joined(x: Tensor, size: int) -> Tensor:
    """Several integers as one of more bytes each."""
    bits = 8 * x.itemsize
    rows = x.reshape(*x.shape[:-1], -1, size // x.itemsize).to(torch.int64)
    total = torch.zeros_like(rows[..., 0])
    for k in range(rows.shape[-1]):
        total = total | ((rows[..., k] & ((1 << bits) - 1)) << (bits * k))
    return total.to(_INTEGERS[size])
