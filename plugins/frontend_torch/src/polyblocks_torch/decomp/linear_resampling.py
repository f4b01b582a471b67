"""Resampling with weights that fall off linearly, as PyTorch's kernels compute it.

PyTorch's own decomposition computes ``a + (b - a) * w``, which is NaN beside an infinity. Its
kernels compute ``a * (1 - w) + b * w``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from polyblocks_torch.decomp.byte_resampling import resize_bytes
from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.decomp.resampling import all_scales, all_sizes
from polyblocks_torch.decomp.resampling_weights import linear
from polyblocks_torch.importing.opmath import NARROW

aten = torch.ops.aten

#: Packets -> how many axes they resample.
LINEAR = {"upsample_linear1d": 1, "upsample_bilinear2d": 2, "upsample_trilinear3d": 3}


def resample_linearly(
    x: Tensor, output_size: Sequence[int] | None, align_corners: bool, *scales: Any, **named: Any
) -> Tensor:
    """``upsample_linear1d``, ``upsample_bilinear2d`` and ``upsample_trilinear3d``.

    Args:
        x: ``[N, C, *axes]``.
        output_size: of the axes; None where scales say it.
        align_corners: whether the first and last elements stay where they are.
        scales: one for each axis, or a list of them; None for the ratio of sizes.
        named: scales by name.

    Returns:
        ``[N, C, *output_size]``, of the dtype of ``x``.
    """
    factors = all_scales(scales, named, x.dim() - 2)
    output_size = all_sizes(x, output_size, factors)
    wide = x.to(torch.float32) if x.dtype in NARROW or not x.is_floating_point() else x
    axes = [
        _Axis(wide, dim, output, align_corners, factor)
        for dim, (output, factor) in enumerate(zip(output_size, factors, strict=True), 2)
    ]
    values = [
        aten._unsafe_index.Tensor(
            wide, [None, None, *(axis.places[k] for axis, k in zip(axes, which, strict=True))]
        )
        for which in itertools.product((0, 1), repeat=len(axes))
    ]
    for axis in reversed(axes):
        low, high = axis.weights
        values = [a * low + b * high for a, b in zip(values[::2], values[1::2], strict=True)]
    (result,) = values
    format_ = suggest_memory_format(x)
    if x.device.type != "cpu" and x.shape[1] < 16:
        format_ = torch.contiguous_format
    result = result.contiguous(memory_format=format_)
    return (result if x.is_floating_point() else result.round()).to(x.dtype)


class _Axis:
    """Between which elements the outputs along one axis lie.

    Attributes:
        places: of the elements before and behind; one index for each output, with extents of 1
            for the axes that follow.
        weights: of both, alike.
    """

    def __init__(
        self, x: Tensor, dim: int, output: int, align_corners: bool, factor: float | None
    ) -> None:
        extent = x.shape[dim]
        target = torch.arange(output, device=x.device).to(x.dtype)
        if output == extent:
            # Whatever scale was given.
            place = target
        elif align_corners:
            place = target * ((extent - 1) / (output - 1) if output > 1 else 0.0)
        else:
            step = 1.0 / factor if factor is not None and factor > 0 else extent / output
            place = ((target + 0.5) * step - 0.5).clamp(min=0.0)
        place = place.reshape(-1, *[1] * (x.dim() - 1 - dim))
        before = place.to(torch.int64)
        after = before if output == extent else (before + 1).clamp(max=extent - 1)
        high = (place - before).clamp(0.0, 1.0)
        self.places = before, after
        self.weights = 1.0 - high, high


def _register(packet: Any) -> None:
    def resample(x: Tensor, *arguments: Any, **named: Any) -> Tensor:
        if x.dtype is torch.uint8:
            return resize_bytes(x, *arguments, weights=linear, **named)
        return resample_linearly(x, *arguments, **named)

    for op in (packet.default, packet.vec):
        decomposition(op)(resample)


for _name in LINEAR:
    _register(getattr(aten, _name))
