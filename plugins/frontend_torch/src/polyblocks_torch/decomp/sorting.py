"""Sorting and what is chosen from sorted rows.

Elements become integer keys. A row's elements in the order of their keys, and the places of these
elements, are one op, which :mod:`polyblocks_torch.importing.sorting` lowers; the core chooses how
to sort from what is used of both.

Selection from short rows by rank takes fewer steps; see
:mod:`polyblocks_torch.importing.selection`; positions are computed where they are asked for.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.selection import SHORT_ROW, kth_of_short
from polyblocks_torch.importing.sorting import sorted_rows

aten = torch.ops.aten

#: Rows whose elements are all compared with each other to find the most frequent one.
COUNTED_ROW = 256

#: The wider dtype of those that are not compared directly.
_WIDE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.bool: torch.int32,
    torch.uint8: torch.int32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
}
#: Integers with the bits of floating-point numbers.
_INTEGER = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
#: Signed integers that hold all values of other integers.
_KEY = {
    torch.bool: torch.int8,
    torch.int8: torch.int8,
    torch.int16: torch.int16,
    torch.uint16: torch.int32,
    torch.int32: torch.int32,
}
#: The bits of infinity.
_INFINITY = {
    torch.float16: 0x7C00,
    torch.bfloat16: 0x7F80,
    torch.float32: 0x7F800000,
    torch.float64: 0x7FF0000000000000,
}


def _key(x: Tensor) -> tuple[Tensor, int]:
    """Signed integers in the order of the numbers, and that of infinity; 0 for integers.

    Those of floating-point numbers are in IEEE 754's total order.
    """
    if x.dtype == torch.uint8:
        return (x.to(torch.int16) - 128).to(torch.int8), 0
    if x.dtype not in _INTEGER:
        return x.to(_KEY.get(x.dtype, torch.int64)), 0
    integer = _INTEGER[x.dtype]
    bits = x.view(integer)
    # Bits of negative numbers grow with the magnitude: turn their order.
    limits = torch.iinfo(integer)
    key = bits ^ ((bits >> (limits.bits - 1)) & limits.max)
    return key, _INFINITY[x.dtype]


def _first(x: Tensor, dim: int, descending: bool, count: int | None) -> tuple[Tensor, Tensor]:
    """The first elements of sorted rows, by default all, and their positions."""
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    if x.is_complex():
        return NotImplemented
    count = x.shape[dim] if count is None else count
    if x.numel() == 0:
        shape = list(x.shape)
        shape[dim] = count
        return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)
    row = x.movedim(dim, -1)
    keys, infinity = _key(row)
    keyed = infinity != 0 or keys.dtype == row.dtype
    values, order = sorted_rows(row, keys, descending, infinity, keyed)
    return values.narrow(-1, 0, count).movedim(-1, dim), order.narrow(-1, 0, count).movedim(-1, dim)


def _sort(x: Tensor, dim: int, descending: bool) -> tuple[Tensor, Tensor]:
    return _first(x, dim, descending, None)


@decomposition(aten.sort.default)
def sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return _sort(x, dim, descending)


@decomposition(aten.sort.stable)
def sort_stable(
    x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    return _sort(x, dim, descending)


@decomposition(aten.topk.default)
def topk(
    x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        if k == 1:
            return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
        return NotImplemented
    return _first(x, dim, largest, k)


@decomposition(aten.kthvalue.default)
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    pair = _sort(x, dim, False)
    if pair is NotImplemented:
        return pair
    values, order = (part.narrow(dim, k - 1, 1) for part in pair)
    if (extent := x.shape[dim]) <= SHORT_ROW:
        # NaN comes last.
        values = _kth_of_short(x, k - 1, dim, extent - k + 1)
    return (values, order) if keepdim else (values.squeeze(dim), order.squeeze(dim))


def _kth_of_short(x: Tensor, k: int, dim: int, nans: int) -> Tensor:
    """The k-th smallest elements of short rows; NaN for rows with at least ``nans`` NaNs."""
    row = x.to(_WIDE.get(x.dtype, x.dtype)).movedim(dim, -1)
    if not x.dtype.is_floating_point:
        values = kth_of_short(row, k)
    else:
        there = row.isnan()
        if nans > 1:
            row = torch.where(there, torch.inf, row)
        several = there.any(-1) if nans == 1 else there.sum(-1) >= nans
        values = torch.where(several, torch.nan, kth_of_short(row, k))
    return values.to(x.dtype).unsqueeze(dim)


def _median(x: Tensor, dim: int, keepdim: bool, skip_nan: bool) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    pair = _sort(x, dim, False)
    if pair is NotImplemented:
        return pair
    values, order = pair
    extent = x.shape[dim]
    middle: Tensor
    if x.dtype.is_floating_point:
        nans = x.isnan().sum(dim, keepdim=True)
        if skip_nan:
            # All NaN: the first one, which is NaN.
            middle = ((extent - nans - 1) // 2).clamp(min=0)
        else:
            # NaN sorts last: the first of them if there is one.
            middle = torch.where(nans > 0, extent - nans, (extent - 1) // 2)
    else:
        shape = list(x.shape)
        shape[dim] = 1
        middle = torch.full(shape, (extent - 1) // 2, dtype=torch.int64, device=x.device)
    order = order.gather(dim, middle)
    if 0 < extent <= SHORT_ROW and not skip_nan:
        values = _kth_of_short(x, (extent - 1) // 2, dim, 1)
    else:
        values = values.gather(dim, middle)
    return (values, order) if keepdim else (values.squeeze(dim), order.squeeze(dim))


@decomposition(aten.median.dim)
def median_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _median(x, dim, keepdim, skip_nan=False)


@decomposition(aten.nanmedian.dim)
def nanmedian_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _median(x, dim, keepdim, skip_nan=True)


@decomposition(aten.median.default)
def median(x: Tensor) -> Tensor:
    pair = _median(x.reshape(-1), 0, False, skip_nan=False)
    return pair if pair is NotImplemented else pair[0]


@decomposition(aten.nanmedian.default)
def nanmedian(x: Tensor) -> Tensor:
    pair = _median(x.reshape(-1), 0, False, skip_nan=True)
    return pair if pair is NotImplemented else pair[0]


@decomposition(aten.mode.default)
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    # With NaN in a row, eager mode gives what its sort, which cannot compare it, has left.
    if x.is_floating_point() or x.is_complex():
        return NotImplemented
    row = x.movedim(dim, -1)
    pair = _mode_by_counts(row) if 0 < x.shape[dim] <= COUNTED_ROW else _mode_by_runs(row)
    value, index = pair
    if not keepdim:
        return value.squeeze(-1), index.squeeze(-1)
    return value.movedim(-1, dim), index.movedim(-1, dim)


def _mode_by_counts(row: Tensor) -> tuple[Tensor, Tensor]:
    """The least of the most frequent elements of each row, and its last position.

    Every element is compared with every other one.
    """
    keys = row.to(torch.int8) if row.dtype is torch.bool else row
    counts = (keys.unsqueeze(-1) == keys.unsqueeze(-2)).sum(-1, dtype=torch.int32)
    frequent = counts == counts.amax(-1, keepdim=True)
    value = torch.where(frequent, keys, torch.iinfo(keys.dtype).max).amin(-1, keepdim=True)
    position = torch.arange(row.shape[-1], dtype=torch.int32, device=row.device)
    index = torch.where(keys == value, position, 0).amax(-1, keepdim=True)
    return value.to(row.dtype), index.to(torch.int64)


def _mode_by_runs(row: Tensor) -> tuple[Tensor, Tensor]:
    """The same of long rows: of the longest runs of equal elements in sorted rows the first."""
    values, order = _sort(row, -1, False)
    position = torch.arange(row.shape[-1], dtype=torch.int32, device=row.device)
    fresh = torch.ones_like(values, dtype=torch.bool)
    fresh = torch.cat((fresh[..., :1], values[..., 1:] != values[..., :-1]), -1)
    start = torch.cummax(torch.where(fresh, position, 0), -1).values
    # At each place, how many elements of its run are before it.
    best = (position - start).argmax(-1, keepdim=True)
    return values.gather(-1, best), order.gather(-1, best)
