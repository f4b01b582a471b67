"""Resizes with weights and their gradients, run by PyTorch against its own kernels."""

from __future__ import annotations

import random

import pytest
import torch
from sweeps import sweep

from polyblocks_torch.decomp.every import REGISTRY

aten = torch.ops.aten

DIMS = {
    "upsample_linear1d": 1,
    "upsample_bilinear2d": 2,
    "upsample_trilinear3d": 3,
    "upsample_bicubic2d": 2,
    "_upsample_bilinear2d_aa": 2,
    "_upsample_bicubic2d_aa": 2,
    "_upsample_lanczos2d_aa": 2,
}


@pytest.mark.parametrize("count", sweep([20, 100], 20))
@pytest.mark.parametrize("name", DIMS)
def test_resizes(name: str, count: int) -> None:
    numbers, dims = random.Random(name), DIMS[name]
    torch.manual_seed(0)
    forward, backward = (getattr(aten, name + end).default for end in ("", "_backward"))
    # PyTorch's kernels that smooth repeat the first pixel of images of one column.
    least, most = (2 if "aa" in name else 1), (20 if dims < 3 else 8)
    for _ in range(count):
        dtype = numbers.choice([torch.float32, torch.float64])
        sizes = [numbers.randint(least, most) for _ in range(dims)]
        if numbers.random() < 0.5:
            outputs = [numbers.choice([numbers.randint(least, 30), n, 2 * n]) for n in sizes]
            scales: list[float | None] = [None] * dims
        else:
            # Some leave the size as it is.
            given = [numbers.choice([1.0, 2.0, 1.3, 0.7, 0.5, 3.0, 2.05]) for _ in sizes]
            outputs = [max(least, int(n * scale)) for n, scale in zip(sizes, given, strict=True)]
            scales = list(given)
        corners = numbers.random() < 0.5
        x = torch.randn(2, 3, *sizes, dtype=dtype)
        grad = torch.randn(2, 3, *outputs, dtype=dtype)
        tolerance = 2e-5 if dtype == torch.float32 else 1e-9
        for op, args in (
            (forward, (x, outputs, corners, *scales)),
            (backward, (grad, outputs, list(x.shape), corners, *scales)),
        ):
            torch.testing.assert_close(
                REGISTRY[op](*args), op(*args), rtol=tolerance, atol=tolerance
            )
