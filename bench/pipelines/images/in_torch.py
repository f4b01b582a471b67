"""The pipelines of several resolutions in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

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


def _at(plane: Tensor, margin: int, dy: int = 0, dx: int = 0) -> Tensor:
    """What lies so far from every pixel that is at least ``margin`` from the border."""
    height, width = plane.shape[-2:]
    top, left = margin + dy, margin + dx
    return plane[..., top : top + height - 2 * margin, left : left + width - 2 * margin]


def _mean(a: Tensor, b: Tensor) -> Tensor:
    return 0.5 * (a + b)


def _calmer(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """The mean of that pair whose members differ less."""
    return torch.where((a - b).abs() < (c - d).abs(), _mean(a, b), _mean(c, d))


def camera(raw: Tensor, curve: Tensor) -> Tensor:
    """A sensor's numbers to a picture: H x W in a Bayer pattern -> 3 x (H-14) x (W-14).

    Hot pixels are held within the range of their neighbours of the same colour; missing colours
    come along the direction in which they change less (green first, then the others' distance from
    green); a matrix makes RGB of the sensor's colours, a table of :data:`CURVE` + 1 entries bends
    the tones, an unsharp mask sharpens.
    """
    around = [_at(raw, 2, *d) for d in ((-2, 0), (2, 0), (0, -2), (0, 2))]
    low = torch.minimum(torch.minimum(around[0], around[1]), torch.minimum(around[2], around[3]))
    high = torch.maximum(torch.maximum(around[0], around[1]), torch.maximum(around[2], around[3]))
    calm = torch.clamp(_at(raw, 2), low, high)
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
    colors = torch.stack([_interleaved(rows) for rows in (red_rows, green_rows, blue_rows)])
    matrix = torch.tensor(COLOR_MATRIX, dtype=raw.dtype, device=raw.device)
    right = torch.einsum("ij,jhw->ihw", matrix, colors - BLACK).clamp(0.0, 1.0)
    place = right * CURVE
    below = place.to(torch.int64).clamp(max=CURVE - 1)
    part = place - below
    bent = curve[below] * (1 - part) + curve[below + 1] * part
    smooth = _weighted(_weighted(bent, TAPS3, -1), TAPS3, -2)
    sharp = _at(bent, 1)
    return (sharp + SHARPEN * (sharp - smooth)).clamp(0.0, 1.0)


def _interleaved(rows: Sequence[Sequence[Tensor]]) -> Tensor:
    """One plane of four: two for the even rows, two for the odd ones."""
    wide = [torch.stack(tuple(row), dim=-1).flatten(-2) for row in rows]
    return torch.stack(wide, dim=-2).flatten(-3, -2)


def _weighted(x: Tensor, taps: Sequence[float], axis: int, stride: int = 1) -> Tensor:
    """Correlation along one axis, without padding."""
    extent = x.shape[axis] - len(taps) + 1
    result = x.new_zeros(())
    for number, tap in enumerate(taps):
        shifted = x.narrow(axis, number, extent)
        if stride == 2:
            shifted = shifted[..., ::2] if axis == -1 else shifted[..., ::2, :]
        result = result + tap * shifted
    return result


def bilateral_grid(image: Tensor) -> Tensor:
    """A bilateral filter on a coarse grid of place and brightness: H x W -> H x W.

    Each pixel adds itself, and one, to the nearest cell; the grid is blurred; each pixel then reads
    it at its own place, between the cells.
    """
    height, width = image.shape
    rows, columns, shades = height // CELL, width // CELL, SHADES + 1
    y = torch.arange(height, device=image.device)[:, None]
    x = torch.arange(width, device=image.device)
    shade = (image * SHADES + 0.5).to(torch.int64)
    cell = ((shade * rows + y // CELL) * columns + x // CELL).flatten()
    empty = image.new_zeros(shades * rows * columns)
    sums = empty.index_add(0, cell, image.flatten())
    counts = empty.index_add(0, cell, torch.ones_like(image).flatten())
    grid = torch.stack([sums, counts]).view(2, 1, shades, rows, columns)
    taps = torch.tensor(TAPS5, dtype=image.dtype, device=image.device)
    for shape in ((5, 1, 1), (1, 5, 1), (1, 1, 5)):
        padding = [extent // 2 for extent in shape]
        grid = functional.conv3d(grid, taps.view(1, 1, *shape), padding=padding)
    # Where -1 and 1 are the middles of the outermost cells.
    down = ((y + 0.5) / CELL - 0.5) * (2 / (rows - 1)) - 1
    across = ((x + 0.5) / CELL - 0.5) * (2 / (columns - 1)) - 1
    places = torch.stack(
        [
            across.to(image.dtype).expand(height, width),
            down.to(image.dtype).expand(height, width),
            image * SHADES * (2 / (shades - 1)) - 1,
        ],
        dim=-1,
    )
    found = functional.grid_sample(
        grid.view(1, 2, shades, rows, columns),
        places[None, None],
        padding_mode="border",
        align_corners=True,
    )[0, :, 0]
    return found[0] / found[1]


def _halved(x: Tensor) -> Tensor:
    """C x H x W at half the resolution, with four taps along each axis."""
    taps = torch.tensor(TAPS4, dtype=x.dtype, device=x.device)
    padded = functional.pad(x[:, None], (1, 1, 1, 1), mode="replicate")
    down = functional.conv2d(padded, taps.view(1, 1, 4, 1), stride=(2, 1))
    return functional.conv2d(down, taps.view(1, 1, 1, 4), stride=(1, 2))[:, 0]


def _doubled(x: Tensor) -> Tensor:
    """C x H x W at twice the resolution, linear between pixels."""
    return functional.interpolate(x[None], scale_factor=2, mode="bilinear")[0]


def interpolation(image: Tensor, known: Tensor) -> Tensor:
    """Fill an image where it is not known, from pyramids: 3 x H x W, H x W of 0 and 1."""
    pyramid = [torch.cat([image * known, known[None]])]
    for _ in range(INTERPOLATION_LEVELS - 1):
        pyramid.append(_halved(pyramid[-1]))
    filled = pyramid[-1]
    for level in reversed(pyramid[:-1]):
        filled = level + (1 - level[3]) * _doubled(filled)
    return filled[:3] / filled[3]


def local_laplacian(image: Tensor) -> Tensor:
    """Local contrast by Laplacian pyramids, one for each of a few shades: H x W -> H x W.

    Paris, Hasinoff and Kautz (2011), in the fast form of Aubry et al. (2014).
    """
    count = LAPLACIAN_SHADES
    shades = torch.arange(count, dtype=image.dtype, device=image.device) / (count - 1)
    apart = image - shades[:, None, None]
    bump = apart * torch.exp(-apart * apart / (2 * DETAIL_RANGE**2))
    remapped = shades[:, None, None] + TONE * apart + DETAIL * bump
    gaussian, inputs = [remapped], [image[None]]
    for _ in range(LAPLACIAN_LEVELS - 1):
        gaussian.append(_halved(gaussian[-1]))
        inputs.append(_halved(inputs[-1]))

    def chosen(pyramid: Tensor, level: Tensor) -> Tensor:
        place = level * (count - 1)
        below = place.to(torch.int64).clamp(0, count - 2)
        part = place - below
        return (1 - part) * pyramid.gather(0, below) + part * pyramid.gather(0, below + 1)

    result = chosen(gaussian[-1], inputs[-1])
    for fine, coarse, level in zip(
        gaussian[-2::-1], gaussian[:0:-1], inputs[-2::-1], strict=True
    ):  # fmt: skip
        result = _doubled(result) + chosen(fine - _doubled(coarse), level)
    return result[0]


def _smaller(x: Tensor) -> Tensor:
    """C x H x W at every other pixel, after five taps along each axis."""
    padded = functional.pad(x[None], (2, 2, 2, 2), mode="replicate")[0]
    return _weighted(_weighted(padded, TAPS5, -2, stride=2), TAPS5, -1, stride=2)


def _larger(x: Tensor) -> Tensor:
    """C x H x W with a pixel between each two, half of either."""
    padded = functional.pad(x[None], (0, 1, 0, 1), mode="replicate")[0]
    rows = torch.stack([padded[:, :-1], _mean(padded[:, :-1], padded[:, 1:])], dim=2).flatten(1, 2)
    left, right = rows[..., :-1], rows[..., 1:]
    return torch.stack([left, _mean(left, right)], dim=-1).flatten(-2)


def blending(one: Tensor, other: Tensor, mask: Tensor) -> Tensor:
    """Two images with a seam that is as wide as what it cuts: 3 x H x W each, H x W.

    Burt and Adelson (1983).
    """
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
