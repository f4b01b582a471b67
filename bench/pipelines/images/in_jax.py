"""The pipelines of several resolutions in JAX; :mod:`in_torch` beside says what they are."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.ndimage import map_coordinates

from bench.pipelines.constants import (
    BLACK,
    BLEND_LEVELS,
    CELL,
    COLOR_MATRIX,
    CURVE,
    DETAIL,
    DETAIL_RANGE,
    INTERPOLATION_LEVELS,
    LAPLACIAN_LEVELS,
    LAPLACIAN_SHADES,
    SHADES,
    SHARPEN,
    TAPS3,
    TAPS4,
    TAPS5,
    TONE,
)


def _at(plane: Array, margin: int, dy: int = 0, dx: int = 0) -> Array:
    """What lies so far from every pixel that is at least ``margin`` from the border."""
    height, width = plane.shape[-2:]
    top, left = margin + dy, margin + dx
    return plane[..., top : top + height - 2 * margin, left : left + width - 2 * margin]


def _mean(a: Array, b: Array) -> Array:
    return 0.5 * (a + b)


def _calmer(a: Array, b: Array, c: Array, d: Array) -> Array:
    """The mean of that pair whose members differ less."""
    return jnp.where(jnp.abs(a - b) < jnp.abs(c - d), _mean(a, b), _mean(c, d))


def _interleaved(rows: Sequence[Sequence[Array]]) -> Array:
    """One plane of four: two for the even rows, two for the odd ones."""
    height, width = rows[0][0].shape
    wide = [jnp.stack(list(row), axis=-1).reshape(height, 2 * width) for row in rows]
    return jnp.stack(wide, axis=1).reshape(2 * height, 2 * width)


def _weighted(x: Array, taps: Sequence[float], axis: int, stride: int = 1) -> Array:
    """Correlation along one axis, without padding."""
    axis %= x.ndim
    extent = x.shape[axis] - len(taps) + 1
    return sum(
        (
            tap * lax.slice_in_dim(x, number, number + extent, stride, axis)
            for number, tap in enumerate(taps)
        ),
        jnp.zeros((), x.dtype),
    )


def camera(raw: Array, curve: Array) -> Array:
    """A sensor's numbers to a picture: H x W in a Bayer pattern -> 3 x (H-14) x (W-14)."""
    around = jnp.stack([_at(raw, 2, *d) for d in ((-2, 0), (2, 0), (0, -2), (0, 2))])
    calm = jnp.clip(_at(raw, 2), around.min(0), around.max(0))
    # Rows of green and red, rows of blue and green.
    g0, r, b, g1 = calm[0::2, 0::2], calm[0::2, 1::2], calm[1::2, 0::2], calm[1::2, 1::2]
    green_r = _calmer(_at(g0, 1), _at(g0, 1, 0, 1), _at(g1, 1, -1), _at(g1, 1))
    green_b = _calmer(_at(g1, 1, 0, -1), _at(g1, 1), _at(g0, 1), _at(g0, 1, 1))
    # How far red and blue are from green where they were measured: of interior pixels.
    red, blue = _at(r, 1) - green_r, _at(b, 1) - green_b
    g0, g1 = _at(g0, 2), _at(g1, 2)
    here_r, here_b = _at(green_r, 1), _at(green_b, 1)
    diagonal = (_at(red, 1, 1, -1), _at(red, 1), _at(red, 1, 0, -1), _at(red, 1, 1))
    other = (_at(blue, 1, -1, 1), _at(blue, 1), _at(blue, 1, -1), _at(blue, 1, 0, 1))
    red_rows = (
        (g0 + _mean(_at(red, 1, 0, -1), _at(red, 1)), here_r + _at(red, 1)),
        (here_b + _calmer(*diagonal), g1 + _mean(_at(red, 1), _at(red, 1, 1))),
    )
    green_rows = ((g0, here_r), (here_b, g1))
    blue_rows = (
        (g0 + _mean(_at(blue, 1, -1), _at(blue, 1)), here_r + _calmer(*other)),
        (here_b + _at(blue, 1), g1 + _mean(_at(blue, 1), _at(blue, 1, 0, 1))),
    )
    colors = jnp.stack([_interleaved(rows) for rows in (red_rows, green_rows, blue_rows)])
    matrix = jnp.array(COLOR_MATRIX, raw.dtype)
    right = jnp.clip(jnp.einsum("ij,jhw->ihw", matrix, colors - BLACK), 0.0, 1.0)
    place = right * CURVE
    below = jnp.minimum(place.astype(jnp.int32), CURVE - 1)
    part = place - below
    bent = curve[below] * (1 - part) + curve[below + 1] * part
    smooth = _weighted(_weighted(bent, TAPS3, -1), TAPS3, -2)
    sharp = _at(bent, 1)
    return jnp.clip(sharp + SHARPEN * (sharp - smooth), 0.0, 1.0)


def bilateral_grid(image: Array) -> Array:
    """A bilateral filter on a coarse grid of place and brightness: H x W -> H x W."""
    height, width = image.shape
    y, x = jnp.arange(height)[:, None], jnp.arange(width)
    shade = (image * SHADES + 0.5).astype(jnp.int32)
    shape = (2, SHADES + 1, height // CELL, width // CELL)
    values = jnp.stack([image, jnp.ones_like(image)])
    grid = jnp.zeros(shape, image.dtype).at[:, shade, y // CELL, x // CELL].add(values)
    for axis in (1, 2, 3):
        padding = [(2, 2) if axis == other else (0, 0) for other in range(4)]
        grid = _weighted(jnp.pad(grid, padding), TAPS5, axis)
    places = jnp.broadcast_arrays(
        image * SHADES,
        ((y + 0.5) / CELL - 0.5).astype(image.dtype),
        ((x + 0.5) / CELL - 0.5).astype(image.dtype),
    )
    sums, counts = (map_coordinates(part, places, order=1, mode="nearest") for part in grid)
    return sums / counts


def _halved(x: Array) -> Array:
    """C x H x W at half the resolution, with four taps along each axis."""
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1)), mode="edge")
    return _weighted(_weighted(padded, TAPS4, -2, stride=2), TAPS4, -1, stride=2)


def _doubled(x: Array) -> Array:
    """C x H x W at twice the resolution, linear between pixels."""
    channels, height, width = x.shape
    return jax.image.resize(x, (channels, 2 * height, 2 * width), "linear")


def interpolation(image: Array, known: Array) -> Array:
    """Fill an image where it is not known, from pyramids: 3 x H x W, H x W of 0 and 1."""
    pyramid = [jnp.concatenate([image * known, known[None]])]
    for _ in range(INTERPOLATION_LEVELS - 1):
        pyramid.append(_halved(pyramid[-1]))
    filled = pyramid[-1]
    for level in reversed(pyramid[:-1]):
        filled = level + (1 - level[3]) * _doubled(filled)
    return filled[:3] / filled[3]


def local_laplacian(image: Array) -> Array:
    """Local contrast by Laplacian pyramids, one for each of a few shades: H x W -> H x W."""
    count = LAPLACIAN_SHADES
    shades = jnp.arange(count, dtype=image.dtype)[:, None, None] / (count - 1)
    apart = image - shades
    bump = apart * jnp.exp(-apart * apart / (2 * DETAIL_RANGE**2))
    gaussian, inputs = [shades + TONE * apart + DETAIL * bump], [image[None]]
    for _ in range(LAPLACIAN_LEVELS - 1):
        gaussian.append(_halved(gaussian[-1]))
        inputs.append(_halved(inputs[-1]))

    def chosen(pyramid: Array, level: Array) -> Array:
        place = level * (count - 1)
        below = jnp.clip(place.astype(jnp.int32), 0, count - 2)
        part = place - below
        lower, upper = (jnp.take_along_axis(pyramid, n, axis=0) for n in (below, below + 1))
        return (1 - part) * lower + part * upper

    result = chosen(gaussian[-1], inputs[-1])
    for level in reversed(range(LAPLACIAN_LEVELS - 1)):
        detail = gaussian[level] - _doubled(gaussian[level + 1])
        result = _doubled(result) + chosen(detail, inputs[level])
    return result[0]


def _smaller(x: Array) -> Array:
    """C x H x W at every other pixel, after five taps along each axis."""
    padded = jnp.pad(x, ((0, 0), (2, 2), (2, 2)), mode="edge")
    return _weighted(_weighted(padded, TAPS5, -2, stride=2), TAPS5, -1, stride=2)


def _larger(x: Array) -> Array:
    """C x H x W with a pixel between each two, half of either."""
    channels, height, width = x.shape
    padded = jnp.pad(x, ((0, 0), (0, 1), (0, 1)), mode="edge")
    upper, lower = padded[:, :-1], padded[:, 1:]
    rows = jnp.stack([upper, _mean(upper, lower)], axis=2).reshape(channels, 2 * height, width + 1)
    left, right = rows[..., :-1], rows[..., 1:]
    both = jnp.stack([left, _mean(left, right)], axis=-1)
    return both.reshape(channels, 2 * height, 2 * width)


def blending(one: Array, other: Array, mask: Array) -> Array:
    """Two images with a seam that is as wide as what it cuts: 3 x H x W each, H x W."""
    masks, ones, others = [mask[None]], [one], [other]
    for pyramid in (masks, ones, others):
        for _ in range(BLEND_LEVELS - 1):
            pyramid.append(_smaller(pyramid[-1]))
    result = masks[-1] * ones[-1] + (1 - masks[-1]) * others[-1]
    for level in reversed(range(BLEND_LEVELS - 1)):
        first = ones[level] - _larger(ones[level + 1])
        second = others[level] - _larger(others[level + 1])
        result = _larger(result) + masks[level] * first + (1 - masks[level]) * second
    return result
