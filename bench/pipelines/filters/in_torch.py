"""The filters in PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from bench.pipelines.constants import (
    BILATERAL_RANGE,
    BILATERAL_REACH,
    BILATERAL_SPACE,
    EDGE_HIGH,
    EDGE_LOW,
    HARRIS,
    PATCH_DISTANCE,
    PATCH_REACH,
    SEARCH_REACH,
    SOBEL,
    SOBEL_SCALE,
    TAN_22,
    TAN_67,
    UNSHARP_THRESHOLD,
    UNSHARP_WEIGHT,
    WEAK,
)
from bench.programs.in_torch import blur_x_blur_y

__all__ = [
    "bilateral",
    "blur_x_blur_y",
    "canny_edges",
    "harris",
    "median",
    "non_local_means",
    "unsharp_mask",
]


def _filtered(image: Tensor, kernel: Tensor) -> Tensor:
    """H x W with K x L."""
    return functional.conv2d(image[None, None], kernel[None, None])[0, 0]


def unsharp_mask(image: Tensor) -> Tensor:
    """Detail is what a blur takes away; where it is more than noise, some is added."""
    blurred = blur_x_blur_y(image)
    sharp = image[:, 2:-2, 2:-2]
    detail = sharp - blurred
    return torch.where(detail.abs() < UNSHARP_THRESHOLD, sharp, sharp + UNSHARP_WEIGHT * detail)


def harris(image: Tensor) -> Tensor:
    """Harris' corner measure, from gradients summed over 3 x 3 pixels: H x W -> (H-4) x (W-4)."""
    sobel = torch.tensor(SOBEL, dtype=image.dtype, device=image.device) / SOBEL_SCALE
    gx, gy = _filtered(image, sobel), _filtered(image, sobel.T)
    box = torch.ones(3, 3, dtype=image.dtype, device=image.device)
    xx, yy, xy = _filtered(gx * gx, box), _filtered(gy * gy, box), _filtered(gx * gy, box)
    trace = xx + yy
    return xx * yy - xy * xy - HARRIS * trace * trace


def canny_edges(image: Tensor) -> Tensor:
    """Edges as thin lines: 1 where they are certain or beside that, less where they are possible.

    A blur, Sobel's gradient, of which only maxima along its own direction stay, and two thresholds:
    H x W -> (H-10) x (W-10).
    """
    smooth = blur_x_blur_y(image[None])[0]
    sobel = torch.tensor(SOBEL, dtype=image.dtype, device=image.device)
    gx, gy = _filtered(smooth, sobel), _filtered(smooth, sobel.T)
    size = torch.sqrt(gx * gx + gy * gy)
    height, width = size.shape

    def beside(dy: int, dx: int) -> Tensor:
        return size[1 + dy : height - 1 + dy, 1 + dx : width - 1 + dx]

    gx, gy, here = gx[1:-1, 1:-1], gy[1:-1, 1:-1], beside(0, 0)
    flat, steep = gy.abs() <= TAN_22 * gx.abs(), gy.abs() >= TAN_67 * gx.abs()
    falling = gx * gy > 0
    one = torch.where(falling, beside(-1, -1), beside(-1, 1))
    other = torch.where(falling, beside(1, 1), beside(1, -1))
    one = torch.where(flat, beside(0, -1), torch.where(steep, beside(-1, 0), one))
    other = torch.where(flat, beside(0, 1), torch.where(steep, beside(1, 0), other))
    thin = torch.where((here >= one) & (here > other), here, torch.zeros_like(here))
    strongest = functional.max_pool2d(thin[None, None], 3, stride=1)[0, 0]
    thin = thin[1:-1, 1:-1]
    edge = torch.where(strongest >= EDGE_HIGH, 1.0, WEAK).to(image.dtype)
    return torch.where(thin >= EDGE_LOW, edge, torch.zeros_like(edge))


def median(image: Tensor) -> Tensor:
    """Medians of 5 x 5 pixels: H x W -> (H-4) x (W-4)."""
    windows = image.unfold(0, 5, 1).unfold(1, 5, 1)
    return windows.reshape(*windows.shape[:2], 25).median(-1).values


def bilateral(image: Tensor) -> Tensor:
    """Means of 9 x 9 pixels that weigh more the nearer and the more alike they are."""
    reach = BILATERAL_REACH
    distance = torch.arange(-reach, reach + 1, dtype=image.dtype, device=image.device)
    near = torch.exp(-distance * distance / (2 * BILATERAL_SPACE**2))
    windows = image.unfold(0, 2 * reach + 1, 1).unfold(1, 2 * reach + 1, 1)
    apart = windows - image[reach:-reach, reach:-reach, None, None]
    alike = torch.exp(-apart * apart / (2 * BILATERAL_RANGE**2))
    weight = near[:, None] * near * alike
    return (weight * windows).sum((-2, -1)) / weight.sum((-2, -1))


def non_local_means(image: Tensor) -> Tensor:
    """Means of 7 x 7 pixels that weigh more the more alike the 3 x 3 pixels around them are."""
    margin = SEARCH_REACH + PATCH_REACH
    height, width = image.shape[0] - 2 * margin, image.shape[1] - 2 * margin
    patch = 2 * PATCH_REACH + 1

    def shifted(dy: int, dx: int, wider: int = 0) -> Tensor:
        top, left = margin + dy - wider, margin + dx - wider
        return image[top : top + height + 2 * wider, left : left + width + 2 * wider]

    total, weights = image.new_zeros(height, width), image.new_zeros(height, width)
    for dy in range(-SEARCH_REACH, SEARCH_REACH + 1):
        for dx in range(-SEARCH_REACH, SEARCH_REACH + 1):
            apart = shifted(dy, dx, PATCH_REACH) - shifted(0, 0, PATCH_REACH)
            distance = functional.avg_pool2d((apart * apart)[None, None], patch, stride=1)[0, 0]
            weight = torch.exp(-distance / PATCH_DISTANCE)
            total = total + weight * shifted(dy, dx)
            weights = weights + weight
    return total / weights
