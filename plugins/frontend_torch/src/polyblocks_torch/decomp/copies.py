"""Views and copies of views: each is the view itself in a functional graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.view_copy.default)
def view_copy(x: Tensor, size: Sequence[int]) -> Tensor:
    return x.reshape(size)


@decomposition(aten.view_copy.dtype)
def view_copy_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.view(dtype)


@decomposition(aten.permute_copy.default)
def permute_copy(x: Tensor, dims: list[int]) -> Tensor:
    return x.permute(dims)


@decomposition(aten.narrow_copy.default)
def narrow_copy(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    return x.narrow(dim, start, length)


@decomposition(aten._conj.default)
def conj(x: Tensor) -> Tensor:
    # A lazy view is refused by operations that take resolved tensors. The result of a view
    # operation must be a tensor of its own each time.
    return aten.alias.default(aten._conj_physical.default(x) if x.is_complex() else x)


@decomposition(aten._neg_view.default)
def neg_view(x: Tensor) -> Tensor:
    return aten.alias.default(x.neg())


@decomposition(aten.detach_copy.default)
def detach_copy(x: Tensor) -> Tensor:
    return x.detach()


@decomposition(aten.select_copy.int)
def select_copy(x: Tensor, dim: int, index: int) -> Tensor:
    return x.select(dim, index)


@decomposition(aten.slice_copy.Tensor)
def slice_copy(
    x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    return aten.slice.Tensor(x, dim, start, end, step)


@decomposition(aten.split_copy.Tensor)
def split_copy(x: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    return x.split(split_size, dim)


@decomposition(aten.view_as_real_copy.default)
def view_as_real_copy(x: Tensor) -> Tensor:
    return torch.view_as_real(x)


@decomposition(aten.view_as_complex_copy.default)
def view_as_complex_copy(x: Tensor) -> Tensor:
    return torch.view_as_complex(x)


@decomposition(aten.unbind_copy.int)
def unbind_copy(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return x.unbind(dim)


@decomposition(aten.empty_permuted.default)
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    return torch.empty(size, dtype=dtype, device=device)


@decomposition(aten.empty_strided.default)
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    return torch.empty(size, dtype=dtype, device=device)


@decomposition(aten._efficientzerotensor.default)
def efficient_zeros(
    size: Sequence[int],
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    return torch.zeros(size, dtype=dtype, device=device)


@decomposition(aten.new_empty_strided.default)
def new_empty_strided(
    x: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    return torch.empty(size, dtype=dtype or x.dtype, device=device or x.device)


def _addresses(
    size: Sequence[int], stride: Sequence[int], offset: int, device: torch.device
) -> Tensor:
    """Flat element addresses of a strided view, of shape ``size``."""
    address = torch.full((), offset, dtype=torch.int64, device=device)
    for axis, (extent, step) in enumerate(zip(size, stride, strict=True)):
        iota = torch.arange(extent, device=device) * step
        address = address + iota.reshape([-1] + [1] * (len(size) - axis - 1))
    return address.expand(size)


def _fills_storage(x: Tensor) -> bool:
    """Whether addresses in a tensor's storage are positions in its row-major order."""
    return (
        x.is_contiguous()
        and x.storage_offset() == 0
        and x.untyped_storage().nbytes() == x.numel() * x.element_size()
    )


@dataclass(frozen=True)
class _Box:
    """A strided view of memory that is a slice in each dimension of a row-major array there.

    Attributes:
        shape: of the array, which fills the memory.
        slices: dimension, start and end of those that leave something out.
        order: the dimensions of the view, in the order of the array's.
    """

    shape: list[int]
    slices: list[tuple[int, int, int]]
    order: list[int]

    @classmethod
    def of(cls, numel: int, size: Sequence[int], stride: Sequence[int], offset: int) -> _Box | None:
        """The slices for a view of ``numel`` elements; None if it is no such box."""
        steps = sorted({1, *stride}, reverse=True)
        if numel == 0 or steps[-1] != 1 or any(a % b for a, b in pairwise([numel, *steps])):
            return None
        order = sorted(range(len(size)), key=lambda axis: -stride[axis])
        counts: dict[int, int] = {}
        for axis in order:
            if size[axis] != 1:
                if stride[axis] in counts:
                    return None
                counts[stride[axis]] = size[axis]
        shape = [a // b for a, b in pairwise([numel, *steps])]
        slices = []
        for dim, (step, extent) in enumerate(zip(steps, shape, strict=True)):
            start, offset = divmod(offset, step)
            end = start + counts.get(step, 1)
            if end > extent:
                return None
            if (start, end) != (0, extent):
                slices.append((dim, start, end))
        return cls(shape, slices, order)


@decomposition(aten.as_strided.default)
def as_strided(
    x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    if not _fills_storage(x):
        return NotImplemented
    offset = storage_offset or 0
    flat = x.reshape(-1)
    # Dense in some order of its dimensions: a slice, a reshape and a permutation.
    order = sorted(range(len(size)), key=lambda axis: stride[axis], reverse=True)
    expected = 1
    for axis in reversed(order):
        if size[axis] != 1 and stride[axis] != expected:
            break
        expected *= size[axis]
    else:
        dense = flat.narrow(0, offset, expected).reshape([size[axis] for axis in order])
        return dense.permute([order.index(axis) for axis in range(len(size))])
    box = _Box.of(flat.shape[0], size, stride, offset)
    if box is not None:
        part = flat.reshape(box.shape)
        for dim, start, end in box.slices:
            part = aten.slice.Tensor(part, dim, start, end)
        ordered = part.reshape([size[axis] for axis in box.order])
        return ordered.permute([box.order.index(axis) for axis in range(len(size))])
    return aten.index.Tensor(flat, [_addresses(size, stride, offset, x.device)])


@decomposition(aten.as_strided_copy.default)
def as_strided_copy(
    x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    return torch.as_strided(x, size, stride, storage_offset)


@decomposition(aten.as_strided_scatter.default)
def as_strided_scatter(
    x: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    if not _fills_storage(x):
        return NotImplemented
    box = _Box.of(x.numel(), size, stride, storage_offset or 0)
    if box is not None:
        # Slices of slices, and each stored into what it was cut from.
        wholes = [x.reshape(box.shape)]
        for dim, start, end in box.slices:
            wholes.append(aten.slice.Tensor(wholes[-1], dim, start, end))
        part = src.permute(box.order).reshape(wholes.pop().shape)
        for whole, (dim, start, end) in zip(reversed(wholes), reversed(box.slices), strict=True):
            part = aten.slice_scatter.default(whole, part, dim, start, end)
        return part.reshape(x.shape)
    address = _addresses(size, stride, storage_offset or 0, x.device)
    flat = x.reshape(-1).index_put((address.reshape(-1),), src.reshape(-1))
    return flat.reshape(x.shape)


@decomposition(aten.diagonal_scatter.default)
def diagonal_scatter(
    x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    dim1, dim2 = dim1 % x.dim(), dim2 % x.dim()
    rows, columns = x.shape[dim1], x.shape[dim2]
    square = torch.diag_embed(src.to(x.dtype), offset)
    # A diagonal of length n and offset k makes a square of n + |k|; the matrix may be larger.
    square = square[..., :rows, :columns]
    pad = (0, columns - square.shape[-1], 0, rows - square.shape[-2])
    square = torch.constant_pad_nd(square, pad).movedim((-2, -1), (dim1, dim2))
    row = torch.arange(rows, device=x.device).unsqueeze(-1)
    mask = torch.arange(columns, device=x.device) - row == offset
    mask = mask if dim1 < dim2 else mask.T
    shape = [1] * x.dim()
    shape[dim1], shape[dim2] = rows, columns
    return torch.where(mask.reshape(shape), square, x)
