"""NaN, zeros of both signs, numbers that wrap around: as PyTorch has them, in compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch import Tensor
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

nan, inf = math.nan, math.inf
aten = torch.ops.aten


def as_eager(function: Callable[..., Any], *inputs: Tensor, rtol: float = 0) -> None:
    """Compiled, a function gives the same numbers, and zeros of the same signs."""
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    found, expected = (pytree.tree_leaves(f(*inputs)) for f in (compiled, function))
    assert len(found) == len(expected)
    for index, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        torch.testing.assert_close(
            mine, theirs, equal_nan=True, rtol=rtol, atol=0, msg=lambda m, i=index: f"{i}: {m}"
        )
        if theirs.is_floating_point():
            zeros = (theirs == 0) & (mine.signbit() != theirs.signbit())
            assert not zeros.any(), f"result {index}: zeros of another sign at {zeros.nonzero()}"


FLOATS = torch.tensor(
    [-0.0, 0.0, -1e-8, -1e-6, 1e-6, -1, 1, nan, inf, -inf, 2.5, -3.5, 0.3, 20, -20, -100.0]
)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.float32, torch.float64, torch.float16],
        *(torch.float32, torch.float16),
        extended=[torch.float64],
    ),
    ids=str,
)
def test_activations_and_roundings(dtype: torch.dtype) -> None:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        return (
            *(F.elu(x), F.elu(x, 1.5), F.selu(x), F.celu(x, 2.0), F.hardshrink(x)),
            *(x.trunc(), x.frac(), x.floor(), x.ceil(), x.round(), x**0.5, x**-0.5),
        )

    as_eager(function, FLOATS.to(dtype), rtol=1e-3 if dtype == torch.float16 else 1e-6)


def test_nan_that_bounds() -> None:
    def function(x: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return (
            *(x.clamp(max=nan), x.clamp(min=nan), x.clamp(0, nan), x.clamp(-1, 1)),
            *(torch.clamp(x, a, b), torch.clamp(x, min=a), torch.clamp(x, max=b)),
            *(aten.clamp_min(x, nan), aten.clamp_max(x, 0.3), F.hardtanh(x, -0.5, 0.5)),
        )

    x = FLOATS[FLOATS != 0]
    as_eager(function, x, x.flip(0).clone(), x.roll(3))


@pytest.mark.parametrize(
    "dtype", sweep([torch.float32, torch.float64], torch.float32, extended=[torch.float64]), ids=str
)
def test_what_counts_nothing_in_products(dtype: torch.dtype) -> None:
    def function(none: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        row, left, nans = none[0], a[None], a * nan
        ones = torch.ones_like(none)
        return (
            torch.addmm(none, a, b, beta=0),
            torch.addmm(none, a, b, beta=0, alpha=0.5),
            torch.addmm(ones, nans, b, alpha=0, beta=3),
            torch.addmm(ones[0], nans, b, alpha=0),
            torch.addmm(none, nans, b, alpha=0, beta=0),
            torch.addmv(row, a, b[:, 0], beta=0),
            torch.addmv(ones[0], nans, b[:, 0], alpha=0),
            torch.baddbmm(none[None], left, b[None], beta=0),
            torch.addbmm(none, left, b[None], beta=0),
            torch.addbmm(ones, nans[None], b[None], alpha=0),
            torch.addr(none, a[0, :2], b[:2, 0], beta=0),
        )

    matrix = torch.arange(1.0, 7.0, dtype=dtype)
    as_eager(
        function,
        torch.full((2, 2), nan, dtype=dtype),
        matrix.reshape(2, 3),
        matrix.reshape(3, 2),
        rtol=1e-6,
    )


def test_sums_with_integer_products() -> None:
    def function(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        return (
            torch.addmm(c, a, b, beta=2.7, alpha=0.5),
            torch.addmv(c[0], a, b[:, 0], beta=2, alpha=3),
            torch.addr(c, a[0, :2], b[:2, 0]),
            torch.addbmm(c, a[None], b[None]),
        )

    a = torch.arange(6, dtype=torch.int32)
    as_eager(function, a.reshape(2, 3), a.reshape(3, 2), torch.ones(2, 2, dtype=torch.int32))


INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
AMOUNTS = (0, 1, 3, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 100, -1)


@pytest.mark.parametrize(
    "dtype", sweep(INTEGERS, torch.uint8, extended=[torch.int8, torch.int64]), ids=str
)
def test_bits_with_numbers(dtype: torch.dtype) -> None:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        shifts = [shifted for k in AMOUNTS for shifted in (x << k, x >> k)]
        positive = x > 0
        booleans = (positive & 1, positive ^ 1, positive | 2, 1 & positive, positive & True)
        return (*shifts, *booleans, x & 0x1FF, x | -1, x ^ 5, 5 ^ x, ~positive)

    numbers = [0, 1, 5, 100, 127, *((128, 255) if dtype == torch.uint8 else (-1, -7, -128))]
    as_eager(function, torch.tensor(numbers, dtype=dtype))


def test_numbers_become_those_of_the_type() -> None:
    def function(b: Tensor, i: Tensor, byte: Tensor) -> tuple[Tensor, ...]:
        return (
            torch.full((2,), 42, dtype=torch.bool),
            torch.full((3,), 0.5, dtype=torch.bool),
            torch.full((2,), -1, dtype=torch.uint8),
            torch.full((3,), -2.7, dtype=torch.int32) + i,
            torch.full_like(i, 3, dtype=torch.bool).sum(),
            i.new_full((2,), 300, dtype=torch.bool),
            b.masked_fill(b, 2),
            b.clone().fill_(7),
            F.threshold(i, 2.9, -8.6),
            F.hardtanh(i, -1.5, 1.5),
            i % 3,
            7 % i,
            torch.div(i, 2.5, rounding_mode="floor"),
            torch.any(byte, 0),
            torch.all(byte),
            torch.any(byte[0], 0),
            torch.ldexp(torch.ones(3), i * 100),
        )

    as_eager(
        function,
        torch.tensor([True, False]),
        torch.tensor([3, -5], dtype=torch.int32)[:1].repeat(3),
        torch.tensor([5, 0], dtype=torch.uint8),
    )


def test_searches_and_sizes() -> None:
    def function(x: Tensor, wide: Tensor, small: Tensor, whole: Tensor) -> tuple[Any, ...]:
        return (
            torch.bucketize(2.5, whole),
            torch.searchsorted(whole, 2.5, right=True),
            torch.bucketize(x, whole),
            torch.isin(0.001, wide),
            torch.isin(wide, 0.001),
            torch.isin(0.3, x),
            torch.isin(0.3, x[10:]),
            torch.isin(2, x),
            torch.hypot(small, torch.zeros(5)),
            torch.hypot(small > 0, torch.ones(5)),
            torch.embedding_bag(x[:4].reshape(2, 2), whole.clamp(max=1), whole[:1] * 0),
            torch.cdist(x[:4].reshape(2, 2), x[6:10].reshape(2, 2), 0),
            aten.div(3, 2) * x,
        )

    as_eager(
        function,
        torch.where(FLOATS == 0, 2.0, FLOATS),
        torch.tensor([0.001, 0.5], dtype=torch.float64),
        torch.tensor([-128, -3, 0, 3, 127], dtype=torch.int8),
        torch.tensor([1, 2, 3]),
    )


def test_deviations_of_equal_numbers_are_zero() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x.std(), x.var(0), torch.std_mean(x)[0], y.std(0), y.std(), torch.std(y, 1)

    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    equal = torch.full((7,), 0.1, dtype=torch.float64)
    assert all(not r.any() for r in compiled(equal, torch.full((7, 9), 0.1)))
    leaf = equal.clone().requires_grad_()
    polyblocks_jit_torch(compile_options={"strict_target": True})(torch.std)(leaf).backward()
    assert leaf.grad is not None
    assert not leaf.grad.any()


@pytest.mark.parametrize(
    "mode", sweep(["bilinear", "nearest", "bicubic"], "bilinear", extended=["nearest"])
)
def test_pixels_that_are_no_numbers_show_where_they_are_sampled(mode: str) -> None:
    def function(x: Tensor, grid: Tensor) -> tuple[Tensor, ...]:
        return tuple(
            F.grid_sample(x, grid, mode, padding, align_corners=False)
            for padding in ("zeros", "border", "reflection")
        )

    torch.manual_seed(0)
    x, grid = torch.randn(2, 3, 5, 7), torch.randn(2, 4, 6, 2) * 1.2
    x[0, 0, 0, 0], x[1, 2, 4, 6], x[1, 1, 0, 0] = nan, inf, -inf
    grid[0, 1, 2, 0], grid[1, 0, 0, 1] = nan, inf
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    torch.testing.assert_close(
        compiled(x, grid), function(x, grid), equal_nan=True, rtol=1e-4, atol=1e-5
    )
