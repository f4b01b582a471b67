"""Resampling to the nearest element, and its gradient, with the indices of PyTorch's kernels.

Of an image these leave an axis alone whose size does not change, and halve the indices of one that
doubles, whatever scale was given.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyblocks_torch.decomp.axis_maps import AxisMap, taken
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


def _float32(x: float) -> float:
    """A number as float32 has it."""
    return float(struct.unpack("f", struct.pack("f", x))[0])


def nearest(
    extent: int, output: int, scale: float | None, exact: bool, wide: bool, plain: bool
) -> list[int]:
    """The element that each output is, along one axis.

    Args:
        extent: of the input.
        output: how many there are.
        scale: outputs for each input; None for the ratio of the sizes.
        exact: whether the centers of elements are compared.
        wide: whether places are computed in float64.
        plain: whether equal and doubled sizes are no special cases.
    """
    if not plain and not exact and output in (extent, 2 * extent):
        return [i * extent // output for i in range(output)]
    rounded: Callable[[float], float] = float if wide else _float32
    step = rounded(1.0 / scale if scale is not None and scale > 0 else extent / output)
    found = []
    for i in range(output):
        if not exact:
            place = rounded(i * step)
        elif plain:
            place = rounded(max(rounded(rounded((i + 0.5) * step) - 0.5), 0.0) + 0.5)
        else:
            place = rounded((i + 0.5) * step)
        found.append(min(math.floor(_float32(place)), extent - 1))
    return found


def _resample(
    x: Tensor, output_size: Sequence[int], scales: Sequence[float | None], exact: bool
) -> Tensor:
    # The kernel for images computes in float32 whatever their dtype, and so does that for more
    # than three channels that are last.
    dims = len(output_size)
    last = dims == 3 and x.shape[1] > 3 and not x.is_contiguous()
    last = last and x.is_contiguous(memory_format=torch.channels_last_3d)
    plain = dims != 2 and not last
    for dim, (output, scale) in enumerate(zip(output_size, scales, strict=True), 2):
        extent = x.shape[dim]
        wide = plain and x.dtype == torch.float64
        places = nearest(extent, output, scale, exact, wide, plain)
        x = taken(x, dim, places)
    return x.clone()


def _gradient(
    grad: Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    scales: Sequence[float | None],
    exact: bool,
) -> Tensor:
    for dim, (output, scale) in enumerate(zip(output_size, scales, strict=True), 2):
        extent = input_size[dim]
        places = nearest(extent, output, scale, exact, wide=False, plain=False)
        if places != list(range(extent)):
            reads = AxisMap(np.array(places)[:, None])
            grad = reads.transposed(extent).apply(grad, dim)
    return grad.clone()


def _register(op: str, dims: int, exact: bool) -> None:
    forward, backward = (getattr(aten, f"{op}{dims}d{end}") for end in ("", "_backward"))

    @decomposition(forward.default)
    def resample(
        x: Tensor, output_size: Sequence[int], *scales: float | None, **named: float | None
    ) -> Tensor:
        return _resample(x, output_size, all_scales(scales, named, dims), exact)

    @decomposition(backward.default)
    def gradient(
        grad: Tensor,
        output_size: Sequence[int],
        input_size: Sequence[int],
        *scales: float | None,
        **named: float | None,
    ) -> Tensor:
        return _gradient(grad, output_size, input_size, all_scales(scales, named, dims), exact)


def all_scales(scales: Sequence[Any], named: dict[str, Any], dims: int) -> list[Any]:
    """A scale for each axis, of what an operation was given by place, by name or in a list."""
    given = scales[0] if scales else named.get("scale_factors")
    if isinstance(given, (list, tuple)):
        return list(given)
    names = ["scales"] if dims == 1 else ["scales_d", "scales_h", "scales_w"][-dims:]
    return [*scales, *(named.get(name) for name in names[len(scales) :])]


def all_sizes(
    x: Tensor, output_size: Sequence[int] | None, factors: Sequence[Any]
) -> Sequence[int]:
    """The extents of the resized axes, which follow from scales where they are not given."""
    if output_size is not None:
        return output_size
    return [int(extent * factor) for extent, factor in zip(x.shape[2:], factors, strict=True)]


for _op, _exact in (("upsample_nearest", False), ("_upsample_nearest_exact", True)):
    for _dims in (1, 2, 3):
        _register(_op, _dims, _exact)
