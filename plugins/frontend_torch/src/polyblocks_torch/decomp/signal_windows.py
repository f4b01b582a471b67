"""Windows of signal processing other than Hann's, which torch-mlir lowers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


def _window(
    length: int, periodic: bool, options: dict[str, Any], values: Callable[[Tensor, int], Tensor]
) -> Tensor:
    """A window whose elements are computed of 0, 1, … and the last of these.

    Args:
        length: number of elements.
        periodic: whether it is the beginning of a symmetric window that is longer by one.
        options: the dtype and the device; half precision is rounded once.
        values: the elements.
    """
    dtype = options.get("dtype") or torch.get_default_dtype()
    device = options.get("device")
    if length < 2:
        return torch.ones(length, dtype=dtype, device=device)
    last = length if periodic else length - 1
    wide = torch.promote_types(dtype, torch.float32)
    return values(torch.arange(length, dtype=wide, device=device), last).to(dtype)


@decomposition(
    aten.hamming_window.default,
    aten.hamming_window.periodic,
    aten.hamming_window.periodic_alpha,
    aten.hamming_window.periodic_alpha_beta,
)
def hamming_window(
    length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    return _window(
        length, periodic, options, lambda n, last: alpha - (n * (2 * math.pi / last)).cos() * beta
    )


@decomposition(aten.blackman_window.default, aten.blackman_window.periodic)
def blackman_window(length: int, periodic: bool = True, **options: Any) -> Tensor:
    def values(n: Tensor, last: int) -> Tensor:
        angle = n * (math.pi / last)
        return (angle * 4).cos() * 0.08 - (angle * 2).cos() * 0.5 + 0.42

    return _window(length, periodic, options, values)


@decomposition(aten.bartlett_window.default, aten.bartlett_window.periodic)
def bartlett_window(length: int, periodic: bool = True, **options: Any) -> Tensor:
    def values(n: Tensor, last: int) -> Tensor:
        rising = n * (2.0 / last)
        return torch.where(n <= last // 2, rising, 2 - rising)

    return _window(length, periodic, options, values)


@decomposition(aten.kaiser_window.default, aten.kaiser_window.periodic, aten.kaiser_window.beta)
def kaiser_window(length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    def values(n: Tensor, last: int) -> Tensor:
        across = n * (2.0 / last) - 1
        # Rounding may carry the ends beyond 1.
        inside = (1 - across * across).clamp(min=0).sqrt() * beta
        return torch.special.i0(inside) / torch.special.i0(torch.full_like(n, beta))

    return _window(length, periodic, options, values)
