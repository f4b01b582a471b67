"""Resizing of images of bytes, with the fixed-point weights of PyTorch's CPU kernels.

Weights are rounded to 16 bits, with as many behind the point as the largest one leaves, and each
axis yields bytes again::

    y[i] = clamp((half + sum over t of weights[i, t] * x[places[i, t]]) >> precision, 0, 255)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from polyblocks_torch.decomp.axis_maps import AxisMap
from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.decomp.resampling import all_scales, all_sizes
from polyblocks_torch.decomp.resampling_weights import cubic

aten = torch.ops.aten

#: Of an axis: (extent, output, align_corners, outputs for each input, dtype) -> the map.
Weights = Callable[[int, int, bool, float | None, torch.dtype], AxisMap]

#: The most bits behind the point.
_MOST = 22


def resize_bytes(
    x: Tensor,
    output_size: Sequence[int] | None,
    align_corners: bool,
    *scales: Any,
    weights: Weights,
    **named: Any,
) -> Tensor:
    """Resize the axes behind the first two, the last one first.

    Args:
        x: uint8 ``[N, C, height, width]``.
        output_size: of the axes; None where scales say it.
        align_corners: whether the first and last elements stay where they are.
        scales: one for each axis, or a list of them; None for the ratio of sizes.
        weights: of neighbours along an axis.
        named: scales by name.

    Returns:
        uint8 ``[N, C, *output_size]``.
    """
    if x.dim() != 4 or x.device.type != "cpu":
        return NotImplemented  # float32, or no kernel
    factors = all_scales(scales, named, 2)
    output_size = all_sizes(x, output_size, factors)
    result = x
    for dim in reversed(range(2, x.dim())):
        extent, output = x.shape[dim], output_size[dim - 2]
        if extent != output:  # else nothing is done, whatever scale was given
            table = weights(extent, output, align_corners, factors[dim - 2], torch.float64)
            rounded, precision = _in_fixed_point(table)
            total = rounded.apply(result.to(torch.int32), dim) + (1 << (precision - 1))
            result = (total >> precision).clamp(0, 255).to(torch.uint8)
    return result.contiguous(memory_format=suggest_memory_format(x)).clone()


def _register_cubic(op: torch._ops.OpOverload) -> None:
    """PyTorch's own decomposition, but for bytes."""
    decompose = torch._decomp.decomposition_table[op]

    @decomposition(op)
    def resample(x: Tensor, *arguments: Any, **named: Any) -> Tensor:
        if x.dtype is torch.uint8:
            return resize_bytes(x, *arguments, weights=cubic, **named)
        made: Tensor = decompose(x, *arguments, **named)
        return made


for _op in (aten.upsample_bicubic2d.default, aten.upsample_bicubic2d.vec):
    _register_cubic(_op)


def _in_fixed_point(table: AxisMap) -> tuple[AxisMap, int]:
    """A map with whole weights, and how many bits of them are behind the point."""
    assert table.weights is not None
    weights = table.weights.copy()
    if table.present is None:
        # An element that is read more than once, at the border, has one weight.
        for k in range(1, weights.shape[1]):
            again = table.places[:, k] == table.places[:, k - 1]
            weights[again, k] += weights[again, k - 1]
            weights[again, k - 1] = 0
    largest = weights.max()
    fits = (p for p in range(_MOST) if int(0.5 + largest * (1 << (p + 1))) >= 1 << 15)
    precision = next(fits, _MOST)
    whole = np.trunc(weights * (1 << precision) + np.where(weights < 0, -0.5, 0.5))
    return AxisMap(table.places, whole, table.present), precision
