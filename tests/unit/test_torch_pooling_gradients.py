"""Decompositions of gradients of pools and paddings, run by PyTorch against its own kernels."""

from __future__ import annotations

import math
import random

import pytest
import torch
from torch import Tensor

from polyblocks_torch.decomp.every import REGISTRY

aten = torch.ops.aten

DTYPES = (torch.float32, torch.float64)


def check(name: str, grad: Tensor, *args: object) -> None:
    op = getattr(aten, name).default
    torch.testing.assert_close(REGISTRY[op](grad, *args), op(grad, *args))


def image(numbers: random.Random, sizes: list[int]) -> Tensor:
    lead = (2, 3) if numbers.random() < 0.7 else (3,)
    return torch.randn(*lead, *sizes, dtype=numbers.choice(DTYPES))


@pytest.mark.parametrize("dims", [2, 3])
def test_means_of_windows(dims: int) -> None:
    numbers = random.Random(dims)
    torch.manual_seed(0)
    compared = 0
    for _ in range(200):
        x = image(numbers, [numbers.randint(1, 11 if dims == 2 else 6) for _ in range(dims)])
        kernel = [numbers.randint(1, 4) for _ in range(dims)]
        stride = numbers.choice([[], [numbers.randint(1, 5) for _ in range(dims)]])
        padding = [numbers.randint(0, k // 2) for k in kernel]
        form = (kernel, stride, padding, numbers.random() < 0.5, numbers.random() < 0.5)
        options = (*form, numbers.choice([None, None, 3]))
        try:
            made = getattr(aten, f"avg_pool{dims}d").default(x, *options)
        except RuntimeError:  # no window fits
            continue
        check(f"avg_pool{dims}d_backward", torch.randn_like(made), x, *options)
        compared += 1
    assert compared > 60


@pytest.mark.parametrize("dims", [2, 3])
def test_maxima_of_windows(dims: int) -> None:
    """Among equal elements, NaN and infinities."""
    numbers = random.Random(dims)
    torch.manual_seed(0)
    compared = 0
    for _ in range(200):
        x = image(numbers, [numbers.randint(1, 11 if dims == 2 else 6) for _ in range(dims)])
        kind = torch.rand(x.shape)
        x = torch.where(kind < 0.1, torch.nan, torch.where(kind < 0.3, -torch.inf, x))
        x = torch.where(kind > 0.7, 1.0, x)
        kernel = [numbers.randint(1, 4) for _ in range(dims)]
        stride, dilation = ([numbers.randint(1, 4) for _ in range(dims)] for _ in range(2))
        padding = [numbers.randint(0, k // 2) for k in kernel]
        options = (kernel, stride, padding, dilation, numbers.random() < 0.5)
        try:
            made, indices = getattr(aten, f"max_pool{dims}d_with_indices").default(x, *options)
        except RuntimeError:
            continue
        if int(indices.max()) >= math.prod(x.shape[-dims:]):
            # Of a window of padding alone; PyTorch's kernel writes beside its result.
            continue
        grad = torch.randn_like(made)
        check(f"max_pool{dims}d_with_indices_backward", grad, x, *options, indices)
        compared += 1
    assert compared > 40


def test_many_windows_around_an_element() -> None:
    x = torch.randn(2, 3, 9, 8)
    options = ((5, 4), (1, 1), (2, 2), (1, 1), False)
    made, indices = aten.max_pool2d_with_indices.default(x, *options)
    check("max_pool2d_with_indices_backward", torch.randn_like(made), x, *options, indices)


@pytest.mark.parametrize("dims", [2, 3])
def test_adaptive_windows(dims: int) -> None:
    numbers = random.Random(dims)
    torch.manual_seed(0)
    for _ in range(60):
        x = image(numbers, [numbers.randint(1, 11 if dims == 2 else 6) for _ in range(dims)])
        output = [numbers.randint(1, 13 if dims == 2 else 7) for _ in range(dims)]
        made = getattr(aten, f"_adaptive_avg_pool{dims}d").default(x, output)
        check(f"_adaptive_avg_pool{dims}d_backward", torch.randn_like(made), x)
        made, indices = getattr(aten, f"adaptive_max_pool{dims}d").default(x, output)
        check(f"adaptive_max_pool{dims}d_backward", torch.randn_like(made), x, indices)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["replication", "reflection"])
def test_paddings(kind: str, dims: int) -> None:
    numbers = random.Random(dims)
    torch.manual_seed(0)
    compared = 0
    for _ in range(100):
        x = image(numbers, [numbers.randint(1, 7) for _ in range(dims)])
        least = numbers.choice([0, 0, -1])
        padding = [
            numbers.randint(min(least, most), most)
            for extent in reversed(x.shape[-dims:])
            for most in [extent - 1 if kind == "reflection" else 5] * 2
        ]
        try:
            made = getattr(aten, f"{kind}_pad{dims}d").default(x, padding)
        except RuntimeError:  # nothing is left
            continue
        if made.numel():
            check(f"{kind}_pad{dims}d_backward", torch.randn_like(made), x, padding)
            compared += 1
    assert compared > 60


@pytest.mark.parametrize("dims", [2, 3])
def test_windows_that_begin_at_random(dims: int) -> None:
    numbers = random.Random(dims)
    torch.manual_seed(0)
    forward = getattr(aten, f"fractional_max_pool{dims}d").default
    for _ in range(40):
        x = image(numbers, [numbers.randint(3, 11 if dims == 2 else 6) for _ in range(dims)])
        x = torch.where(torch.rand(x.shape) < 0.1, torch.nan, x)
        x = torch.where(torch.rand(x.shape) < 0.3, -torch.inf, x)
        sizes = x.shape[-dims:]
        kernel = [numbers.randint(1, min(3, n - 1)) for n in sizes]
        output = [numbers.randint(1, n - k) for n, k in zip(sizes, kernel, strict=True)]
        batch = x.shape[0] if x.dim() == dims + 2 else 1
        samples = torch.rand(batch, x.shape[-dims - 1], dims, dtype=x.dtype)
        args = (x, kernel, output, samples)
        made, indices = forward(*args)
        torch.testing.assert_close(
            REGISTRY[forward](*args), (made, indices), rtol=0, atol=0, equal_nan=True
        )
        grad = torch.randn_like(made)
        check(f"fractional_max_pool{dims}d_backward", grad, x, kernel, output, indices)
