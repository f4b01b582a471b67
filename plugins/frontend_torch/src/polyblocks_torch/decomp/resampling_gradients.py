"""Gradients of resizes with weights, and resizes that smooth what they shrink.

Both are sums along one axis after the other, of tables of neighbours and their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyblocks_torch.decomp.axis_maps import AxisMap
from polyblocks_torch.decomp.byte_resampling import Weights, resize_bytes
from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.decomp.resampling import all_scales
from polyblocks_torch.decomp.resampling_weights import (
    antialiased,
    cubic,
    keys,
    lanczos,
    linear,
    triangle,
)

aten = torch.ops.aten


def _register_gradient(packet: Any, dims: int, weights: Weights) -> None:
    @decomposition(packet.default)
    def gradient(
        grad: Tensor,
        output_size: Sequence[int],
        input_size: Sequence[int],
        align_corners: bool,
        *scales: float | None,
        **named: float | None,
    ) -> Tensor:
        if list(output_size) == list(input_size[2:]) and weights in (linear, cubic):
            return grad.clone()  # whatever scales were given
        total = grad
        factors = all_scales(scales, named, dims)
        for dim, factor in enumerate(factors, 2):
            extent, output = input_size[dim], output_size[dim - 2]
            table = weights(extent, output, align_corners, factor, grad.dtype)
            total = table.transposed(extent).apply(total, dim)
        return total.clone() if total is grad else total


def _smoothing(support: int, kernel: Any) -> Weights:
    def weights(
        extent: int, output: int, align_corners: bool, factor: float | None, dtype: torch.dtype
    ) -> AxisMap:
        return antialiased(extent, output, align_corners, factor, dtype, support, kernel)

    return weights


for _name, _dims in (("upsample_linear1d", 1), ("upsample_bilinear2d", 2)):
    _register_gradient(getattr(aten, f"{_name}_backward"), _dims, linear)
_register_gradient(aten.upsample_trilinear3d_backward, 3, linear)
_register_gradient(aten.upsample_bicubic2d_backward, 2, cubic)


def _register_smoothing(name: str, support: int, kernel: Any) -> None:
    weights = _smoothing(support, kernel)
    _register_gradient(getattr(aten, f"{name}_backward"), 2, weights)

    @decomposition(getattr(aten, name).default)
    def resize(
        x: Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        *scales: float | None,
        **named: float | None,
    ) -> Tensor:
        if x.dtype is torch.uint8:
            return resize_bytes(x, output_size, align_corners, *scales, weights=weights, **named)
        if not x.is_floating_point():
            return NotImplemented
        result = x
        # The last axis first, as PyTorch does it.
        for dim, factor in reversed([*enumerate(all_scales(scales, named, 2), 2)]):
            extent, output = x.shape[dim], output_size[dim - 2]
            if extent != output:  # else nothing is done, whatever scale was given
                table = weights(extent, output, align_corners, factor, x.dtype)
                result = table.apply(result, dim)
        return result.clone() if result is x else result


_register_smoothing("_upsample_bilinear2d_aa", 1, triangle)
_register_smoothing("_upsample_bicubic2d_aa", 2, keys)
_register_smoothing("_upsample_lanczos2d_aa", 3, lanczos)
