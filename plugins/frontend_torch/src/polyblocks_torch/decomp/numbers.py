"""Python numbers beside tensors, as PyTorch converts them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyblocks_torch.compat import DROPS_FAR_LIMITS
from polyblocks_torch.elementwise import number_in


def wrapped(value: Any, dtype: torch.dtype) -> int:
    """A number in a type of integers, which keeps its lower bits."""
    return int(number_in(value if dtype == torch.bool else int(value), dtype))


def near(low: Any, high: Any, dtype: torch.dtype) -> tuple[Any, Any]:
    """Limits that integers of a type are clamped to; None for those that PyTorch leaves out.

    Args:
        low: an integer, or None.
        high: likewise.
    """
    if not DROPS_FAR_LIMITS or dtype == torch.bool:
        return low, high
    limits = torch.iinfo(dtype)
    return (
        None if low is None or low < limits.min else low,
        None if high is None or high > limits.max else high,
    )


def wrapped_limits(low: Any, high: Any, dtype: torch.dtype) -> list[int | None]:
    """Limits as :func:`near` has them, in a type of integers."""
    return [None if n is None else wrapped(n, dtype) for n in near(low, high, dtype)]


def number(value: complex, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A number as a tensor without dimensions."""
    exact = dtype.is_floating_point or dtype.is_complex
    return torch.full((), value if exact else wrapped(value, dtype), dtype=dtype, device=device)


def number_like(value: complex, x: Tensor) -> Tensor:
    """A number of the type of a tensor, or of the default one beside integers."""
    dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    return torch.full((), value, dtype=dtype, device=x.device)
