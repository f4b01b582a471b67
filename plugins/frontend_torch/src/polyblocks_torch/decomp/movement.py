"""Data movement as slices, which later stages read as accesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.roll.default)
def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        return roll(x.reshape(-1), shifts, (0,)).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        extent = x.shape[dim]
        split = -shift % extent if extent else 0
        if split:
            parts = x.narrow(dim, split, extent - split), x.narrow(dim, 0, split)
            x = torch.cat(parts, dim)
    return x.clone()


@decomposition(aten.constant_pad_nd.default)
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Negative padding cuts off; torch-mlir makes pads of negative size of it."""
    if all(amount >= 0 for amount in pad):
        return NotImplemented
    for k in range(len(pad) // 2):
        dim, before, after = x.dim() - 1 - k, max(-pad[2 * k], 0), max(-pad[2 * k + 1], 0)
        x = x.narrow(dim, before, x.shape[dim] - before - after)
    rest = [max(amount, 0) for amount in pad]
    return aten.constant_pad_nd.default(x, rest, value) if any(rest) else x.clone()


@decomposition(aten.select_scatter.default)
def select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    """A slice of one row; PyTorch's decomposition compares the number of each."""
    at = index % x.shape[dim]
    return aten.slice_scatter.default(x, source.unsqueeze(dim), dim, at, at + 1)


def _joined(
    x: Tensor, pad: Sequence[int], border: Callable[[Tensor, int, int, bool], Tensor]
) -> Tensor:
    """Pad the last dimensions with parts of the tensor itself, as concatenations of slices.

    Every part is a copy of its own; PyTorch's decomposition looks up an index per element.

    Args:
        pad: before and after, from the last dimension on; negative amounts cut off.
        border: (tensor, dimension, width, at its end) -> the part that is put there.
    """
    dims = len(pad) // 2
    for k in range(dims):
        dim, before, after = x.dim() - 1 - k, max(-pad[2 * k], 0), max(-pad[2 * k + 1], 0)
        if before or after:
            x = _slice(x, dim, before, x.shape[dim] - before - after)

    def parts(piece: Tensor, k: int) -> Tensor:
        if k < 0:
            return piece
        dim = x.dim() - 1 - k
        bands = [piece]
        if pad[2 * k] > 0:
            bands.insert(0, border(piece, dim, pad[2 * k], False))
        if pad[2 * k + 1] > 0:
            bands.append(border(piece, dim, pad[2 * k + 1], True))
        done = [parts(band, k - 1) for band in bands]
        return torch.cat(done, dim) if len(done) > 1 else done[0]

    # The outermost dimension first: its bands are padded one by one.
    result = parts(x, dims - 1)
    return result.clone() if result is x else result


def _mirrored(x: Tensor, dim: int, width: int, at_end: bool) -> Tensor:
    first = x.shape[dim] - 1 - width if at_end else 1
    return _slice(x, dim, first, width).flip(dim)


def _repeated(x: Tensor, dim: int, width: int, at_end: bool) -> Tensor:
    shape = list(x.shape)
    shape[dim] = width
    return _slice(x, dim, x.shape[dim] - 1 if at_end else 0, 1).expand(shape)


def _slice(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """``narrow``, which is a composite of this."""
    return aten.slice.Tensor(x, dim, start, start + length)


@decomposition(
    aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default
)
def reflection_pad(x: Tensor, pad: Sequence[int]) -> Tensor:
    return _joined(x, pad, _mirrored)


@decomposition(
    aten.replication_pad1d.default, aten.replication_pad2d.default, aten.replication_pad3d.default
)
def replication_pad(x: Tensor, pad: Sequence[int]) -> Tensor:
    op = {2: aten.replication_pad1d, 4: aten.replication_pad2d, 6: aten.replication_pad3d}[len(pad)]
    for k in range(len(pad) // 2):
        cut = max(-pad[2 * k], 0) + max(-pad[2 * k + 1], 0)
        if cut and cut >= x.shape[x.dim() - 1 - k]:
            # Nothing is left to join; what is repeated is an element that was cut off.
            return decomposition_table[op.default](x, pad)
    return _joined(x, pad, _repeated)
