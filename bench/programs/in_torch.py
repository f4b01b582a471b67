"""The cases in PyTorch: for eager, Inductor, this compiler, and what imports PyTorch's exports."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from bench.constants import (
    BINOMIAL,
    BLUR,
    CONTRAST_FLOOR,
    CORNER_SCALE,
    DIFFUSION,
    GROUPS,
    HARRIS,
    NORM_EPS,
    SHARPNESS,
    STEPS,
)


def blur_x_blur_y(image: Tensor) -> Tensor:
    """A separable blur as two convolutions: C x H x W -> C x (H-4) x (W-4)."""
    channels, height, width = image.shape
    kernel = torch.tensor(BLUR, device=image.device, dtype=image.dtype)
    across = functional.conv2d(image.view(channels, 1, height, width), kernel.view(1, 1, 1, 5))
    down = functional.conv2d(across, kernel.view(1, 1, 5, 1))
    return down.view(channels, height - 4, width - 4)


def elementwise_chain(x: Tensor, y: Tensor) -> Tensor:
    """tanh(xy + 1) sigmoid(y) - exp(-x^2)."""
    return torch.tanh(x * y + 1) * torch.sigmoid(y) - torch.exp(-x * x)


def softmax(x: Tensor) -> Tensor:
    """Softmax of each row."""
    return torch.softmax(x, dim=-1)


def log_softmax(x: Tensor) -> Tensor:
    """Logarithm of the softmax of each row."""
    return torch.log_softmax(x, dim=-1)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Layer normalization of each row."""
    return functional.layer_norm(x, x.shape[-1:], weight, bias, NORM_EPS)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """Root-mean-square normalization of each row."""
    return functional.rms_norm(x, x.shape[-1:], weight, NORM_EPS)


def group_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Normalization over groups of channels: N x C x H x W."""
    return functional.group_norm(x, GROUPS, weight, bias, NORM_EPS)


def total(x: Tensor) -> Tensor:
    """Sum of all elements."""
    return x.sum()


def row_means(x: Tensor) -> Tensor:
    """Mean of each row."""
    return x.mean(dim=1)


def column_means(x: Tensor) -> Tensor:
    """Mean of each column."""
    return x.mean(dim=0)


def row_argmax(x: Tensor) -> Tensor:
    """Where each row's first maximum lies."""
    return x.argmax(dim=1)


def row_cumsum(x: Tensor) -> Tensor:
    """Running sum along each row."""
    return x.cumsum(dim=1)


def _across(x: Tensor, taps: tuple[float, ...]) -> Tensor:
    """Correlation of each row with an odd number of taps; outside of the image is 0."""
    width, reach = x.shape[1], len(taps) // 2
    padded = functional.pad(x, (reach, reach, 0, 0))
    result = taps[0] * padded[:, :width]
    for i, tap in enumerate(taps[1:], 1):
        result = result + tap * padded[:, i : i + width]
    return result


def _down(x: Tensor, taps: tuple[float, ...]) -> Tensor:
    """Correlation of each column with an odd number of taps; outside of the image is 0."""
    height, reach = x.shape[0], len(taps) // 2
    padded = functional.pad(x, (0, 0, reach, reach))
    result = taps[0] * padded[:height]
    for i, tap in enumerate(taps[1:], 1):
        result = result + tap * padded[i : i + height]
    return result


def _blur(x: Tensor) -> Tensor:
    return _down(_across(x, BINOMIAL), BINOMIAL)


def adaptive_sharpen(image: Tensor) -> Tensor:
    """Unsharp masking that follows local contrast and spares corners: H x W -> H x W.

    A gamma-encoded luminance image is made linear; Sobel gradients and their blurred products give
    Harris' corner measure, which becomes a weight; the image minus its blur is the detail, which
    is scaled by the local contrast of the detail itself; the sum is clamped and encoded again.
    Fourteen stencils and eleven point-wise stages; the longest chain of them has ten.
    """
    linear = image * image * (0.8 + 0.2 * image)
    # Gradients: differences one way, smoothed the other way.
    gx = _down(_across(linear, (-0.5, 0.0, 0.5)), (0.25, 0.5, 0.25))
    gy = _down(_across(linear, (0.25, 0.5, 0.25)), (-0.5, 0.0, 0.5))
    # The structure tensor, and what it says about corners.
    xx, yy, xy = _blur(gx * gx), _blur(gy * gy), _blur(gx * gy)
    trace = xx + yy
    corner = xx * yy - xy * xy - HARRIS * trace * trace
    weight = 1 / (1 + CORNER_SCALE * torch.clamp(corner, min=0.0))
    # Detail and its local contrast.
    base = _blur(linear)
    detail = linear - base
    contrast = torch.sqrt(_blur(detail * detail) + CONTRAST_FLOOR)
    gain = SHARPNESS * weight / (1 + contrast / CONTRAST_FLOOR**0.5)
    return torch.sqrt(torch.clamp(base + (1 + gain) * detail, 0.0, 1.0))


def heat(u: Tensor) -> Tensor:
    """Explicit steps of the heat equation on a plate whose border keeps its temperature."""
    for _ in range(STEPS):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        inner = inner + DIFFUSION * (around - 4 * inner)
        middle = torch.cat([u[1:-1, :1], inner, u[1:-1, -1:]], dim=1)
        u = torch.cat([u[:1], middle, u[-1:]], dim=0)
    return u


def transpose(x: Tensor) -> Tensor:
    """The transposed matrix, in row-major order."""
    return x.t().contiguous()


def pad_slice_concat(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Three matrices, padded or cut to one width, below each other."""
    top = functional.pad(a, (8, 8))
    middle = functional.pad(b, (16, 0), value=1.0)[64:-64]
    bottom = functional.pad(c, (32, 32))[::2, 24:-24]
    return torch.cat([top, middle, bottom], dim=0)


def gather_rows(table: Tensor, rows: Tensor) -> Tensor:
    """Rows of a table, by number."""
    return table[rows]
