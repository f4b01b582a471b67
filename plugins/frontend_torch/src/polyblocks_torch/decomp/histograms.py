"""Histograms: how many elements, or what weight of them, fall between the edges of bins."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.checks import require

aten = torch.ops.aten


@decomposition(aten.histc.default)
def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    values = x.reshape(-1)
    if values.shape[0] == 0:
        return x.new_zeros((bins,))
    if min == max == 0:
        low, high = values.amin(), values.amax()
        require(low.isfinite() & high.isfinite(), "torch.histc: range is not finite")
    else:
        low = torch.full((), min, dtype=x.dtype, device=x.device)
        high = torch.full((), max, dtype=x.dtype, device=x.device)
    same = low == high
    low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    position = ((values - low) * bins / (high - low)).to(torch.int64)
    inside = (values >= low) & (values <= high)
    position = torch.where(inside, position.clamp(0, bins - 1), 0)
    counts = torch.zeros(bins, dtype=x.dtype, device=x.device)
    return aten._unsafe_index_put.default(counts, [position], inside.to(x.dtype), True)


@decomposition(aten.histogram.bin_ct)
def histogram(
    x: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    points = x.reshape(-1, 1)
    edges = _even_edges(points, [bins], range)
    return _histogram(points, edges, weight, density), edges[0]


@decomposition(aten.histogram.bins_tensor)
def histogram_of_edges(
    x: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    return _histogram(x.reshape(-1, 1), [bins], weight, density), bins.clone()


@decomposition(aten._histogramdd_bin_edges.default)
def histogramdd_bin_edges(
    x: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> list[Tensor]:
    del weight, density
    return _even_edges(x.reshape(-1, x.shape[-1]), bins, range)


@decomposition(aten._histogramdd_from_bin_cts.default)
def histogramdd_from_bin_cts(
    x: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tensor:
    points = x.reshape(-1, x.shape[-1])
    return _histogram(points, _even_edges(points, bins, range), weight, density)


@decomposition(aten._histogramdd_from_bin_tensors.default)
def histogramdd_from_bin_tensors(
    x: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: bool = False
) -> Tensor:
    return _histogram(x.reshape(-1, x.shape[-1]), bins, weight, density)


def _even_edges(
    points: Tensor, bins: Sequence[int], bounds: Sequence[float] | None
) -> list[Tensor]:
    """The edges of bins of equal width in each dimension, [bins + 1], of points [n, dimensions]."""
    made = []
    for number, count in enumerate(bins):
        column = points[:, number]
        if bounds is not None or not column.shape[0]:
            given = (0.0, 1.0) if bounds is None else bounds[2 * number : 2 * number + 2]
            low, high = (column.new_full((), bound) for bound in given)
        else:
            low, high = column.amin(), column.amax()
            require(
                low.isfinite() & high.isfinite(),
                f"torch.histogramdd: dimension {number}'s range is not finite",
            )
        same = low == high
        low, high = torch.where(same, low - 0.5, low), torch.where(same, high + 0.5, high)
        # As linspace has it: from both ends.
        step = (high - low) / count
        place = torch.arange(count + 1, dtype=points.dtype, device=points.device)
        first = place < (count + 1) // 2
        made.append(torch.where(first, low + step * place, high - step * (count - place)))
    return made


def _histogram(
    points: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool
) -> Tensor:
    """Of points [n, dimensions], each in the bin between the edges around it.

    The last edge of a dimension belongs to its last bin, every other one to the bin that it begins.
    """
    extents = [len(edge) - 1 for edge in edges]
    place = torch.zeros(points.shape[0], dtype=torch.int64, device=points.device)
    inside = torch.ones_like(place, dtype=torch.bool)
    for number, (edge, extent) in enumerate(zip(edges, extents, strict=True)):
        column = points[:, number].contiguous()
        inside = inside & (column >= edge[0]) & (column <= edge[-1])
        found = torch.searchsorted(edge, column, right=True) - 1
        place = place * extent + found.clamp(0, extent - 1)
    held = torch.ones_like(points[:, 0]) if weight is None else weight.reshape(-1)
    counts = points.new_zeros(math.prod(extents))
    if points.shape[0]:
        place, held = torch.where(inside, place, 0), torch.where(inside, held, 0)
        counts = aten._unsafe_index_put.default(counts, [place], held, True)
    counts = counts.reshape(extents)
    if not density:
        return counts
    counts = counts / counts.sum()
    for number, edge in enumerate(edges):
        shape = [1] * len(extents)
        shape[number] = -1
        counts = counts / edge.diff().reshape(shape)
    return counts
