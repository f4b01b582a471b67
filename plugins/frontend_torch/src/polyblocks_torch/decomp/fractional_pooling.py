"""Maxima of windows that begin at random, and their gradients.

Where windows begin follows from samples that PyTorch draws, as in its
aten/src/ATen/native/FractionalMaxPooling.h: steps of two sizes, in a pseudo-random order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


def _starts(sample: Tensor, extent: int, output: int, kernel: int) -> Tensor:
    """Where the windows along one axis begin: [N, C] -> int64 [N, C, output]."""
    last = torch.full((*sample.shape, 1), extent - kernel, device=sample.device)
    if output == 1:
        return last
    step = (extent - kernel) / (output - 1)
    sample = sample.unsqueeze(-1)
    number = torch.arange(output - 1, device=sample.device).to(sample.dtype)
    first = ((number + sample) * step).to(torch.int64) - (sample * step).to(torch.int64)
    return torch.cat((first, last), -1)


def _maxima(
    x: Tensor, kernel: Sequence[int], output: Sequence[int], samples: Tensor
) -> tuple[Tensor, Tensor]:
    """Maxima, and their flat positions along the pooled dimensions.

    Args:
        x: ``[N, C, *sizes]``.
        kernel: elements of a window along each dimension.
        output: windows along each dimension.
        samples: ``[N, C, dims]``, from 0 to 1; those of images are of the width first.
    """
    dims = len(output)
    sizes = x.shape[2:]
    weights = [math.prod(sizes[k + 1 :]) for k in range(dims)]
    first = torch.zeros((), dtype=torch.int64, device=x.device)
    for k in range(dims):
        sample = samples[..., k if dims == 3 else 1 - k]
        start = _starts(sample, sizes[k], output[k], kernel[k]) * weights[k]
        shape = [*start.shape[:2], *[1] * k, output[k], *[1] * (dims - 1 - k)]
        first = first + start.reshape(shape)
    first = first.reshape(*x.shape[:2], -1)
    flat = x.reshape(*x.shape[:2], -1)
    best = torch.full_like(first, -math.inf, dtype=x.dtype)
    position = first
    for offsets in itertools.product(*map(range, kernel)):
        here = first + sum(n * weight for n, weight in zip(offsets, weights, strict=True))
        value = flat.gather(2, here)
        take = (value > best) | value.isnan()
        best, position = torch.where(take, value, best), torch.where(take, here, position)
    shape = [*x.shape[:2], *output]
    return best.reshape(shape), position.reshape(shape)


def _register(dims: int) -> None:
    @decomposition(getattr(aten, f"fractional_max_pool{dims}d").default)
    def pool(
        x: Tensor, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Tensor
    ) -> tuple[Tensor, Tensor]:
        if x.dtype not in (torch.float32, torch.float64):
            return NotImplemented  # places are rounded to 16 bits
        kernel, output = (
            list(each) * (dims if len(each) == 1 else 1) for each in (kernel_size, output_size)
        )
        if x.dim() == dims + 1:
            found = _maxima(x.unsqueeze(0), kernel, output, random_samples)
            return found[0].squeeze(0), found[1].squeeze(0)
        return _maxima(x, kernel, output, random_samples)

    @decomposition(getattr(aten, f"fractional_max_pool{dims}d_backward").default)
    def gradient(
        grad: Tensor,
        x: Tensor,
        kernel_size: Sequence[int],
        output_size: Sequence[int],
        indices: Tensor,
    ) -> Tensor:
        lead = x.shape[: x.dim() - dims]
        sums = torch.zeros((*lead, math.prod(x.shape[-dims:])), dtype=x.dtype, device=x.device)
        sums = sums.scatter_add(-1, indices.reshape(*lead, -1), grad.reshape(*lead, -1))
        return sums.reshape(x.shape)


for _dims in (2, 3):
    _register(_dims)
