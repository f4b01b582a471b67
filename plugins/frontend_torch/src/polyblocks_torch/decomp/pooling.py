"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp.decompositions import adaptive_avg_pool2d as _torch_adaptive_avg_pool2d

from polyblocks_torch.decomp.convolutions import each
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


#: Arguments of pools with a number per dimension, or one for all.
_OF_WINDOWS = {"kernel_size", "stride", "padding", "dilation"}


def adaptive_windows(extent: int, output: int) -> list[tuple[int, int]]:
    """Bounds of the adaptive windows along one dimension."""
    return [(i * extent // output, -(-(i + 1) * extent // output)) for i in range(output)]


def _adaptive_max(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Largest element of each adaptive window and its flat position in the pooled dimensions."""
    count = len(output_size)
    extents = x.shape[-count:]
    flat = math.prod(extents)
    position = torch.arange(flat, device=x.device).reshape(extents).expand(x.shape)
    lead = x.shape[:-count]
    # Every window as a gather along each dimension: [..., out, window] per dimension.
    value: Tensor = x
    mask: Tensor | None = None
    for axis, (extent, output) in enumerate(zip(extents, output_size, strict=True)):
        windows = adaptive_windows(extent, output)
        width = max(stop - start for start, stop in windows)
        start = torch.arange(output, device=x.device) * extent // output
        stop = ((torch.arange(output, device=x.device) + 1) * extent + output - 1) // output
        place = start.unsqueeze(-1) + torch.arange(width, device=x.device)
        valid = place < stop.unsqueeze(-1)
        place = torch.where(valid, place, extent - 1)
        dim = len(lead) + 2 * axis
        value = _gather_windows(value, dim, place)
        position = _gather_windows(position, dim, place)
        shape = [1] * (len(lead) + 2 * count)
        shape[dim], shape[dim + 1] = output, width
        part = valid.reshape(shape)
        mask = part if mask is None else mask & part
    assert mask is not None
    order = [*range(len(lead))] + [len(lead) + 2 * a for a in range(count)]
    order += [len(lead) + 2 * a + 1 for a in range(count)]
    lowest = -torch.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    value = torch.where(mask, value, lowest).permute(order)
    position = position.permute(order)
    rows = [*lead, *output_size, -1]
    value, position = value.reshape(rows), position.reshape(rows)
    best = value.argmax(-1, keepdim=True)
    if x.is_floating_point():
        # The last one that is no number, not the first.
        there = value.isnan()
        last = torch.where(there, torch.arange(value.shape[-1], device=x.device), 0)
        best = torch.where(there.any(-1, keepdim=True), last.amax(-1, keepdim=True), best)
    return value.gather(-1, best).squeeze(-1), position.gather(-1, best).squeeze(-1)


def _gather_windows(x: Tensor, dim: int, place: Tensor) -> Tensor:
    """Replace dimension ``dim`` by two: window, and element of the window."""
    taken = x.index_select(dim, place.reshape(-1))
    return taken.unflatten(dim, place.shape)


@decomposition(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    return _adaptive_max(x, output_size)


@decomposition(aten._adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(x: Tensor, output_size: Sequence[int]) -> Tensor:
    if x.dim() == 4:
        return _torch_adaptive_avg_pool2d(x, output_size)
    return aten._adaptive_avg_pool2d(x.unsqueeze(0), output_size).squeeze(0)


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
