"""Medians and k-th values of short rows: every dtype, extent and place against eager execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
from polyblocks_torch.importing.selection import SHORT_ROW

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return polyblocks_jit_torch(function, compile_options={"strict_target": True})


def numbers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Some of them equal, some infinite, and of floats some are NaN."""
    if not dtype.is_floating_point:
        low, high = (0, 256) if dtype is torch.uint8 else (-100, 100)
        return torch.randint(low, high, shape).to(dtype)
    x = torch.randint(-40, 40, shape) / 4
    for value in (torch.nan, torch.inf, -torch.inf, -0.0):
        x = torch.where(torch.rand(shape) < 0.05, value, x)
    return x.to(dtype)


def same(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        FLOATS + INTEGERS, torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8
    ),
    ids=lambda d: str(d).removeprefix("torch."),
)
def test_every_dtype(dtype: torch.dtype) -> None:
    def both(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.median(1).values, x.kthvalue(3, 1).values, x.kthvalue(9, 0, True).values

    x = numbers(dtype, 13, 11, 7)
    same(compiled(both)(x), both(x))


def test_truth_values() -> None:
    # As integers: eager execution on CPUs has no k-th values of them.
    x = torch.rand(40, 9) < 0.5
    same(compiled(lambda x: x.kthvalue(3, 1).values)(x), x.int().kthvalue(3, 1).values.bool())


@pytest.mark.parametrize(
    "extent", sweep([1, 2, 3, 8, 17, 31, SHORT_ROW, SHORT_ROW + 1], 1, 2, 17, SHORT_ROW + 1)
)
def test_every_extent(extent: int) -> None:
    def some(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        places = sorted({1, (extent + 1) // 2, extent})
        return x.median(-1, keepdim=True).values, *(x.kthvalue(k).values for k in places)

    x = numbers(torch.float32, 29, 2 * extent)[:, ::2]
    same(compiled(some)(x), some(x))


def test_positions_belong_to_values() -> None:
    x = numbers(torch.float32, 50, 9)
    for function in (lambda x: x.median(0), lambda x: x.kthvalue(4, 1), lambda x: x.median(1)):
        values, positions = compiled(function)(x)
        dim = 0 if values.shape[0] == 9 else 1
        same(values, function(x).values)
        same(x.gather(dim, positions.unsqueeze(dim)).squeeze(dim), values)


def test_of_all_elements() -> None:
    for shape in ((), (1,), (3, 4), (2, 2, 8)):
        x = torch.rand(shape)
        same(compiled(torch.median)(x), torch.median(x))


def test_windows_are_one_kernel() -> None:
    def medians(image: torch.Tensor) -> torch.Tensor:
        windows = image.unfold(0, 5, 1).unfold(1, 5, 1)
        return windows.reshape(*windows.shape[:2], 25).median(-1).values

    image = numbers(torch.float32, 61, 47)
    call = compiled(medians)
    same(call(image), medians(image))
    (part,) = call.polyblocks_report().parts
    assert [kernel["calls"] for kernel in part.kernels] == [1]


def test_gradients() -> None:
    x = torch.rand(6, 15).requires_grad_()
    grads = []
    for function in (torch.median, compiled(lambda x, dim: torch.median(x, dim))):
        y = function(x, 1)
        grads.append(torch.autograd.grad((y[0] * torch.arange(6)).sum(), x)[0])
    same(grads[1], grads[0])
