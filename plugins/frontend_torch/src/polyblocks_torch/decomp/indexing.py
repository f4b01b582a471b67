"""Gathers, scatters and searches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.checks import require

aten = torch.ops.aten

#: Booleans that are added are counted, for torch-mlir's sum of two of them is their difference.
_COUNT = torch.int64


@decomposition(aten.put.default)
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = x.reshape(-1)
    index = torch.where(index < 0, index + flat.shape[0], index).reshape(-1)
    return aten._unsafe_index_put.default(flat, [index], source.reshape(-1), accumulate).reshape(
        x.shape
    )


@decomposition(aten.take.default)
def take(x: Tensor, index: Tensor) -> Tensor:
    """Whatever the shape of the index: Python takes one without dimensions for a number."""
    return aten.index.Tensor(x.reshape(-1), [index.reshape(-1)]).reshape(index.shape)


@decomposition(aten.index.Tensor)
def index(x: Tensor, indices: list[Tensor | None]) -> Tensor:
    """torch-mlir compares places with extents, which have 64 bits."""
    if not any(i is not None and i.dtype == torch.int32 for i in indices):
        return NotImplemented
    wide = [i.to(torch.int64) if i is not None and i.dtype == torch.int32 else i for i in indices]
    return aten.index.Tensor(x, wide)


# Of what is stored at indices, ``_unsafe_index_put`` is what is left: its indices count from the
# front, and a check that one of them is out of bounds stops the program.


@decomposition(aten._unsafe_index_put.default)
def index_put_from_front(
    x: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """A sum of booleans is true if any of them is."""
    if accumulate and x.dtype == torch.bool:
        counts = aten._unsafe_index_put.default(x.to(_COUNT), indices, values.to(_COUNT), True)
        return counts.to(torch.bool)
    return NotImplemented


@decomposition(aten.index_put.default)
def index_put(
    x: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Negative indices count from the end; a mask, also one of bytes, chooses places.

    Where every place that a mask chooses gets the same values, it does not matter how many there
    are. Else there must be as many as values.
    """
    given = [i for i in indices if i is not None]
    if not any(i.dtype in (torch.bool, torch.uint8) for i in given):
        ahead = [
            None if i is None else torch.where(i < 0, i + extent, i)
            for i, extent in zip(indices, x.shape, strict=False)
        ]
        return _put_between(x, ahead, values, accumulate)
    if accumulate and x.dtype == torch.bool:
        counts = aten.index_put.default(x.to(_COUNT), indices, values.to(_COUNT), True)
        return counts.to(torch.bool)
    while indices[-1] is None:
        indices = indices[:-1]
    masks = [i.to(torch.bool) if i is not None and i.dtype == torch.uint8 else i for i in indices]
    if len(given) > 1:
        return _left_masked(x, indices, masks, values, accumulate)
    mask = given[0].to(torch.bool)
    inner = x.dim() - len(indices) + 1 - mask.dim()
    # The chosen places are one dimension of the values.
    place = values.dim() - inner - 1
    if place >= 0:
        if values.shape[place] != 1:
            values = _to_chosen(x, mask, len(indices) - 1, values)
            return torch.where(
                mask.reshape(*mask.shape, *[1] * inner), x + values if accumulate else values, x
            )
        shape = values.shape
        values = values.reshape(*shape[:place], *[1] * mask.dim(), *shape[place + 1 :])
    if accumulate:
        values = x + values
    return torch.where(mask.reshape(*mask.shape, *[1] * inner), values, x)


def _to_chosen(x: Tensor, mask: Tensor, dim: int, values: Tensor) -> Tensor:
    """Values of the chosen places, in order, as values of all places.

    Args:
        x: [lead, extents of the mask, inner].
        mask: booleans that choose places of some dimensions.
        dim: the first of these.
        values: what broadcasts to [lead, n, inner]; the program fails unless n places are chosen.

    Returns:
        As ``x``; anything where the mask is false.
    """
    lead, inner = x.shape[:dim], x.shape[dim + mask.dim() :]
    count = values.shape[values.dim() - 1 - len(inner)]
    chosen = mask.reshape(-1)
    places = chosen.to(torch.int64).cumsum(0)
    require(
        chosen.sum() == count,
        f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
        f"indexing result of another shape than {[*lead, count, *inner]}",
    )
    if not count or not chosen.numel():
        return x
    # Where the check fails, nothing is read beyond the values.
    places = (places - 1).clamp(0, count - 1)
    wide = values.to(x.dtype).expand(*lead, count, *inner)
    return wide.index_select(dim, places).reshape(x.shape)


def _put_between(
    x: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool
) -> Tensor:
    """Indices of dimensions that do not lie beside each other come first, as in the values."""
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    if dims[-1] - dims[0] < len(dims):
        return aten._unsafe_index_put.default(x, indices, values, accumulate)
    order = dims + [dim for dim in range(x.dim()) if dim not in dims]
    moved, given = x.permute(order), [index for index in indices if index is not None]
    put = aten._unsafe_index_put.default(moved, given, values, accumulate)
    return put.permute([order.index(dim) for dim in range(x.dim())])


def _left_masked(
    x: Tensor,
    given: list[Tensor | None],
    masks: list[Tensor | None],
    values: Tensor,
    accumulate: bool,
) -> Tensor:
    """The call with masks of booleans, unless it has them already."""
    if all(a is b for a, b in zip(given, masks, strict=True)):
        return NotImplemented
    return aten.index_put.default(x, masks, values, accumulate)


@decomposition(aten.index_copy.default)
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return _at_rows(x, dim, index, source, accumulate=False)


@decomposition(aten.index_add.default)
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    return _at_rows(x, dim, index, source if alpha == 1 else source * alpha, accumulate=True)


@decomposition(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(x: Tensor, dim: int, index: Tensor, value: float | Tensor) -> Tensor:
    """Of these three, the one that counts negative indices from the end."""
    if not isinstance(value, Tensor):
        value = torch.full((), value, dtype=x.dtype, device=x.device)
    rows = x.reshape(1) if not x.dim() else x
    shape = list(rows.shape)
    shape[dim] = index.numel()
    extent = rows.shape[dim]
    ahead = torch.where(index < 0, index + extent, index)
    return _at_rows(x, dim, ahead, value.to(x.dtype).expand(shape), accumulate=False)


def _at_rows(x: Tensor, dim: int, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    """Store the slices of ``source`` along a dimension at indices that count from the front."""
    rows, source = (t if t.dim() else t.reshape(1) for t in (x, source))
    places = [None] * (dim % rows.dim()) + [index.reshape(-1)]
    return aten._unsafe_index_put.default(rows, places, source, accumulate).reshape(x.shape)


@decomposition(aten.masked_scatter.default)
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    x, mask = torch.broadcast_tensors(x, mask)
    # The k-th chosen place takes the k-th element of the source.
    taken = mask.reshape(-1).to(torch.int64).cumsum(0) - 1
    taken = torch.where(mask.reshape(-1), taken, 0)
    values = source.reshape(-1).gather(0, taken).reshape(x.shape)
    return torch.where(mask, values, x)


@decomposition(aten.masked_scatter_backward.default)
def masked_scatter_backward(gradient: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """The k-th element of the source gets what comes in at the k-th chosen place."""
    gradient, mask = torch.broadcast_tensors(gradient, mask)
    chosen = mask.reshape(-1)
    taken = torch.where(chosen, chosen.to(torch.int64).cumsum(0) - 1, 0)
    values = torch.where(chosen, gradient.reshape(-1), 0)
    zeros = gradient.new_zeros((math.prod(sizes),))
    if not zeros.numel() or not values.numel():
        return zeros.reshape(sizes)
    return aten._unsafe_index_put.default(zeros, [taken], values, True).reshape(sizes)


def _search(sorted_rows: Tensor, values: Tensor, right: bool) -> Tensor:
    """Positions of values in sorted rows, by bisection.

    Args:
        sorted_rows: [rows, n] or [n], ascending, NaN last.
        values: [rows, m], or any shape for one row.
    """
    extent = sorted_rows.shape[-1]
    low = torch.zeros_like(values, dtype=torch.int64)
    if extent == 0:
        return low
    step = 1 << (extent.bit_length() - 1)
    while step:
        probe = low + step
        inside = probe <= extent
        at = torch.where(inside, probe, 1) - 1
        element = (
            sorted_rows.gather(-1, at)
            if sorted_rows.dim() > 1
            else aten.index.Tensor(sorted_rows, [at])
        )
        before = ~(element > values) if right else element < values
        if values.dtype.is_floating_point:
            # NaN is larger than every number and equal to itself.
            nan = values.isnan()
            before = torch.where(nan, torch.ones_like(nan) if right else ~element.isnan(), before)
            if right:
                before = before & (nan | ~element.isnan())
        low = torch.where(inside & before, probe, low)
        step >>= 1
    return low


@decomposition(aten.searchsorted.Tensor)
def searchsorted(
    sorted_sequence: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    right = side == "right" if side is not None else right
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    dtype = torch.result_type(sorted_sequence, x)
    rows, values = sorted_sequence.to(dtype), x.to(dtype)
    if rows.dim() > 1:
        rows = rows.reshape(-1, rows.shape[-1])
        values = values.reshape(rows.shape[0], -1)
    result = _search(rows, values, right).reshape(x.shape)
    return result.to(torch.int32) if out_int32 else result


@decomposition(aten.searchsorted.Scalar)
def searchsorted_scalar(
    sorted_sequence: Tensor,
    value: float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    dtype = torch.result_type(sorted_sequence, value)
    x = torch.full((), value, dtype=dtype, device=sorted_sequence.device)
    return searchsorted(
        sorted_sequence, x, out_int32=out_int32, right=right, side=side, sorter=sorter
    )


@decomposition(aten.bucketize.Tensor)
def bucketize(
    x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


@decomposition(aten.bucketize.Scalar)
def bucketize_scalar(
    value: float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    return searchsorted_scalar(boundaries, value, out_int32=out_int32, right=right)


# A tensor without dimensions is indexed along "dimension 0" as if it had one element.


@decomposition(aten.index_select.default)
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """So is one along a dimension by an index without any."""
    if x.dim() and index.dim():
        return NotImplemented
    rows = aten.index_select.default(x if x.dim() else x.reshape(1), dim, index.reshape(-1))
    return rows if x.dim() else rows.reshape(())


@decomposition(aten.gather.default)
def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    if x.dim() and index.dim():
        return NotImplemented
    row = torch.gather(x.reshape([-1] if not x.dim() else x.shape), 0, index.reshape(-1))
    return row.reshape(index.shape)


@decomposition(aten.scatter_add.default)
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    if x.dtype == torch.bool:
        counts = torch.scatter_add(x.to(_COUNT), dim, index, src.to(_COUNT))
        return counts.to(torch.bool)
    if x.dim():
        return NotImplemented
    row = torch.scatter_add(x.reshape(1), 0, index.reshape(-1), src.reshape(-1))
    return row.reshape(())


@decomposition(aten.scatter.src)
def scatter_src(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    if x.dim():
        return NotImplemented
    return torch.scatter(x.reshape(1), 0, index.reshape(-1), src.reshape(-1)).reshape(())


@decomposition(aten.scatter.value)
def scatter_value(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    if x.dim():
        return NotImplemented
    return torch.scatter(x.reshape(1), 0, index.reshape(-1), value).reshape(())


@decomposition(aten.scatter.reduce)
def scatter_reduce(x: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    kind = {"add": "sum", "multiply": "prod"}[reduce]
    return torch.scatter_reduce(x, dim, index, src, kind, include_self=True)


@decomposition(aten.scatter.value_reduce)
def scatter_value_reduce(
    x: Tensor, dim: int, index: Tensor, value: float, *, reduce: str
) -> Tensor:
    kind = {"add": "sum", "multiply": "prod"}[reduce]
    src = torch.full(index.shape, value, dtype=x.dtype, device=x.device)
    return torch.scatter_reduce(x, dim, index, src, kind, include_self=True)


@decomposition(aten.scatter_reduce.two)
def scatter_reduce_two(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if x.dtype == torch.bool:
        # Their order is that of their numbers, too.
        made = torch.scatter_reduce(
            x.to(_COUNT), dim, index, src.to(_COUNT), reduce, include_self=include_self
        )
        return made.to(torch.bool)
    if reduce == "mean" and not x.is_floating_point():
        return _integer_means(x, dim, index, src, include_self)
    if x.dim():
        return NotImplemented
    row = torch.scatter_reduce(
        x.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self=include_self
    )
    return row.reshape(())


def _integer_means(x: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    """Rounded down; sums and counts wrap around in their type, as PyTorch's do."""
    sums = torch.scatter_reduce(x, dim, index, src, "sum", include_self=include_self)
    first = torch.ones_like(x) if include_self else torch.zeros_like(x)
    counts = torch.scatter_add(first, dim, index, torch.ones_like(src))
    return torch.div(sums, torch.where(counts == 0, 1, counts), rounding_mode="floor")


@decomposition(aten.index_reduce.default)
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if not x.dim():
        x, source = x.reshape(1), source.reshape(1)
        row = torch.index_reduce(x, 0, index.reshape(-1), source, reduce, include_self=include_self)
        return row.reshape(())
    shape = [1] * x.dim()
    shape[dim] = -1
    places = index.reshape(shape).expand(source.shape)
    kind = {"prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}[reduce]
    return torch.scatter_reduce(x, dim, places, source, kind, include_self=include_self)
