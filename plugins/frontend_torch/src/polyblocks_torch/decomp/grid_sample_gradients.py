"""Gradients of samples of images and volumes: of the elements, and of the places.

Elements are anywhere, so that each sample's contributions are added to memory. The gradient of a
sample's place is a sum of its own.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor
from torch._prims_common import get_computation_dtype

from polyblocks_torch.decomp.grid_samples import (
    BICUBIC,
    NEAREST,
    Axis,
    are_inside,
    axes_of,
    corners,
    cubic,
    in_image,
    unnormalized,
)
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.grid_sampler_2d_backward.default, aten.grid_sampler_3d_backward.default)
def grid_sampler_backward(
    grad: Tensor,
    x: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor]:
    """Gradients of what is sampled and of the grid from that of the samples.

    Args:
        grad: ``[N, C, *samples]``.
        x: ``[N, C, *sizes]``, an image or a volume.
        grid: ``[N, *samples, dims]``.
    """
    sums = _Sums(grad, x, output_mask)
    if interpolation_mode == BICUBIC:
        _bicubic(sums, grid, padding_mode, align_corners)
    else:
        axes = axes_of(x, grid, padding_mode, align_corners)
        sums.slopes = [axis.slope for axis in axes]
        if interpolation_mode == NEAREST:
            sums.add([torch.round(axis.at) for axis in axes], axes, None, None)
        else:
            _linear(sums, axes)
    return sums.of_elements(x.dtype), sums.of_grid(grid)


class _Sums:
    """Gradients of the elements, ``of_x`` ``[N * elements, C]``, and of the samples, ``changes``.

    The channels lie beside each other, so that a place is found once for all of them.
    """

    def __init__(self, grad: Tensor, x: Tensor, output_mask: list[bool]) -> None:
        self.shape, self.sizes = x.shape, x.shape[2:]
        self.dtype = get_computation_dtype(x.dtype)
        self.rows, self.shares = (_channels_last(t).to(self.dtype) for t in (x, grad))
        self.of_x = torch.zeros_like(self.rows)
        self.asked_x, self.asked_grid = output_mask
        #: Along each axis, [N * P, C]; empty as long as nothing changes.
        self.changes: list[Tensor] = []
        #: How places along each axis change with the grid.
        self.slopes: list[Tensor | float] = []

    def add(
        self,
        places: list[Tensor],
        axes: list[Axis],
        weight: Tensor | None,
        changes: list[Tensor] | None,
    ) -> None:
        """Add shares to elements, and elements to what samples change by.

        Args:
            places: whole ones, [N, P] for each axis.
            axes: whose sizes bound them.
            weight: of the elements in the samples [N, P]; None is 1.
            changes: of that weight along each axis, [N, P]; None is 0.
        """
        inside = are_inside(places, axes)
        address = torch.zeros_like(places[0], dtype=torch.int64)
        for place, axis in zip(places, axes, strict=True):
            address = address * axis.size + torch.where(inside, place, 0.0).to(torch.int64)
        batch = torch.arange(self.shape[0], device=address.device)[:, None]
        index = (address + batch * math.prod(self.sizes)).reshape(-1)
        there = inside.reshape(-1, 1)
        if self.asked_x:
            share = self.shares if weight is None else self.shares * weight.reshape(-1, 1)
            share = torch.where(there, share, 0.0)
            self.of_x = aten._unsafe_index_put.default(self.of_x, [index], share, True)
        if not self.asked_grid or changes is None:
            return
        found = aten._unsafe_index.Tensor(self.rows, [index])
        # PyTorch leaves out elements outside of a volume; in an image they count as 0, and an
        # infinite weight makes them NaN.
        if len(axes) == 2:
            found = torch.where(there, found, 0.0)
        parts = [found * change.reshape(-1, 1) for change in changes]
        if len(axes) == 3:
            parts = [torch.where(there, part, 0.0) for part in parts]
        if self.changes:
            parts = [total + part for total, part in zip(self.changes, parts, strict=True)]
        self.changes = parts

    def of_elements(self, dtype: torch.dtype) -> Tensor | None:
        """``[N, C, *sizes]``; None if it is not asked for."""
        if not self.asked_x:
            return None
        rows = self.of_x.reshape(self.shape[0], -1, self.shape[1]).transpose(1, 2)
        return rows.reshape(self.shape).to(dtype)

    def of_grid(self, grid: Tensor) -> Tensor:
        """Of the shape and dtype of the grid."""
        if not self.changes:
            return torch.zeros_like(grid)
        totals = [
            (self.shares * change).sum(1).reshape(grid.shape[0], -1) for change in self.changes
        ]
        moved = [total * slope for total, slope in zip(totals, self.slopes, strict=True)]
        return torch.stack(moved[::-1], -1).reshape(grid.shape).to(grid.dtype)


def _channels_last(x: Tensor) -> Tensor:
    """``[N, C, *sizes]`` -> ``[N * elements, C]``."""
    return x.reshape(*x.shape[:2], -1).transpose(1, 2).reshape(-1, x.shape[1])


def _linear(sums: _Sums, axes: list[Axis]) -> None:
    for places, weights, sides in corners(axes):
        others = [[w for i, w in enumerate(weights) if i != k] for k in range(len(axes))]
        changes = [
            _product(rest) if side else -_product(rest)
            for rest, side in zip(others, sides, strict=True)
        ]
        sums.add(places, axes, _product(weights), changes)


def _bicubic(sums: _Sums, grid: Tensor, padding: int, aligned: bool) -> None:
    """Each of the sixteen elements around a place may be outside, and is brought into the image by
    itself; how it moves then does not count, as in PyTorch.
    """
    grid = grid.to(sums.dtype).reshape(grid.shape[0], -1, 2)
    placed = [unnormalized(grid[..., 1 - k], size, aligned) for k, size in enumerate(sums.sizes)]
    lows = [at.floor() for at, _ in placed]
    axes = [Axis(at, 1.0, size) for (at, _), size in zip(placed, sums.sizes, strict=True)]
    weights, changes = zip(
        *(cubic(at - low) for (at, _), low in zip(placed, lows, strict=True)), strict=True
    )
    around = [
        [in_image(low + (i - 1), size, padding, aligned) for i in range(4)]
        for low, size in zip(lows, sums.sizes, strict=True)
    ]
    sums.slopes = [slope for _, slope in placed]
    for i, j in itertools.product(range(4), repeat=2):
        moved = [changes[0][i] * weights[1][j], weights[0][i] * changes[1][j]]
        sums.add([around[0][i], around[1][j]], axes, weights[0][i] * weights[1][j], moved)


def _product(factors: list[Tensor]) -> Tensor:
    total = factors[0]
    for factor in factors[1:]:
        total = total * factor
    return total
