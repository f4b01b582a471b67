"""The filters in JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

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
from bench.programs.in_jax import blur_x_blur_y

__all__ = [
    "bilateral",
    "blur_x_blur_y",
    "canny_edges",
    "harris",
    "median",
    "non_local_means",
    "unsharp_mask",
]


def _filtered(image: Array, kernel: Array) -> Array:
    """H x W with K x L."""
    return lax.conv(image[None, None], kernel[None, None], (1, 1), "VALID")[0, 0]


def unsharp_mask(image: Array) -> Array:
    """Detail is what a blur takes away; where it is more than noise, some is added."""
    blurred = blur_x_blur_y(image)
    sharp = image[:, 2:-2, 2:-2]
    detail = sharp - blurred
    return jnp.where(jnp.abs(detail) < UNSHARP_THRESHOLD, sharp, sharp + UNSHARP_WEIGHT * detail)


def harris(image: Array) -> Array:
    """Harris' corner measure, from gradients summed over 3 x 3 pixels: H x W -> (H-4) x (W-4)."""
    sobel = jnp.array(SOBEL, image.dtype) / SOBEL_SCALE
    gx, gy = _filtered(image, sobel), _filtered(image, sobel.T)
    box = jnp.ones((3, 3), image.dtype)
    xx, yy, xy = _filtered(gx * gx, box), _filtered(gy * gy, box), _filtered(gx * gy, box)
    trace = xx + yy
    return xx * yy - xy * xy - HARRIS * trace * trace


def canny_edges(image: Array) -> Array:
    """See :func:`bench.pipelines.filters.in_torch.canny_edges`."""
    smooth = blur_x_blur_y(image[None])[0]
    sobel = jnp.array(SOBEL, image.dtype)
    gx, gy = _filtered(smooth, sobel), _filtered(smooth, sobel.T)
    size = jnp.sqrt(gx * gx + gy * gy)
    height, width = size.shape

    def beside(dy: int, dx: int) -> Array:
        return size[1 + dy : height - 1 + dy, 1 + dx : width - 1 + dx]

    gx, gy, here = gx[1:-1, 1:-1], gy[1:-1, 1:-1], beside(0, 0)
    directions = [jnp.abs(gy) <= TAN_22 * jnp.abs(gx), jnp.abs(gy) >= TAN_67 * jnp.abs(gx)]
    directions.append(gx * gy > 0)
    one = jnp.select(directions, [beside(0, -1), beside(-1, 0), beside(-1, -1)], beside(-1, 1))
    other = jnp.select(directions, [beside(0, 1), beside(1, 0), beside(1, 1)], beside(1, -1))
    thin = jnp.where((here >= one) & (here > other), here, 0.0)
    strongest = lax.reduce_window(thin, -jnp.inf, lax.max, (3, 3), (1, 1), "VALID")
    edge = jnp.where(strongest >= EDGE_HIGH, 1.0, WEAK).astype(image.dtype)
    return jnp.where(thin[1:-1, 1:-1] >= EDGE_LOW, edge, 0.0)


def _windows(image: Array, reach: int) -> list[Array]:
    """The image as seen from every place of a window."""
    height, width = image.shape[0] - 2 * reach, image.shape[1] - 2 * reach
    places = range(2 * reach + 1)
    return [image[dy : dy + height, dx : dx + width] for dy in places for dx in places]


def median(image: Array) -> Array:
    """Medians of 5 x 5 pixels: H x W -> (H-4) x (W-4)."""
    return jnp.median(jnp.stack(_windows(image, 2)), axis=0)


def bilateral(image: Array) -> Array:
    """Means of 9 x 9 pixels that weigh more the nearer and the more alike they are."""
    reach = BILATERAL_REACH
    distance = jnp.arange(-reach, reach + 1, dtype=image.dtype)
    near = jnp.exp(-distance * distance / (2 * BILATERAL_SPACE**2))
    here = image[reach:-reach, reach:-reach]
    total = weights = jnp.zeros_like(here)
    for place, there in enumerate(_windows(image, reach)):
        row, column = divmod(place, 2 * reach + 1)
        apart = there - here
        alike = jnp.exp(-apart * apart / (2 * BILATERAL_RANGE**2))
        weight = near[row] * near[column] * alike
        total, weights = total + weight * there, weights + weight
    return total / weights


def non_local_means(image: Array) -> Array:
    """Means of 7 x 7 pixels that weigh more the more alike the 3 x 3 pixels around them are."""
    margin, patch = SEARCH_REACH + PATCH_REACH, 2 * PATCH_REACH + 1
    height, width = image.shape[0] - 2 * margin, image.shape[1] - 2 * margin

    def shifted(dy: int, dx: int, wider: int = 0) -> Array:
        top, left = margin + dy - wider, margin + dx - wider
        return image[top : top + height + 2 * wider, left : left + width + 2 * wider]

    total = weights = jnp.zeros((height, width), image.dtype)
    for dy in range(-SEARCH_REACH, SEARCH_REACH + 1):
        for dx in range(-SEARCH_REACH, SEARCH_REACH + 1):
            apart = shifted(dy, dx, PATCH_REACH) - shifted(0, 0, PATCH_REACH)
            squares = lax.reduce_window(apart * apart, 0.0, lax.add, (patch,) * 2, (1, 1), "VALID")
            weight = jnp.exp(-squares / (patch * patch * PATCH_DISTANCE))
            total, weights = total + weight * shifted(dy, dx), weights + weight
    return total / weights
