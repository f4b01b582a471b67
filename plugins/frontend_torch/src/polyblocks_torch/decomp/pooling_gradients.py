"""Gradients of pools: every element sums up what the windows around it give it.

Means are separable: their gradients are summed along one axis after the other. A maximum gives its
gradient to one element, whose position is known: each element compares its own position with those
of the windows that it is in.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyblocks_torch.decomp.axis_maps import AxisMap, taken
from polyblocks_torch.decomp.pooling import adaptive_windows
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

#: Positions are compared where an element is in at most this many windows. Gradients of more of
#: them are scattered.
_COMPARED = 9


def _each(given: Sequence[int], dims: int, default: Sequence[int]) -> list[int]:
    values = list(given or default)
    return values * dims if len(values) == 1 else values


@dataclass(frozen=True)
class _Windows:
    """Windows along one axis.

    Attributes:
        extent: elements along the axis.
        places: int64 ``[windows, elements]``; those of padding are beyond the axis.
        counted: int64 ``[windows]``, by how many elements a mean divides.
    """

    extent: int
    places: NDArray[np.int64]
    counted: NDArray[np.int64]

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which places are no padding."""
        return (self.places >= 0) & (self.places < self.extent)

    def gradient(self) -> AxisMap:
        """The sum, for each element, over the windows that it is in."""
        reads = AxisMap(np.clip(self.places, 0, self.extent - 1), None, self.inside)
        return reads.transposed(self.extent)

    def around(self) -> NDArray[np.int64]:
        """``[extent, n]``, the windows around each element, and others where these are fewer."""
        found = self.gradient()
        if found.present is None:
            return found.places
        count, width = len(self.places), found.places.shape[1]
        rows = []
        for places, present in zip(found.places, found.present, strict=True):
            inside = places[present]
            first, last = (inside[0], inside[-1]) if len(inside) else (places[0], places[0] - 1)
            others = [*range(last + 1, count), *range(first - 1, -1, -1)]
            rows.append(sorted([*inside, *others[: width - len(inside)]]))
        return np.array(rows)


def _windows(
    extent: int,
    count: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int = 1,
    counts_padding: bool = False,
) -> _Windows:
    starts = stride * np.arange(count) - padding
    places = starts[:, None] + dilation * np.arange(kernel)
    ends = np.minimum(starts + kernel, extent + padding)
    if not counts_padding:
        starts, ends = np.maximum(starts, 0), np.minimum(ends, extent)
    return _Windows(extent, places, ends - starts)


def _adaptive(extent: int, count: int) -> _Windows:
    bounds = np.array(adaptive_windows(extent, count))
    sizes = bounds[:, 1] - bounds[:, 0]
    offsets = np.arange(sizes.max())
    places = np.where(offsets < sizes[:, None], bounds[:, :1] + offsets, -1)
    return _Windows(extent, places, sizes)


def _of_means(grad: Tensor, axes: Sequence[_Windows], divisor: int | None) -> Tensor:
    """Gradients of the means of windows, or of their sums divided by ``divisor``."""
    scale, lead = divisor or 1, grad.dim() - len(axes)
    sizes: Tensor | None = None
    for k, axis in enumerate(axes):
        if divisor is not None:
            continue
        if (axis.counted == axis.counted[0]).all():
            scale *= int(axis.counted[0])
            continue
        counted = torch.tensor(axis.counted, dtype=grad.dtype, device=grad.device)
        counted = counted.reshape([-1] + [1] * (len(axes) - 1 - k))
        sizes = counted if sizes is None else sizes * counted
    if sizes is not None or scale != 1:
        grad = grad / (scale if sizes is None else sizes * scale)
    for k, axis in enumerate(axes):
        grad = axis.gradient().apply(grad, lead + k)
    return grad


def _of_maxima(grad: Tensor, positions: Tensor, axes: Sequence[_Windows]) -> Tensor:
    """Gradients of the elements at ``positions``, which are flat ones along the axes."""
    lead, extents = grad.dim() - len(axes), [axis.extent for axis in axes]
    around = [axis.around() for axis in axes]
    # PyTorch says some position of a window of padding alone, which may be that of any element.
    within = all(axis.inside.any(1).all() for axis in axes)
    if not within or math.prod(table.shape[1] for table in around) > _COMPARED:
        shape = [*grad.shape[:lead], -1]
        zeros = grad.new_zeros([*grad.shape[:lead], math.prod(extents)])
        sums = zeros.scatter_add(lead, positions.reshape(shape), grad.reshape(shape))
        return sums.reshape([*grad.shape[:lead], *extents])
    own = torch.arange(math.prod(extents), device=grad.device).reshape(extents)
    total: Tensor | None = None
    for which in itertools.product(*(range(table.shape[1]) for table in around)):
        given, position = grad, positions
        for k, (table, column) in enumerate(zip(around, which, strict=True)):
            places = table[:, column].tolist()
            given, position = (taken(t, lead + k, places) for t in (given, position))
        part = torch.where(position == own, given, 0)
        total = part if total is None else total + part
    assert total is not None
    return total


def _register(dims: int) -> None:
    """Register the gradients for windows with ``dims`` dimensions."""

    @decomposition(getattr(aten, f"avg_pool{dims}d_backward").default)
    def average(
        grad: Tensor,
        x: Tensor,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Tensor:
        kernel = _each(kernel_size, dims, [])
        sizes = zip(
            *(x.shape[-dims:], grad.shape[-dims:], kernel),
            *(_each(stride, dims, kernel), _each(padding, dims, [0])),
            strict=True,
        )
        axes = [_windows(*size, counts_padding=count_include_pad) for size in sizes]
        return _of_means(grad, axes, divisor_override)

    @decomposition(getattr(aten, f"max_pool{dims}d_with_indices_backward").default)
    def maximum(
        grad: Tensor,
        x: Tensor,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool,
        indices: Tensor,
    ) -> Tensor:
        kernel = _each(kernel_size, dims, [])
        sizes = zip(
            *(x.shape[-dims:], grad.shape[-dims:], kernel),
            *(_each(stride, dims, kernel), _each(padding, dims, [0]), _each(dilation, dims, [1])),
            strict=True,
        )
        return _of_maxima(grad, indices, [_windows(*size) for size in sizes])

    @decomposition(getattr(aten, f"_adaptive_avg_pool{dims}d_backward").default)
    def adaptive_average(grad: Tensor, x: Tensor) -> Tensor:
        sizes = zip(x.shape[-dims:], grad.shape[-dims:], strict=True)
        return _of_means(grad, [_adaptive(*size) for size in sizes], None)

    @decomposition(getattr(aten, f"adaptive_max_pool{dims}d_backward").default)
    def adaptive_maximum(grad: Tensor, x: Tensor, indices: Tensor) -> Tensor:
        sizes = zip(x.shape[-dims:], grad.shape[-dims:], strict=True)
        return _of_maxima(grad, indices, [_adaptive(*size) for size in sizes])


for _dims in (2, 3):
    _register(_dims)
