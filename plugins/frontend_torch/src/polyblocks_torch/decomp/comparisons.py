"""Operations on NaN and infinities that torch-mlir computes differently than PyTorch.

torch-mlir compares and selects: a NaN that loses the comparison is lost. PyTorch hands NaN on.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._prims_common import get_computation_dtype

from polyblocks_torch.decomp.numbers import wrapped, wrapped_limits
from polyblocks_torch.decomp.parts import part_of
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

#: Elements from which on an extremum is not known soon enough to read them again from a cache.
_MANY = 1 << 20


def _is_float(*values: Tensor) -> bool:
    return any(value.dtype.is_floating_point for value in values)


@decomposition(aten.maximum.default)
def maximum(x: Tensor, y: Tensor) -> Tensor:
    return torch.where((x > y) | x.isnan(), x, y) if _is_float(x, y) else NotImplemented


@decomposition(aten.minimum.default)
def minimum(x: Tensor, y: Tensor) -> Tensor:
    return torch.where((x < y) | x.isnan(), x, y) if _is_float(x, y) else NotImplemented


def _bounded(x: Tensor, low: float | None, high: float | None) -> Tensor:
    """Elements within numbers, of the type that they have in common; a NaN bounds to NaN."""
    dtype = x.dtype
    for bound in (low, high):
        dtype = dtype if bound is None else torch.promote_types(dtype, torch.result_type(x, bound))
    if not dtype.is_floating_point:
        bounds = wrapped_limits(low, high, dtype)
        if bounds == [None, None]:
            return x.to(dtype, copy=True)
        return NotImplemented if bounds == [low, high] else torch.clamp(x, *bounds)
    x = x.to(dtype)
    if any(bound is not None and math.isnan(bound) for bound in (low, high)):
        return torch.full_like(x, math.nan)
    if low is not None:
        x = torch.where(x < low, low, x)
    return x if high is None else torch.where(x > high, high, x)


@decomposition(aten.clamp.default)
def clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    return _bounded(x, min, max)


@decomposition(aten.clamp_min.default)
def clamp_min(x: Tensor, min: float) -> Tensor:
    return _bounded(x, min, None)


@decomposition(aten.clamp_max.default)
def clamp_max(x: Tensor, max: float) -> Tensor:
    return _bounded(x, None, max)


@decomposition(aten.clamp.Tensor)
def clamp_tensor(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    if min is not None:
        x = clamp_min_tensor(x, min)
    return x if max is None else clamp_max_tensor(x, max)


@decomposition(aten.clamp_min.Tensor)
def clamp_min_tensor(x: Tensor, min: Tensor) -> Tensor:
    dtype = torch.result_type(x, min)
    return torch.maximum(x.to(dtype), min.to(dtype))


@decomposition(aten.clamp_max.Tensor)
def clamp_max_tensor(x: Tensor, max: Tensor) -> Tensor:
    dtype = torch.result_type(x, max)
    return torch.minimum(x.to(dtype), max.to(dtype))


@decomposition(aten.hardtanh.default)
def hardtanh(x: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    if not x.is_floating_point():
        # The numbers are converted, not the tensor.
        bounds = wrapped_limits(min_val, max_val, x.dtype)
        return x.clone() if bounds == [None, None] else torch.clamp(x, *bounds)
    return torch.clamp(x, min_val, max_val)


@decomposition(aten.threshold.default)
def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    if x.is_floating_point():
        # Eager mode compares numbers of 16 bits in float32, with a threshold that was not rounded.
        return torch.where(x.to(get_computation_dtype(x.dtype)) <= threshold, value, x)
    return torch.where(x <= wrapped(threshold, x.dtype), wrapped(value, x.dtype), x)


@decomposition(aten.isin.Scalar_Tensor)
def isin_of_number(
    element: float, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """PyTorch's own takes the number for one of the default type.

    Eager mode compares with few elements in their type, and sorts more with a tensor of the number.
    """
    dtype = torch.result_type(test_elements, element)
    if test_elements.numel() >= 10:
        kind = torch.float64 if isinstance(element, float) else torch.int64
        dtype = torch.promote_types(test_elements.dtype, kind)
    elements = torch.full((), element, dtype=dtype, device=test_elements.device)
    tests = test_elements.to(dtype)
    return torch.isin(elements, tests, assume_unique=assume_unique, invert=invert)


def _arg_extremum(x: Tensor, dim: int, keepdim: bool, largest: bool) -> tuple[Tensor, Tensor]:
    """Extremum along a dimension and its first position; a NaN is an extremum."""
    dim %= x.dim()
    best = x.amax(dim, keepdim=True) if largest else x.amin(dim, keepdim=True)
    shape = [1] * x.dim()
    shape[dim] = -1
    place = torch.arange(x.shape[dim], device=x.device).reshape(shape)
    chosen = (x == best) | x.isnan()
    position = torch.where(chosen, place, x.shape[dim]).amin(dim, keepdim=keepdim)
    return best if keepdim else best.squeeze(dim), position


def _first_of_all(x: Tensor, largest: bool) -> Tensor:
    """The first position of the extremum of all elements, found in parts that are read once."""
    part, flat = part_of(x.numel()), x.reshape(-1)
    if x.numel() < _MANY or not part:
        return _arg_extremum(flat, 0, False, largest)[1]
    best, position = _arg_extremum(flat.reshape(-1, part), 1, False, largest)
    which = _arg_extremum(best, 0, False, largest)[1]
    return which * part + position.index_select(0, which.reshape(1)).reshape(())


def _max_dim(x: Tensor, dim: int, keepdim: bool, largest: bool) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    return _arg_extremum(x, dim, keepdim, largest) if _is_float(x) else NotImplemented


@decomposition(aten.max.dim)
def max_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _max_dim(x, dim, keepdim, largest=True)


@decomposition(aten.min.dim)
def min_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _max_dim(x, dim, keepdim, largest=False)


def _argmax(x: Tensor, dim: int | None, keepdim: bool, largest: bool) -> Tensor:
    if x.dim() == 0:
        return torch.zeros((), dtype=torch.int64, device=x.device)
    if not _is_float(x):
        return NotImplemented
    if dim is None:
        position = _first_of_all(x, largest)
        return position.reshape([1] * x.dim()) if keepdim else position
    return _arg_extremum(x, dim, keepdim, largest)[1]


@decomposition(aten.argmax.default)
def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _argmax(x, dim, keepdim, largest=True)


@decomposition(aten.argmin.default)
def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _argmax(x, dim, keepdim, largest=False)
