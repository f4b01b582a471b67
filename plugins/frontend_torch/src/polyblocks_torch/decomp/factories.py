"""Tensors made of nothing: ranges, identity matrices, and the frequencies of Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyblocks_torch.decomp.numbers import wrapped
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

#: dtypes in which torch-mlir counts rightly; it crashes on unsigned ones.
_COUNTED = (torch.int64, torch.float32, torch.float64)


@decomposition(aten.arange.start_step)
def arange(
    start: float,
    end: float,
    step: float = 1,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    if dtype is None or dtype in _COUNTED:
        return NotImplemented
    if not all(isinstance(value, int) for value in (start, end, step)):
        return NotImplemented
    return torch.arange(start, end, step, device=device).to(dtype)


@decomposition(aten.full.default)
def full(size: Sequence[int], fill_value: complex, **options: Any) -> Tensor:
    """The number is converted first, as PyTorch does it: 42 is a true one, and not its last bit."""
    dtype = options.get("dtype")
    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return NotImplemented
    if not isinstance(fill_value, int) and not math.isfinite(abs(fill_value)):
        return NotImplemented
    value = wrapped(fill_value, dtype)
    if dtype == torch.bool:
        value = bool(value)
    if type(value) is type(fill_value) and value == fill_value:
        return NotImplemented
    return aten.full.default(size, value, **options)


@decomposition(aten.eye.m)
def eye_m(n: int, m: int, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    device = options.get("device")
    row = torch.arange(n, device=device).unsqueeze(-1)
    diagonal = row == torch.arange(m, device=device)
    return diagonal.to(dtype if dtype is not None else torch.get_default_dtype())


@decomposition(aten.eye.default)
def eye(n: int, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    return eye_m(n, n, dtype=dtype, **options)


@decomposition(aten.fft_fftfreq.default)
def fftfreq(n: int, d: float = 1.0, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """As PyTorch computes them: integers times the rounded reciprocal."""
    options = {"dtype": dtype or torch.get_default_dtype(), "device": options.get("device")}
    halves = [torch.arange((n + 1) // 2, **options), torch.arange(-(n // 2), 0, **options)]
    return torch.cat(halves) * (1.0 / (n * d))


@decomposition(aten.fft_rfftfreq.default)
def rfftfreq(n: int, d: float = 1.0, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    options = {"dtype": dtype or torch.get_default_dtype(), "device": options.get("device")}
    return torch.arange(n // 2 + 1, **options) * (1.0 / (n * d))
