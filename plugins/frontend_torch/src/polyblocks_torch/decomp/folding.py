"""Sums of overlapping windows: ``fold``, and what is the gradient of ``unfold``.

PyTorch's own decomposition adds every element to where it belongs, one after the other. Here an
element of the result is a sum of as many as there are windows over it: of shifted, padded arrays,
along one dimension after the other. Where windows are ``stride`` apart, elements whose places have
the same remainder by it are sums of the same windows.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.col2im.default)
def col2im(
    x: Tensor,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    batched = x if x.dim() == 3 else x.unsqueeze(0)
    counts = [
        (o + 2 * p - d * (k - 1) - 1) // s + 1
        for o, k, d, p, s in zip(output_size, kernel_size, dilation, padding, stride, strict=True)
    ]
    channels = batched.shape[1] // (kernel_size[0] * kernel_size[1])
    windows = batched.reshape(batched.shape[0], channels, *kernel_size, *counts)
    # The places in a window and the windows of each dimension are neighbours.
    result = windows.permute(0, 1, 2, 4, 3, 5)
    for axis in range(2):
        extent = output_size[axis] + 2 * padding[axis]
        result = _folded(result, 2 + axis, dilation[axis], stride[axis], extent)
        result = result.narrow(2 + axis, padding[axis], output_size[axis])
    return result if x.dim() == 3 else result.squeeze(0)


def _folded(x: Tensor, axis: int, dilation: int, stride: int, extent: int) -> Tensor:
    """Sum windows along a dimension.

    Args:
        x: with the places in a window at ``axis``, and the windows at the next one.
        axis: the one that remains.
        dilation: from one place in a window to the next.
        stride: from one window to the next.
        extent: of the result.
    """
    size, count = x.shape[axis : axis + 2]
    steps = -(-extent // stride)
    phases: list[Tensor | None] = [None] * stride
    for place in range(size):
        shift, phase = divmod(place * dilation, stride)
        inner = [0, 0] * (x.dim() - 2 - axis)
        shifted = pad(x.select(axis, place), [*inner, shift, steps - shift - count])
        total = phases[phase]
        phases[phase] = shifted if total is None else total + shifted
    known = next(total for total in phases if total is not None)
    sums = [torch.zeros_like(known) if total is None else total for total in phases]
    if stride == 1:
        return sums[0]
    return torch.stack(sums, axis + 1).flatten(axis, axis + 1).narrow(axis, 0, extent)
