"""Pools of single images are those of batches of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

POOLS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2, 1), (5, 17)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), (3, 17, 14)),
    "max_pool2d, indices": (lambda x: F.max_pool2d(x, 2, return_indices=True), (3, 13, 8)),
    "max_pool2d, ceil": (lambda x: F.max_pool2d(x, (2, 3), ceil_mode=True), (3, 13, 8)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), (2, 6, 7, 8)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), (5, 17)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), (3, 17, 14)),
    "avg_pool2d, inside": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        (1, 7, 14),
    ),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2, 1, 1), (2, 6, 7, 8)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", POOLS)
def test_a_single_image(name: str, dtype: torch.dtype) -> None:
    function, shape = POOLS[name]
    x = torch.randn(shape).to(dtype)
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    found, expected = compiled(x), function(x.double())
    if isinstance(expected, torch.Tensor):
        found, expected = (found,), (expected,)
    for each, wanted in zip(found, expected, strict=True):
        assert each.shape == wanted.shape
        torch.testing.assert_close(each.to(wanted.dtype), wanted, rtol=2e-3, atol=2e-3)
