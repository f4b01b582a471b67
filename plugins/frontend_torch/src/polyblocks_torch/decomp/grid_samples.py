"""Samples of images and volumes at given places.

Elements outside count as 0 by selection, not by multiplication, which would keep NaN.
Places, padding and interpolation as in PyTorch's aten/src/ATen/native/GridSampler.h.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
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
    row = torch.arange(batch, device=x.device).reshape(-1, 1, 1, 1)
    channel = torch.arange(channels, device=x.device).reshape(-1, 1, 1)

    def value(down: _Place, across: _Place) -> Tensor:
        """Elements at whole places [N, 1, h, w] of all channels; 0 outside."""
        found = aten.index.Tensor(x, [row, channel, down.index, across.index])
        return torch.where(down.inside & across.inside, found, 0.0)

    grid = grid.unsqueeze(1)
    if interpolation_mode == BICUBIC:
        return _bicubic(value, grid, (batch, channels, height, width), padding_mode, align_corners)
    # Of all channels: everything that is computed has the shape of the result.
    grid = grid.expand(batch, channels, *grid.shape[2:])
    places = [
        (unnormalized(grid[..., k], size, align_corners)[0], size)
        for k, size in ((1, height), (0, width))
    ]
    down, across = (in_image(at, size, padding_mode, align_corners) for at, size in places)
    if interpolation_mode == NEAREST:
        return value(_Place(torch.round(down), height), _Place(torch.round(across), width))
    left, above = across.floor(), down.floor()
    right, below = left + 1, above + 1
    upper, lower = _Place(above, height), _Place(below, height)
    first, second = _Place(left, width), _Place(right, width)
    return (
        value(upper, first) * ((right - across) * (below - down))
        + value(upper, second) * ((across - left) * (below - down))
        + value(lower, first) * ((right - across) * (down - above))
        + value(lower, second) * ((across - left) * (down - above))
    )


class _Place:
    """Whole places along one axis.

    Attributes:
        inside: which of them are those of elements.
        index: int64; 0 for all others.
    """

    def __init__(self, at: Tensor, size: int) -> None:
        self.inside = (at >= 0) & (at < size)
        # Numbers that are chosen before they are converted are known to be in range.
        self.index = torch.where(self.inside, at, 0.0).to(torch.int64)


def in_image(at: Tensor, size: int, padding: int, aligned: bool) -> Tensor:
    """Places brought into an image, where what is no number is the first one."""
    return _within(Axis(at, 1.0, size), padding, aligned, 0.0).at


def _bicubic(
    value: Callable[[_Place, _Place], Tensor],
    grid: Tensor,
    shape: tuple[int, ...],
    padding: int,
    aligned: bool,
) -> Tensor:
    """Cubics through four elements along each axis, which may be outside.

    Args:
        value: elements at places.
        grid: [N, 1, h, w, 2].
        shape: of the image.
        padding, aligned: as PyTorch has them.
    """
    around, weights = [], []
    for k, size in ((1, shape[2]), (0, shape[3])):
        at, _ = unnormalized(grid[..., k], size, aligned)
        # Computed once for sixteen elements, and expanded to all channels.
        low, rest = (t.expand(*shape[:2], *at.shape[2:]) for t in (at.floor(), at - at.floor()))
        places = [in_image(low + (i - 1), size, padding, aligned) for i in range(4)]
        around.append([_Place(place, size) for place in places])
        weights.append(cubic(rest)[0])
    down, across = around
    rows = [_weighted([value(row, column) for column in across], weights[1]) for row in down]
    return _weighted(rows, weights[0])


def _weighted(parts: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    return sum((a * b for a, b in zip(parts[1:], weights[1:], strict=True)), parts[0] * weights[0])


def cubic(t: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Weights of four elements, the second one ``t`` before a place, and their changes."""
    a = -0.75

    def far(x: Tensor) -> tuple[Tensor, Tensor]:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a, (3 * a * x - 10 * a) * x + 8 * a

    def near(x: Tensor) -> tuple[Tensor, Tensor]:
        return (
            ((a + 2) * x - (a + 3)) * x * x + 1,
            (3 * (a + 2) * x - 2 * (a + 3)) * x,
        )

    before, behind = (far(t + 1), near(t)), (near(1 - t), far(2 - t))
    weights = [weight for weight, _ in (*before, *behind)]
    return weights, [change for _, change in before] + [-change for _, change in behind]
