"""Means of windows with weights that depend on the pixels: two sums over the same weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

REACH = 4
SIDE = 2 * REACH + 1
#: What is divided by in the exponents: of distances and of differences.
SPACE, RANGE = 12.5, 0.02


def near(x: torch.Tensor) -> torch.Tensor:
    """Weights by distance, in one direction."""
    distance = torch.arange(-REACH, REACH + 1, dtype=x.dtype, device=x.device)
    return torch.exp(-distance * distance / SPACE)


def unfolded(x: torch.Tensor) -> torch.Tensor:
    """A bilateral filter as reductions over windows."""
    windows = x.unfold(0, SIDE, 1).unfold(1, SIDE, 1)
    apart = windows - x[REACH:-REACH, REACH:-REACH, None, None]
    weight = near(x)[:, None] * near(x) * torch.exp(-apart * apart / RANGE)
    return (weight * windows).sum((-2, -1)) / weight.sum((-2, -1))


def step_by_step(x: torch.Tensor) -> torch.Tensor:
    """The same as sums that are added up shift by shift."""
    height, width = x.shape[0] - 2 * REACH, x.shape[1] - 2 * REACH
    here = x[REACH:-REACH, REACH:-REACH]
    factors = [float(np.exp(-d * d / SPACE)) for d in range(-REACH, REACH + 1)]
    total = weights = torch.zeros_like(here)
    for dy in range(SIDE):
        for dx in range(SIDE):
            there = x[dy : dy + height, dx : dx + width]
            apart = there - here
            weight = factors[dy] * factors[dx] * torch.exp(-apart * apart / RANGE)
            total, weights = total + weight * there, weights + weight
    return total / weights


def compiled(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    options = {"target": "cpu", "strict_target": True}
    result: Callable[..., torch.Tensor] = polyblocks_jit_torch(compile_options=options)(function)
    return result


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(9, 9), (10, 61), (41, 37)])
def test_as_exact_as_eager(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    check(unfolded, shape, dtype)


@pytest.mark.slow  # a program of a thousand operations
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_step_by_step_as_exact_as_eager(dtype: torch.dtype) -> None:
    check(step_by_step, (41, 37), dtype)


def check(
    function: Callable[..., torch.Tensor], shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """A compiled function errs at most twice as much as eager PyTorch."""
    x = torch.from_numpy(np.random.default_rng(3).random(shape)).to(dtype)
    exact = unfolded(x.double())
    got, eager = compiled(function)(x), function(x)
    assert got.dtype == dtype
    error, own = ((y.double() - exact).abs().max().item() for y in (got, eager))
    assert error <= 2 * own + 4 * torch.finfo(dtype).eps


@pytest.mark.parametrize("function", sweep([unfolded, step_by_step], unfolded))
def test_numbers_that_are_not_finite(function: Callable[..., torch.Tensor]) -> None:
    x = torch.from_numpy(np.random.default_rng(3).random((40, 50), dtype=np.float32))
    x[5, 5], x[20, 20], x[30, 10], x[25, 30] = float("nan"), float("inf"), float("-inf"), 1e-40
    exact = unfolded(x.double())
    got = compiled(function)(x).double()
    torch.testing.assert_close(got, exact, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_an_image_with_strides() -> None:
    x = torch.from_numpy(np.random.default_rng(3).random((60, 82), dtype=np.float32))[::2, ::2].T
    got = compiled(unfolded)(x).double()
    torch.testing.assert_close(got, unfolded(x.double()), rtol=1e-5, atol=1e-6)


def test_a_weight_that_is_a_result_too() -> None:
    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weight = torch.exp(-x * x)
        return (weight * x).sum(-1) / weight.sum(-1), weight

    x = torch.from_numpy(np.random.default_rng(3).standard_normal((17, 81), dtype=np.float32))
    got = polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})(both)(x)
    torch.testing.assert_close(got, both(x), rtol=1e-5, atol=1e-6)
