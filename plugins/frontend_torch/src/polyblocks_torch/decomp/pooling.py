"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._decomp.decompositions import adaptive_avg_pool2d as _torch_adaptive_avg_pool2d

from polyblocks_torch.decomp.convolutions import each
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


#: Arguments of pools with a number per dimension, or one for all.
_OF_WINDOWS = {"kernel_size", "stride", "padding", "dilation"}

#: Neighbours in memory that are summed up by loops of their own, twice as fast as through a table
#: of places, in programs of few windows.
LONG_WINDOW = 64
FEW_WINDOWS = 8


def adaptive_windows(extent: int, output: int) -> list[tuple[int, int]]:
    """Bounds of the adaptive windows along one dimension."""
    return [(i * extent // output, -(-(i + 1) * extent // output)) for i in range(output)]


def _windows(x: Tensor, dim: int, output: int) -> tuple[Tensor, Tensor]:
    """The adaptive windows along one dimension.

    Shorter ones are filled up with their last element: all regions are one array.

    Returns:
        ``x`` with two dimensions instead of ``dim``, windows and elements; and which elements are
        no fillers, ``[output, width]``.
    """
    bounds = np.array(adaptive_windows(x.shape[dim], output))
    sizes = bounds[:, 1:] - bounds[:, :1]
    offsets = np.arange(sizes.max())
    places = torch.tensor(bounds[:, :1] + np.minimum(offsets, sizes - 1), device=x.device)
    taken = aten._unsafe_index.Tensor(x, [*[None] * dim, places.reshape(-1)])
    inside = torch.tensor(offsets < sizes, device=x.device)
    return taken.unflatten(dim, inside.shape), inside


def _adaptive_max(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Largest element of each adaptive window and its flat position in the pooled dimensions.

    Dimensions are pooled one after the other. The first of equal elements is the one with the
    lowest position; of those that are no numbers it is the last one.
    """
    count = len(output_size)
    extents = x.shape[-count:]
    flat = math.prod(extents)
    position = torch.arange(flat, device=x.device).reshape(extents).expand(x.shape)
    for axis, output in enumerate(output_size):
        dim = x.dim() - count + axis
        if output == x.shape[dim]:
            continue
        # Windows of the last dimension become rows of neighbours as well.
        swapped = axis == count - 1 > 0
        if swapped:
            x, position = (t.transpose(dim - 1, dim).contiguous() for t in (x, position))
            dim -= 1
        values, _ = _windows(x, dim, output)
        positions, _ = _windows(position, dim, output)
        x = values.amax(dim + 1)
        largest = values == x.unsqueeze(dim + 1)
        position = torch.where(largest, positions, flat).amin(dim + 1)
        if x.is_floating_point():
            last = torch.where(values.isnan(), positions, -1).amax(dim + 1)
            position = torch.where(last >= 0, last, position)
        if swapped:
            x, position = x.transpose(dim, dim + 1), position.transpose(dim, dim + 1)
    return x, position


@decomposition(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    return _adaptive_max(x, output_size)


@decomposition(aten._adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(x: Tensor, output_size: Sequence[int]) -> Tensor:
    extents = x.shape[-2:]
    if all(extent % output == 0 for extent, output in zip(extents, output_size, strict=True)):
        if x.dim() == 4:
            return _torch_adaptive_avg_pool2d(x, output_size)
        return aten._adaptive_avg_pool2d(x.unsqueeze(0), output_size).squeeze(0)
    kind = x.dtype
    x = x.to(torch.float32) if kind in (torch.float16, torch.bfloat16) else x
    for axis, (extent, output) in enumerate(zip(extents, output_size, strict=True)):
        if output == extent:
            continue
        lengths = [stop - start for start, stop in adaptive_windows(extent, output)]
        divisor = torch.tensor(lengths, dtype=x.dtype, device=x.device)
        sums = _window_sums(x, x.dim() - 2 + axis, output)
        x = sums / divisor.reshape([output, 1] if axis == 0 else [output])
    return x.to(kind)


def _window_sums(x: Tensor, dim: int, output: int) -> Tensor:
    """The sums of the adaptive windows along one dimension."""
    windows = adaptive_windows(x.shape[dim], output)
    shortest = min(stop - start for start, stop in windows)
    if dim == x.dim() - 1 and shortest >= LONG_WINDOW and output <= FEW_WINDOWS:
        return torch.stack([x[..., start:stop].sum(-1) for start, stop in windows], -1)
    values, inside = _windows(x, dim, output)
    shape = [1] * values.dim()
    shape[dim : dim + 2] = inside.shape
    return torch.where(inside.reshape(shape), values, 0).sum(dim + 1)


def _with_a_batch(pool: torch._ops.OpOverload, dims: int) -> None:
    """Let a pool of a single image be one of a batch, and give it a number per dimension.

    Args:
        pool: the operator.
        dims: how many dimensions its windows have.
    """
    names = [argument.name for argument in pool._schema.arguments[1:]]

    @decomposition(pool)
    def pooled(x: Tensor, *window: Any, **options: Any) -> Any:
        given = dict(zip(names, window, strict=False)) | options
        is_short = any(len(given.get(name, ())) == 1 < dims for name in _OF_WINDOWS)
        if x.dim() != dims + 1 and not is_short:
            return NotImplemented
        if is_short:
            # Where one is short, torch-mlir reads the first element of each, also of one that has
            # none, as the stride of windows that do not overlap.
            given["stride"] = given.get("stride") or given["kernel_size"]
            for name in _OF_WINDOWS & given.keys():
                given[name] = each(given[name], dims)
        if x.dim() != dims + 1:
            return pool(x, **given)
        found = pool(x.unsqueeze(0), **given)
        return found.squeeze(0) if isinstance(found, Tensor) else tuple(f.squeeze(0) for f in found)


for _pool, _dims in (
    (aten.avg_pool2d.default, 2),
    (aten.avg_pool3d.default, 3),
    (aten.max_pool2d_with_indices.default, 2),
    (aten.max_pool3d_with_indices.default, 3),
):
    _with_a_batch(_pool, _dims)
