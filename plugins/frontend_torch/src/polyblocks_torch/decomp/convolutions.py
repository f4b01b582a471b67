"""Gradients of convolutions, and transposed convolutions, as plain convolutions.

torch-mlir lowers neither of them for all groups, strides and paddings; some come out with a wrong
shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.windows import Zeros, windows

aten = torch.ops.aten

#: The gradient of a weight is summed over each image by itself, and then over the images, where
#: the weight has at most this many elements for each one of an image. These sums take less memory
#: than activations with as many channels; and of contractions over all images at once, those over
#: large images take up to four times as long.
_ELEMENTS_PER_PIXEL = 512


@decomposition(aten.convolution.default)
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    dims = weight.dim() - 2
    if not transposed and (groups == 1 or dims < 3):
        return NotImplemented
    stride, padding, dilation = (each(v, dims) for v in (stride, padding, dilation))
    if transposed:
        laid = _Windows(stride, padding, dilation, groups)
        return laid.transposed(x, weight, bias, each(output_padding, dims))
    if not x.dtype.is_floating_point or not x.numel() or not weight.numel():
        return NotImplemented
    taps = weight.reshape(groups, -1, *weight.shape[1:])
    zeros = Zeros([1] * dims, padding, padding, absent=False)
    return _summed(x, taps, bias, stride, dilation, zeros)


@decomposition(aten.conv_tbc.default)
def conv_tbc(x: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    # [time, batch, channels] and [kernel, channels, outputs].
    laid = aten.convolution(
        x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, [1], [pad], [1], False, [0], 1
    )
    return laid.permute(2, 0, 1)


@decomposition(aten.conv_tbc_backward.default)
def conv_tbc_backward(
    grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor, pad: int
) -> tuple[Tensor, Tensor, Tensor]:
    of_x, of_weight, of_bias = aten.convolution_backward(
        grad.permute(1, 2, 0), x.permute(1, 2, 0), weight.permute(2, 1, 0), list(bias.shape),
        [1], [pad], [1], False, [0], 1, [True, True, True],
    )  # fmt: skip
    return of_x.permute(2, 0, 1), of_weight.permute(2, 1, 0), of_bias


@decomposition(aten.convolution_backward.default)
def convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    dims = weight.dim() - 2
    stride, padding, dilation = (each(v, dims) for v in (stride, padding, dilation))
    laid = _Windows(stride, padding, dilation, groups)
    of_x = of_weight = of_bias = None
    if output_mask[0]:
        if not grad.numel() or not weight.numel():
            of_x = torch.zeros_like(x)
        elif transposed:
            # Output padding may have made room for windows that there was no element for.
            of_x = _first(laid.convolution(grad, weight), x.shape[2:])
        else:
            of_x = laid.gradient_of_input(grad, x, weight)
    if output_mask[1]:
        if not grad.numel() or not x.numel():
            of_weight = torch.zeros_like(weight)
        else:
            image, outputs = (grad, x) if transposed else (x, grad)
            of_weight = laid.gradient_of_weight(image, outputs, weight)
    if output_mask[2]:
        of_bias = grad.sum([0, *range(2, grad.dim())])
    return of_x, of_weight, of_bias


class _Windows:
    """How the windows of a convolution lie; one number for each spatial dimension.

    Args:
        stride: elements from one window to the next.
        padding: zeros before and after an image.
        dilation: elements from one tap of a window to the next.
        groups: of channels.
    """

    def __init__(
        self, stride: list[int], padding: list[int], dilation: list[int], groups: int
    ) -> None:
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.none = [0] * len(stride)

    def convolution(self, x: Tensor, weight: Tensor) -> Tensor:
        return aten.convolution(
            x,
            weight,
            None,
            self.stride,
            self.padding,
            self.dilation,
            False,
            self.none,
            self.groups,
        )

    def transposed(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        output_padding: Sequence[int],
        absent: bool = True,
    ) -> Tensor:
        """A transposed convolution: a plain one over what has zeros between its elements.

        Args:
            x: [images, groups * inner, ...].
            weight: [groups * inner, outer, ...].
            bias: [groups * outer].
            output_padding: elements behind the last window.
            absent: whether zeros must not meet the weight.
        """
        dims = len(self.stride)
        low: list[int] = []
        high: list[int] = []
        counts: list[int] = []
        empty = not x.numel() or not weight.numel()
        axes = zip(
            range(2, 2 + dims),
            self.stride,
            self.padding,
            self._margins(weight),
            output_padding,
            strict=True,
        )
        for dim, step, pad, margin, more in axes:
            before, behind = margin - pad, margin - pad + more
            extent = x.shape[dim]
            counts.append((extent - 1) * step + 1 + before + behind - margin)
            # Elements that no result is made of.
            first, last = -(min(0, before) // step), -(min(0, behind) // step)
            if first + last >= extent:
                empty = True
            elif first or last:
                x = x.narrow(dim, first, extent - first - last)
            low.append(before + first * step)
            high.append(behind + last * step)
        if empty:
            found = x.new_zeros([x.shape[0], self.groups * weight.shape[1], *counts])
            return found if bias is None else found + bias.reshape(-1, *[1] * dims)
        inner, outer = weight.shape[0] // self.groups, weight.shape[1]
        taps = weight.flip(list(range(2, 2 + dims)))
        taps = taps.reshape(self.groups, inner, outer, *weight.shape[2:]).transpose(1, 2)
        zeros = Zeros(self.stride, low, high, absent)
        return _summed(x, taps, bias, [1] * dims, self.dilation, zeros)

    def gradient_of_input(self, grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        """The transposed convolution of the gradient; 0 for elements outside all windows."""
        # Elements behind the last window; some may be padding.
        behind = [
            extent + 2 * pad - reach
            for extent, pad, reach in zip(
                x.shape[2:], self.padding, self._reach(grad, weight), strict=True
            )
        ]
        # Without a stride all zeros are padding, which a plain convolution may multiply, too.
        strided = any(step > 1 for step in self.stride)
        return self.transposed(grad, weight, None, behind, absent=strided)

    def gradient_of_weight(self, image: Tensor, outputs: Tensor, weight: Tensor) -> Tensor:
        """Sums of products of what a weight was multiplied with.

        A convolution too: channels and images change places, steps and gaps do, and what the
        windows gave is the window.

        Args:
            image: what the windows read, [images, groups * inner, ...].
            outputs: of the windows, or their gradients, [images, groups * outer, ...].
            weight: [groups * outer, inner, ...].
        """
        # Just what the windows read, so that there are no more sums than elements of the weight.
        widths = [
            (pad, reach - extent - pad)
            for extent, pad, reach in zip(
                image.shape[2:], self.padding, self._reach(outputs, weight), strict=True
            )
        ]
        # A convolution's own padding is the same on both sides.
        alike = [before == after for before, after in widths]
        padding = [n if same else 0 for (n, _), same in zip(widths, alike, strict=True)]
        rest = [(0, 0) if same else pair for pair, same in zip(widths, alike, strict=True)]
        image = _padded(image, rest)
        images, inner = image.shape[0], image.shape[1] // self.groups
        groups = self.groups
        # Sums over parts of the images would round once more.
        exact = weight.dtype in (torch.float32, torch.float64)
        pixels = math.prod(outputs.shape[2:])
        depthwise = groups > 1 and inner == 1
        by_image = exact and not depthwise and weight.numel() <= _ELEMENTS_PER_PIXEL * pixels
        if by_image:
            # Every image has its own groups, of one channel each.
            image = image.reshape(images * groups, inner, *image.shape[2:]).transpose(0, 1)
            window = outputs.reshape(-1, 1, *outputs.shape[2:])
            groups = images * groups
        else:
            image = image.reshape(images, groups, inner, *image.shape[2:]).movedim((2, 1), (0, 1))
            image = image.reshape(inner, groups * images, *image.shape[3:])
            window = outputs.transpose(0, 1)
        found = aten.convolution(
            image,
            window,
            None,
            self.dilation,
            padding,
            self.stride,
            False,
            self.none,
            groups,
        )
        if by_image:
            found = found.reshape(inner, images, weight.shape[0], *found.shape[2:]).sum(1)
        return found.transpose(0, 1)

    def _margins(self, weight: Tensor) -> list[int]:
        """Elements of a window besides its first one, per dimension."""
        return [gap * (n - 1) for n, gap in zip(weight.shape[2:], self.dilation, strict=True)]

    def _reach(self, outputs: Tensor, weight: Tensor) -> list[int]:
        """Elements from the first that a window reads to the last one, per dimension."""
        return [
            (count - 1) * step + margin + 1
            for count, step, margin in zip(
                outputs.shape[2:], self.stride, self._margins(weight), strict=True
            )
        ]


def _first(x: Tensor, sizes: Sequence[int]) -> Tensor:
    """The first elements of each spatial dimension."""
    for dim, size in enumerate(sizes, 2):
        if x.shape[dim] != size:
            x = x.narrow(dim, 0, size)
    return x


def _padded(x: Tensor, widths: Sequence[tuple[int, int]]) -> Tensor:
    """Zeros before and after each spatial dimension; a negative width cuts."""
    cuts = [min(pair) < -extent for pair, extent in zip(widths, x.shape[2:], strict=True)]
    if any(cuts):
        # More than there is, so some of the zeros too.
        x = _padded(x, [(max(0, before), max(0, after)) for before, after in widths])
        widths = [(min(0, before), min(0, after)) for before, after in widths]
    if not any(before or after for before, after in widths):
        return x
    return torch.constant_pad_nd(x, [width for pair in reversed(widths) for width in pair])


def _summed(
    x: Tensor,
    taps: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    dilation: Sequence[int],
    zeros: Zeros,
) -> Tensor:
    """A convolution of [images, groups * inner, ...] with [groups, outer, inner, ...]."""
    found = windows(
        x.reshape(x.shape[0], taps.shape[0], -1, *x.shape[2:]), taps, stride, dilation, zeros
    )
    found = found.reshape(x.shape[0], -1, *found.shape[3:])
    if bias is not None:
        found = found + bias.to(found.dtype).reshape(-1, *[1] * (x.dim() - 2))
    return found.to(taps.dtype)


def each(values: Sequence[int], dims: int) -> list[int]:
    """One value for each dimension."""
    return list(values) * dims if len(values) == 1 else list(values)
