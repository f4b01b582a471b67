"""Pools of single images are those of batches of one; positions are those of eager mode."""

from __future__ import annotations

import functools
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


@pytest.mark.each_choice
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


def _numbers_and_none(*shape: int) -> torch.Tensor:
    """Numbers, many of them not finite: windows without any number, with several NaN, or both."""
    x, kind = torch.randn(shape), torch.rand(shape)
    x = torch.where(kind < 0.2, torch.nan, x)
    x = torch.where((kind > 0.2) & (kind < 0.5), -torch.inf, x)
    return torch.where(kind > 0.9, torch.inf, x)


def test_positions_among_nan_and_infinities() -> None:
    def function(x: torch.Tensor, row: torch.Tensor, volume: torch.Tensor) -> tuple[Any, ...]:
        pool = functools.partial(F.max_pool2d, return_indices=True)
        return (
            pool(x, 3, 2, 1),
            pool(x, 2),
            pool(x, (2, 3), (1, 2), (1, 0), 2, ceil_mode=True),
            pool(x, 5, 1, 2),
            pool(x.half(), 3, 2, 1),
            pool(x.double(), 4, 3, 2, ceil_mode=True),
            pool(torch.where(x.isfinite(), x * 3, -(2.0**31)).int(), 3, 2, 1),
            F.max_pool1d(row, 3, 2, 1, return_indices=True),
            F.max_pool3d(volume, 2, 1, 1, return_indices=True),
            F.max_pool3d(volume, 3, 2, 1, return_indices=True),
            F.adaptive_max_pool2d(x, (3, 4), return_indices=True),
        )

    torch.manual_seed(3)
    inputs = _numbers_and_none(2, 3, 9, 11), _numbers_and_none(2, 3, 13)
    volume = _numbers_and_none(1, 2, 4, 5, 6)
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    found, expected = compiled(*inputs, volume), function(*inputs, volume)
    torch.testing.assert_close(found, expected, equal_nan=True, rtol=0, atol=0)


def test_gradients_of_windows_without_numbers() -> None:
    x = torch.full((1, 2, 7, 7), -torch.inf)
    x[0, 1, 2:5] = torch.nan

    def gradient(function: Callable[..., Any]) -> torch.Tensor:
        leaf = x.clone().requires_grad_()
        (function(leaf) * torch.arange(16.0).reshape(4, 4)).sum().backward()
        assert leaf.grad is not None
        return leaf.grad

    def function(x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, 3, 2, 1)

    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    torch.testing.assert_close(gradient(compiled), gradient(function))


@pytest.mark.simulated
def test_windows_far_apart() -> None:
    # Of large images; blocks of threads may have windows with nothing in them.
    def pooled(x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(x, 7, 512, ceil_mode=True)

    x = torch.randn(4, 512, 48, 48)
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(pooled)
    torch.testing.assert_close(compiled(x), pooled(x))
