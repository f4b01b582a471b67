"""Reductions of segments of a dimension, ``segment_reduce``, and their gradients.

Shapes: data [outer.., n, inner..], lengths [outer.., s], offsets [outer.., s + 1], results
[outer.., s, inner..]. Here everything goes by offsets, and slots [outer.., s + 2, inner..] hold one
value more on both sides, for elements before the first segment and after the last one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.checks import require

aten = torch.ops.aten

#: The value of a segment without elements, and the name of the reduction of a scatter.
_KINDS = {
    "sum": (0.0, "sum"),
    "mean": (0.0, "sum"),
    "prod": (1.0, "prod"),
    "max": (-math.inf, "amax"),
    "min": (math.inf, "amin"),
}


@decomposition(aten.segment_reduce.default)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    if indices is not None:
        return NotImplemented
    extent = data.shape[axis]
    if lengths is not None and not unsafe:
        require(lengths >= 0, "lengths contains negative value!")
        require(
            lengths.sum(-1) == extent,
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            "data.size(lengths.dim()-1) when !unsafe.",
        )
    offsets = _offsets(lengths, offsets)
    counts = offsets.diff(dim=-1)
    require(
        counts >= 0,
        "Expected segment_length >= 0 to be true, but got false.  (Could this error message be "
        "improved?  If so, please report an enhancement request to PyTorch.)",
    )
    # Eager mode reads what is beyond the data.
    require(
        (offsets >= 0) & (offsets <= extent), "segment_reduce(): a segment ends beyond the data"
    )
    empty, kind = _KINDS[reduce]
    shape = list(data.shape)
    shape[axis] = counts.shape[-1] + 2
    start = empty if initial is None else initial
    slots = torch.full(shape, start, dtype=data.dtype, device=data.device)
    if data.numel():
        places = _along(_segments(offsets, extent), data)
        slots = slots.scatter_reduce(axis, places, data, kind)
    found = slots.narrow(axis, 1, counts.shape[-1])
    if reduce != "mean":
        return found.contiguous()
    alone = found if initial is not None else torch.full_like(found, math.nan)
    counts = _along(counts, found)
    return torch.where(counts > 0, found / counts.to(data.dtype), alone)


@decomposition(aten._segment_reduce_backward.default)
def segment_reduce_backward(
    grad: Tensor,
    output: Tensor,
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    initial: float | None = None,
) -> Tensor:
    if not data.numel() or not grad.numel():
        return torch.zeros_like(data)
    offsets = _offsets(lengths, offsets)
    counts = offsets.diff(dim=-1)
    places = _along(_segments(offsets, data.shape[axis]), data)
    if reduce == "mean":
        grad = grad / _along(counts, grad).to(grad.dtype)
    own = _slots(grad, axis).gather(axis, places)
    # Elements before the first segment and after the last one are in none.
    own = torch.where((places > 0) & (places <= counts.shape[-1]), own, 0)
    if reduce in ("sum", "mean"):
        return own

    def sums(held: Tensor) -> Tensor:
        """How many elements of the segment of each element are held."""
        slots = torch.zeros_like(_slots(grad, axis))
        return slots.scatter_add(axis, places, held.to(grad.dtype)).gather(axis, places)

    result = _slots(output, axis).gather(axis, places)
    nan = data.isnan()
    if reduce in ("max", "min"):
        chosen = nan | (data == result)
        own = torch.where(chosen, own, 0)
        # Eager mode shares out only positive gradients.
        return torch.where(own > 0, own / sums(chosen).clamp(min=1), own)
    zero = data == 0
    start = 1.0 if initial is None else initial
    slots = torch.full_like(_slots(grad, axis), start)
    rest = slots.scatter_reduce(axis, places, torch.where(nan | zero, 1, data), "prod")
    rest = rest.gather(axis, places)
    # Of a zero and of a NaN the product of all others.
    rest = torch.where(sums(zero) - zero.to(grad.dtype) > 0, rest * 0, rest)
    rest = torch.where(sums(nan) - nan.to(grad.dtype) > 0, math.nan, rest)
    return torch.where(nan | zero, own * rest, own * result / data)


def _offsets(lengths: Tensor | None, offsets: Tensor | None) -> Tensor:
    """Where each segment begins, and where the last one ends."""
    if lengths is None:
        assert offsets is not None
        return offsets
    ends = lengths.cumsum(-1, dtype=lengths.dtype)
    return torch.cat([torch.zeros_like(ends[..., :1]), ends], -1)


def _segments(offsets: Tensor, extent: int) -> Tensor:
    """The slot of each place, [outer.., n]."""
    places = torch.arange(extent, dtype=offsets.dtype, device=offsets.device)
    places = places.expand(*offsets.shape[:-1], extent).contiguous()
    return torch.searchsorted(offsets.contiguous(), places, right=True)


def _along(x: Tensor, like: Tensor) -> Tensor:
    """[outer.., k] as [outer.., k, inner..]."""
    inner = like.dim() - x.dim()
    return x.reshape(*x.shape, *[1] * inner).expand(*x.shape, *like.shape[x.dim() :])


def _slots(x: Tensor, axis: int) -> Tensor:
    """A value of zero more on both sides."""
    shape = list(x.shape)
    shape[axis] = 1
    zero = x.new_zeros(shape)
    return torch.cat([zero, x, zero], axis)
