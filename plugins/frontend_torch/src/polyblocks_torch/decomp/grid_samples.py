"""Samples of images and volumes at given places.

Elements outside count as 0 by selection, not by multiplication, which would keep NaN.
Places, padding and interpolation as in PyTorch's aten/src/ATen/native/GridSampler.h.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch._decomp.decompositions import _upsample_cubic_interp1d
from torch._prims_common import get_computation_dtype

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

BILINEAR, NEAREST, BICUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)


@dataclass(frozen=True)
class Axis:
    """Places along one axis, in elements, and how they change with the grid."""

    at: Tensor
    slope: Tensor | float
    size: int


def unnormalized(grid: Tensor, size: int, aligned: bool) -> tuple[Tensor, float]:
    """Places in elements, of those from -1 to 1."""
    if aligned:
        return (grid + 1) / 2 * (size - 1), (size - 1) / 2
    return ((grid + 1) * size - 1) / 2, size / 2


def _within(axis: Axis, padding: int, aligned: bool, nowhere: float) -> Axis:
    """Places brought into the image, unless zeros are around it; ``nowhere`` is for NaN."""
    at, slope, size = axis.at, axis.slope, axis.size
    if padding == _REFLECTION:
        low, high = (0, 2 * (size - 1)) if aligned else (-1, 2 * size - 1)
        if low == high:
            at, slope = torch.zeros_like(at), 0.0
        else:
            least, span = low / 2, (high - low) / 2
            away = (at - least).abs()
            extra = torch.fmod(away, span)
            turned = torch.fmod(torch.floor(away / span), 2) != 0
            slope = torch.where((at - least < 0) != turned, -slope, slope)
            at = torch.where(turned, span - extra, extra) + least
    if padding != _ZEROS:
        slope = torch.where((at <= 0) | (at >= size - 1), 0.0, slope)
        at = torch.where(at.isnan(), nowhere, at.clamp(0, size - 1))
    return Axis(at, slope, size)


def axes_of(x: Tensor, grid: Tensor, padding: int, aligned: bool) -> list[Axis]:
    """Of (depth,) height and width; the grid has them the other way round."""
    dims = x.dim() - 2
    grid = grid.to(get_computation_dtype(x.dtype)).reshape(grid.shape[0], -1, dims)
    axes = []
    for k, size in enumerate(x.shape[2:]):
        at, slope = unnormalized(grid[..., dims - 1 - k], size, aligned)
        # NaN is the last place of a volume, and the first one of an image.
        nowhere = size - 1.0 if dims == 3 else 0.0
        axes.append(_within(Axis(at, slope, size), padding, aligned, nowhere))
    return axes


def are_inside(places: list[Tensor], axes: list[Axis]) -> Tensor:
    """Which places are those of elements."""
    inside = torch.ones_like(places[0], dtype=torch.bool)
    for place, axis in zip(places, axes, strict=True):
        inside = inside & (place >= 0) & (place <= axis.size - 1)
    return inside


def _flat_addresses(places: list[Tensor], axes: list[Axis], channels: int) -> tuple[Tensor, Tensor]:
    """Addresses [N, C, P] of places, and which of them [N, 1, P] are inside."""
    inside = are_inside(places, axes)
    address = torch.zeros_like(places[0], dtype=torch.int64)
    for place, axis in zip(places, axes, strict=True):
        address = address * axis.size + torch.where(inside, place, 0.0).to(torch.int64)
    shape = (address.shape[0], channels, address.shape[1])
    return address[:, None].expand(shape), inside[:, None]


def corners(axes: list[Axis]) -> list[tuple[list[Tensor], list[Tensor], list[int]]]:
    """The places around each: where, the weights along the axes, and on which sides."""
    lows = [torch.floor(axis.at) for axis in axes]
    found = []
    for sides in itertools.product((0, 1), repeat=len(axes)):
        places = [low + side for low, side in zip(lows, sides, strict=True)]
        weights = [
            axis.at - low if side else low + 1 - axis.at
            for axis, low, side in zip(axes, lows, sides, strict=True)
        ]
        found.append((places, weights, list(sides)))
    return found


@decomposition(aten.grid_sampler_3d.default)
def grid_sampler_3d(
    x: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """[N, C, D, H, W] at [N, d, h, w, 3] gives [N, C, d, h, w]."""
    axes = axes_of(x, grid, padding_mode, align_corners)
    batch, channels = x.shape[:2]
    flat = x.reshape(batch, channels, -1)
    dtype = get_computation_dtype(x.dtype)
    if interpolation_mode == NEAREST:
        address, inside = _flat_addresses([torch.round(axis.at) for axis in axes], axes, channels)
        result = torch.where(inside, flat.gather(2, address), 0.0)
    else:
        result = torch.zeros((), dtype=dtype, device=x.device)
        for places, (a, b, c), _ in corners(axes):
            address, inside = _flat_addresses(places, axes, channels)
            share = flat.gather(2, address).to(dtype) * (a * b * c)[:, None]
            result = result + torch.where(inside, share, 0.0)
    return result.to(x.dtype).reshape(batch, channels, *grid.shape[1:4])


@decomposition(aten.grid_sampler_2d.default)
def grid_sampler_2d(
    x: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """[N, C, H, W] at [N, h, w, 2] gives [N, C, h, w]."""
    batch, channels, height, width = x.shape
    # Of all channels: everything that is computed has the shape of the result.
    grid = grid.unsqueeze(1).expand(batch, channels, *grid.shape[1:])
    row = torch.arange(batch, device=x.device).reshape(-1, 1, 1, 1)
    channel = torch.arange(channels, device=x.device).reshape(-1, 1, 1)

    def value(down: Tensor, across: Tensor) -> Tensor:
        """Elements at whole places; 0 outside."""
        inside = (across >= 0) & (across < width) & (down >= 0) & (down < height)
        places = [torch.where(inside, at.to(torch.int64), 0) for at in (down, across)]
        return torch.where(inside, aten.index.Tensor(x, [row, channel, *places]), 0.0)

    if interpolation_mode == BICUBIC:
        return _bicubic(value, grid, (height, width), padding_mode, align_corners)
    down, across = (
        in_image(
            unnormalized(grid[..., k], size, align_corners)[0], size, padding_mode, align_corners
        )
        for k, size in ((1, height), (0, width))
    )
    if interpolation_mode == NEAREST:
        return value(torch.round(down), torch.round(across))
    left, above = across.floor(), down.floor()
    right, below = left + 1, above + 1
    return (
        value(above, left) * ((right - across) * (below - down))
        + value(above, right) * ((across - left) * (below - down))
        + value(below, left) * ((right - across) * (down - above))
        + value(below, right) * ((across - left) * (down - above))
    )


def in_image(at: Tensor, size: int, padding: int, aligned: bool) -> Tensor:
    """Places brought into an image, where what is no number is the first one."""
    return _within(Axis(at, 1.0, size), padding, aligned, 0.0).at


def _bicubic(
    value: Callable[[Tensor, Tensor], Tensor],
    grid: Tensor,
    sizes: tuple[int, int],
    padding: int,
    aligned: bool,
) -> Tensor:
    """Cubics through four elements along each axis, which may be outside."""
    height, width = sizes
    across, _ = unnormalized(grid[..., 0], width, aligned)
    down, _ = unnormalized(grid[..., 1], height, aligned)
    left, above = across.floor(), down.floor()

    def element(row: int, column: int) -> Tensor:
        places = (above + (row - 1), height), (left + (column - 1), width)
        return value(*(in_image(at, size, padding, aligned) for at, size in places))

    rows = [
        _upsample_cubic_interp1d([element(row, column) for column in range(4)], across - left)
        for row in range(4)
    ]
    result: Tensor = _upsample_cubic_interp1d(rows, down - above)
    return result
