"""Planes that take turns in rows and columns, and what reads them, against eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

SHAPES = [(1, 1), (3, 2), (7, 33), (64, 130), (101, 97)]


def same(function: Callable[..., Any], *inputs: torch.Tensor) -> None:
    compiled = polyblocks_jit_torch(function, compile_options={"strict_target": True})
    found, expected = compiled(*inputs), function(*inputs)
    # Of differences of numbers up to 200.
    atol = 1e-4 if expected.dtype == torch.float32 else None
    rtol = None if atol is None else 1e-5
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True)


def woven(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    """Even rows of a and b in turns, odd ones of c and d."""
    rows = [torch.stack(pair, dim=-1).flatten(-2) for pair in ((a, b), (c, d))]
    return torch.stack(rows, dim=-2).flatten(-3, -2)


def planes(*shape: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [(torch.randn(shape) * 50).to(dtype) for _ in range(4)]


@pytest.mark.parametrize("shape", sweep(SHAPES, *SHAPES[::2]))
def test_copies(shape: tuple[int, int]) -> None:
    same(woven, *planes(*shape))


@pytest.mark.each_choice
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.int8, torch.int64, torch.float16], ids=str)
def test_of_every_type(shape: tuple[int, int], dtype: torch.dtype) -> None:
    def function(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> Any:
        return woven(a + b, b - a, c, c + d)

    same(function, *planes(*shape, dtype=dtype))


def test_of_transposed_and_strided_planes() -> None:
    a, b, c, d = planes(40, 66)
    same(woven, a.t(), b.t(), c.t().contiguous(), d.t())
    same(woven, *(p[::2, 1::3] for p in (a, b, c, d)))


@pytest.mark.parametrize("shape", [(8, 9), (61, 40), (300, 301)])
def test_a_stencil_over_them(shape: tuple[int, int]) -> None:
    def function(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> Any:
        whole = woven(a[1:] - b[:-1], a[:-1], c[1:] * 2, d[:-1] + c[1:])
        inside = whole[1:-1, 1:-1]
        return inside - (whole[:-2, 1:-1] + whole[2:, 1:-1] + whole[1:-1, :-2]) / 3

    inputs = planes(*shape)
    inputs[0][3, 5] = float("nan")
    inputs[1][4, 6] = float("inf")
    same(function, *inputs)


@pytest.mark.parametrize("shape", [(9, 20), (150, 2100)])
def test_mixed_and_looked_up(shape: tuple[int, int]) -> None:
    """Three sums of three woven planes, each bent by a table: rows that exceed the first cache."""
    matrix = [[0.5, 0.2, 0.1], [0.1, 0.6, 0.2], [0.0, 0.3, 0.9]]

    def function(
        a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, curve: torch.Tensor
    ) -> torch.Tensor:
        colors = torch.stack([woven(a, b, c, d), woven(b, a, a + d, c), woven(a - b, d, d, a)])
        mixed = torch.einsum("ij,jhw->ihw", torch.tensor(matrix), colors)
        place = mixed.clamp(0.0, 1.0) * 32
        below = place.to(torch.int64).clamp(max=31)
        part = place - below
        bent = curve[below] * (1 - part) + curve[below + 1] * part
        return bent[:, 1:] - bent[:, :-1]

    inputs = [(p / 100).sigmoid() for p in planes(*shape)]
    same(function, *inputs, torch.rand(33))
    compiled = polyblocks_jit_torch(function, compile_options={"strict_target": True})
    inputs[2][4, 7] = float("nan")
    with pytest.raises(Exception, match="index out of range"):
        compiled(*inputs, torch.rand(33))


@pytest.mark.parametrize("parts", [2, 3, 5, 17])
@pytest.mark.parametrize("shape", [(7, 1003), (300, 64)], ids=str)
def test_stacks_along_the_last_dimension(parts: int, shape: tuple[int, int]) -> None:
    def function(*xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.stack(xs, -1), torch.cartesian_prod(*(x[0, :19] for x in xs[:3]))

    xs = tuple(torch.randn(shape) for _ in range(parts))
    xs[1][3, ::5] = float("nan")
    found = polyblocks_jit_torch(function, compile_options={"strict_target": True})(*xs)
    for one, other in zip(found, function(*xs), strict=True):
        assert torch.equal(one.nan_to_num(9), other.nan_to_num(9))
