"""The filters in TensorFlow."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import Tensor

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
from bench.programs.in_tensorflow import blur_x_blur_y

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
    result = tf.nn.conv2d(image[None, :, :, None], kernel[:, :, None, None], 1, "VALID")
    return result[0, :, :, 0]


def unsharp_mask(image: Tensor) -> Tensor:
    """Detail is what a blur takes away; where it is more than noise, some is added."""
    blurred = blur_x_blur_y(image)
    sharp = image[:, 2:-2, 2:-2]
    detail = sharp - blurred
    return tf.where(tf.abs(detail) < UNSHARP_THRESHOLD, sharp, sharp + UNSHARP_WEIGHT * detail)


def harris(image: Tensor) -> Tensor:
    """Harris' corner measure, from gradients summed over 3 x 3 pixels: H x W -> (H-4) x (W-4)."""
    sobel = tf.constant(SOBEL, image.dtype) / SOBEL_SCALE
    gx, gy = _filtered(image, sobel), _filtered(image, tf.transpose(sobel))
    box = tf.ones((3, 3), image.dtype)
    xx, yy, xy = _filtered(gx * gx, box), _filtered(gy * gy, box), _filtered(gx * gy, box)
    trace = xx + yy
    return xx * yy - xy * xy - HARRIS * trace * trace


def canny_edges(image: Tensor) -> Tensor:
    """See :func:`bench.pipelines.filters.in_torch.canny_edges`."""
    smooth = blur_x_blur_y(image[None])[0]
    sobel = tf.constant(SOBEL, image.dtype)
    gx, gy = _filtered(smooth, sobel), _filtered(smooth, tf.transpose(sobel))
    size = tf.sqrt(gx * gx + gy * gy)
    height, width = size.shape

    def beside(dy: int, dx: int) -> Tensor:
        return size[1 + dy : height - 1 + dy, 1 + dx : width - 1 + dx]

    gx, gy, here = gx[1:-1, 1:-1], gy[1:-1, 1:-1], beside(0, 0)
    flat, steep = tf.abs(gy) <= TAN_22 * tf.abs(gx), tf.abs(gy) >= TAN_67 * tf.abs(gx)
    falling = gx * gy > 0
    one = tf.where(falling, beside(-1, -1), beside(-1, 1))
    other = tf.where(falling, beside(1, 1), beside(1, -1))
    one = tf.where(flat, beside(0, -1), tf.where(steep, beside(-1, 0), one))
    other = tf.where(flat, beside(0, 1), tf.where(steep, beside(1, 0), other))
    thin = tf.where((here >= one) & (here > other), here, tf.zeros_like(here))
    strongest = tf.nn.max_pool2d(thin[None, :, :, None], 3, 1, "VALID")[0, :, :, 0]
    edge = tf.where(strongest >= EDGE_HIGH, 1.0, WEAK)
    return tf.where(thin[1:-1, 1:-1] >= EDGE_LOW, edge, tf.zeros_like(edge))


def _windows(image: Tensor, reach: int) -> list[Tensor]:
    """The image as seen from every place of a window."""
    height, width = image.shape[0] - 2 * reach, image.shape[1] - 2 * reach
    places = range(2 * reach + 1)
    return [image[dy : dy + height, dx : dx + width] for dy in places for dx in places]


def median(image: Tensor) -> Tensor:
    """Medians of 5 x 5 pixels: H x W -> (H-4) x (W-4)."""
    return tf.sort(tf.stack(_windows(image, 2), axis=-1))[..., 12]


def bilateral(image: Tensor) -> Tensor:
    """Means of 9 x 9 pixels that weigh more the nearer and the more alike they are."""
    reach = BILATERAL_REACH
    distance = tf.range(-reach, reach + 1, dtype=image.dtype)
    near = tf.exp(-distance * distance / (2 * BILATERAL_SPACE**2))
    here = image[reach:-reach, reach:-reach]
    total = weights = tf.zeros_like(here)
    for place, there in enumerate(_windows(image, reach)):
        row, column = divmod(place, 2 * reach + 1)
        apart = there - here
        alike = tf.exp(-apart * apart / (2 * BILATERAL_RANGE**2))
        weight = near[row] * near[column] * alike
        total, weights = total + weight * there, weights + weight
    return total / weights


def non_local_means(image: Tensor) -> Tensor:
    """Means of 7 x 7 pixels that weigh more the more alike the 3 x 3 pixels around them are."""
    margin, patch = SEARCH_REACH + PATCH_REACH, 2 * PATCH_REACH + 1
    height, width = image.shape[0] - 2 * margin, image.shape[1] - 2 * margin

    def shifted(dy: int, dx: int, wider: int = 0) -> Tensor:
        top, left = margin + dy - wider, margin + dx - wider
        return image[top : top + height + 2 * wider, left : left + width + 2 * wider]

    total = weights = tf.zeros((height, width), image.dtype)
    for dy in range(-SEARCH_REACH, SEARCH_REACH + 1):
        for dx in range(-SEARCH_REACH, SEARCH_REACH + 1):
            apart = shifted(dy, dx, PATCH_REACH) - shifted(0, 0, PATCH_REACH)
            squares = (apart * apart)[None, :, :, None]
            distance = tf.nn.avg_pool2d(squares, patch, 1, "VALID")[0, :, :, 0]
            weight = tf.exp(-distance / PATCH_DISTANCE)
            total, weights = total + weight * shifted(dy, dx), weights + weight
    return total / weights
