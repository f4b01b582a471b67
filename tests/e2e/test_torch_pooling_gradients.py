"""Gradients of pools and paddings, compiled whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch import Tensor
from torch.nn import functional as F

from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

OPTIONS = {"target": "cpu", "strict_target": True}


def gradient(function: Callable[..., Any], x: Tensor) -> Tensor:
    leaf = x.detach().clone().requires_grad_()
    parts = function(leaf)
    # Quarters, which every type has exactly.
    weights = [(torch.arange(p.numel()) % 7 / 4 - 1).reshape(p.shape).to(p.dtype) for p in parts]
    (found,) = torch.autograd.grad(parts, leaf, weights)
    return found


def images(x: Tensor) -> list[Tensor]:
    return [
        F.avg_pool2d(x, (2, 3), ceil_mode=True, padding=1, count_include_pad=False),
        F.max_pool2d(x, 3, 2, 1),
        F.adaptive_avg_pool2d(x, (4, 3)),
        F.adaptive_max_pool2d(x, (4, 5)),
        F.pad(x, (4, -1, 2, 3), mode="reflect"),
        F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    ]


def images_otherwise(x: Tensor) -> list[Tensor]:
    return [
        F.avg_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 3, 1, divisor_override=2),
        F.max_pool2d(x, 5, 1, 2),
        F.max_pool2d(x, 2, 3, dilation=2, ceil_mode=True),
        F.lp_pool2d(x.abs() + 1, 3, 2),
        F.local_response_norm(x, 3),
        F.pad(x, (2, 1, 0, 3), mode="replicate"),
    ]


def single_images(x: Tensor) -> list[Tensor]:
    return [
        F.avg_pool2d(x, 3, 2, 1),
        F.max_pool2d(x, 3, 2, 1),
        F.adaptive_avg_pool2d(x, (4, 3)),
        F.adaptive_max_pool2d(x, (4, 5)),
        F.pad(x, (2, 1, 0, 3), mode="replicate"),
    ]


def rows(x: Tensor) -> list[Tensor]:
    return [
        F.avg_pool1d(x, 2, 1),
        F.max_pool1d(x, 3, 2, 1),
        F.adaptive_avg_pool1d(x, 4),
        F.adaptive_max_pool1d(x, 3),
        F.pad(x, (3, 0), mode="replicate"),
        F.pad(x, (3, 2), mode="reflect"),
    ]


def volumes(x: Tensor) -> list[Tensor]:
    return [
        F.avg_pool3d(x, 2, (1, 2, 3), 1),
        F.max_pool3d(x, 3, 2, 1),
        F.adaptive_avg_pool3d(x, (2, 3, 1)),
        F.adaptive_max_pool3d(x, 2),
        F.pad(x, (1, 2, 0, 1, 2, 1), mode="replicate"),
        F.pad(x, (1, 2, 0, 1, 2, 1), mode="reflect"),
    ]


@pytest.mark.each_choice
@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.float32, torch.float64, torch.bfloat16],
        *(torch.float32, torch.float64),
        extended=[torch.bfloat16],
    ),
    ids=str,
)
@pytest.mark.parametrize(
    "function, shape",
    [
        (images, (2, 3, 11, 8)),
        pytest.param(images_otherwise, (2, 3, 11, 8), marks=pytest.mark.extended),
        pytest.param(single_images, (1, 7, 9), marks=pytest.mark.slow),
        (rows, (2, 3, 13)),
        pytest.param(volumes, (1, 2, 5, 7, 4), marks=pytest.mark.extended),
    ],
)
def test_gradients(function: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    got = gradient(polyblocks_jit_torch(compile_options=OPTIONS)(function), x)
    assert got.dtype == dtype
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 0.1}[dtype]
    want = gradient(function, x.double())
    torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.extended
def test_windows_that_begin_at_random() -> None:
    """Where samples are given; else PyTorch draws them."""
    samples = torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(1))

    def function(x: Tensor) -> list[Tensor]:
        pool = F.fractional_max_pool2d
        return [
            pool(x, 2, (4, 3), _random_samples=samples),
            pool(x[0], 3, 5, None, False, samples[:1]),
        ]

    x = torch.randn(2, 3, 11, 9)
    got = gradient(polyblocks_jit_torch(compile_options=OPTIONS)(function), x)
    torch.testing.assert_close(got, gradient(function, x))


@pytest.mark.extended
def test_second_derivatives() -> None:
    def function(x: Tensor) -> list[Tensor]:
        def inner(x: Tensor) -> Tensor:
            made = F.avg_pool2d(x.sin(), 3, 2, 1).square().sum()
            made = made + F.max_pool2d(x.sin(), 3, 2, 1).square().sum()
            return made + F.pad(x.sin(), (1, 2, 2, 1), mode="reflect").square().sum()

        return [torch.func.grad(inner)(x)]

    x = torch.randn(1, 2, 7, 6, dtype=torch.float64)
    got = gradient(polyblocks_jit_torch(compile_options=OPTIONS)(function), x)
    torch.testing.assert_close(got, gradient(function, x), rtol=1e-10, atol=1e-10)
