"""Sums of overlapping windows: ``fold``, and what is the gradient of ``unfold``.

PyTorch's own decompositions add every element, or every window, to where it belongs, one after the
other. Here an element of the result is a sum of as many as there are windows over it: of shifted,
padded arrays, along one dimension after the other.
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


@decomposition(aten.unfold_backward.default)
def unfold_backward(
    grad: Tensor, input_sizes: Sequence[int], dim: int, size: int, step: int
) -> Tensor:
    """The gradient of ``Tensor.unfold``, by which ``istft`` adds its frames up as well."""
    if not input_sizes:
        return grad.sum(0)
    axis = dim % len(input_sizes)
    if not grad.numel():
        return grad.new_zeros(list(input_sizes))
    result = _folded(grad.movedim(-1, axis), axis, 1, step, input_sizes[axis])
    # One window may stand for those of all rows, as that of ``istft`` does.
    return result.expand(list(input_sizes)).contiguous()


def _folded(x: Tensor, axis: int, dilation: int, stride: int, extent: int) -> Tensor:
    """Sum windows along a dimension.

    A window is cut into blocks of ``stride`` places, so that block ``b`` of a window lies where
    block 0 of the ``b``-th next one does: the result is the sum of as many arrays as a window has
    blocks.

    Args:
        x: with the places in a window at ``axis``, and the windows at the next one.
        axis: the one that remains.
        dilation: from one place in a window to the next.
        stride: from one window to the next.
        extent: of the result.
    """
    size, count = x.shape[axis : axis + 2]
    reach = (size - 1) * dilation + 1
    inner = [0, 0] * (x.dim() - axis - 1)
    if dilation > 1:
        # Zeros between the places of a window.
        apart = pad(x.unsqueeze(axis + 1), [*inner, 0, dilation - 1])
        x = apart.flatten(axis, axis + 1).narrow(axis, 0, reach)
    blocks, steps = -(-reach // stride), -(-extent // stride)
    total: Tensor | None = None
    for block in range(blocks):
        first = block * stride
        length = min(stride, reach - first)
        # Multiples of the dilation among the places of a block: none if it has only zeros.
        if -(-first // dilation) * dilation >= first + length:
            continue
        places = x.narrow(axis, first, length).transpose(axis, axis + 1)
        ends = [0, stride - length, block, steps - block - count]
        moved = pad(places, [*inner[2:], *ends])
        total = moved if total is None else total + moved
    assert total is not None
    return total.flatten(axis, axis + 1).narrow(axis, 0, extent)
