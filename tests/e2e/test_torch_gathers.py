"""Loads at run-time indices in vectors, against eager PyTorch: every rest, every type, checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch.nn import functional

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

SIZES = sweep([1, 7, 16, 31, 33, 1003], 7, 33, 1003, extended=[1, 16, 31])
ARCHS = ["native", "x86-64-v3", "x86-64"]


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return polyblocks_jit_torch(function, compile_options={"strict_target": True, **options})


def same(function: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> None:
    torch.testing.assert_close(
        compiled(function, **options)(*inputs), function(*inputs), equal_nan=True
    )


def bent(x: torch.Tensor, curve: torch.Tensor) -> torch.Tensor:
    """A curve between the entries of a table."""
    place = x.clamp(0, 1) * (len(curve) - 1)
    below = place.to(torch.int64).clamp(0, len(curve) - 2)
    part = place - below
    return curve[below] * (1 - part) + curve[below + 1] * part


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("size", SIZES)
def test_a_curve_of_every_size(size: int, arch: str) -> None:
    torch.manual_seed(0)
    same(bent, torch.randn(size), torch.rand(65), arch=arch)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.float64, torch.int32, torch.int64, torch.int8, torch.bfloat16],
        torch.int64,
        extended=[torch.float64, torch.bfloat16],
    ),
    ids=str,
)
def test_tables_of_every_type(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    table = torch.randint(-100, 100, (65,)).to(dtype)

    def function(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        at = (torch.sigmoid(x * 2 + 1).nan_to_num(0.5) * 64).to(torch.int64)
        return (table[at] * 2 + table[64 - at]).to(torch.float64) * x

    same(function, torch.randn(1003), table)


def test_infinities_are_at_the_ends() -> None:
    x = torch.randn(1003)
    x[5::97], x[6::97], x[7::97] = float("inf"), -float("inf"), -0.0
    same(bent, x, torch.rand(65))


@pytest.mark.each_choice
@pytest.mark.parametrize("at", [0, 17, 1000, 1002])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30, -1e30, 66.0])
def test_what_is_outside_is_found_in_every_lane(at: int, value: float) -> None:
    def function(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        y = x * 1.5 - x * 0.5
        return table[y.to(torch.int64)] * torch.sqrt(y + 1) + y

    x = torch.rand(1003) * 60
    table = torch.rand(65)
    function_ = compiled(function)
    torch.testing.assert_close(function_(x, table), function(x, table))
    x[at] = value
    with pytest.raises(Exception, match="index out of range"):
        function_(x, table)


def special(*shape: int) -> torch.Tensor:
    torch.manual_seed(0)
    x = 2.6 * torch.rand(shape) - 1.3
    x.view(-1)[3::41] = float("nan")
    x.view(-1)[4::41] = float("inf")
    x.view(-1)[5::41] = -float("inf")
    x.view(-1)[6::41] = 1.0
    x.view(-1)[7::41] = -1.0
    return x


@pytest.mark.each_choice
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_samples_of_volumes(mode: str, align: bool) -> None:
    samples_agree(mode, align, (5, 7, 9))


@pytest.mark.extended
@pytest.mark.parametrize("mode, align", [("bilinear", False), ("nearest", True)])
def test_samples_of_tiny_volumes(mode: str, align: bool) -> None:
    samples_agree(mode, align, (1, 2, 1))


def samples_agree(mode: str, align: bool, volume: tuple[int, int, int]) -> None:
    def function(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return functional.grid_sample(x, grid, mode, padding_mode="border", align_corners=align)

    same(function, torch.randn(2, 3, *volume), special(2, 3, 5, 37, 3))


def test_samples_outside_are_zero() -> None:
    def function(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return functional.grid_sample(x, grid, padding_mode="zeros", align_corners=True)

    grid = special(1, 3, 5, 37, 3)
    grid = torch.where(grid.isfinite(), grid, 0.3)
    same(function, torch.randn(1, 2, 5, 7, 9), grid)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", sweep(["bilinear", "nearest", "bicubic"], "bilinear"))
@pytest.mark.parametrize("shape", sweep([(2, 17, 5, 9), (1, 40, 7, 3)], (2, 17, 5, 9)), ids=str)
@pytest.mark.parametrize("width", [16, 203])
def test_vectors_of_channels(
    width: int, shape: tuple[int, ...], mode: str, padding: str, arch: str
) -> None:
    def function(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        options = {"padding_mode": padding, "align_corners": padding == "border"}
        return functional.grid_sample(x, grid, mode, **options) + 1

    grid = special(shape[0], 12, width, 2)
    if padding != "border" or mode == "bicubic":
        grid = torch.where(grid.isfinite(), grid, 0.3)
    x = torch.randn(shape)
    x.view(-1)[5], x.view(-1)[70] = float("nan"), float("inf")
    same(function, x, grid, arch=arch)
    # Channels that lie side by side are not copied.
    same(function, x.contiguous(memory_format=torch.channels_last), grid, arch=arch)


@pytest.mark.parametrize("channels", [8, 37])
def test_channels_are_added_to_rows(channels: int) -> None:
    def function(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows = x.reshape(2, channels, -1).transpose(1, 2).reshape(-1, channels)
        empty = x.new_zeros(30, channels)
        first = empty.index_add(0, at, rows)
        return first, first.index_add(0, at.flip(0), rows * 2), x.add_(1), rows

    x, at = torch.randn(2, channels, 13, 7), torch.randint(0, 30, (2 * 13 * 7,))
    results = [f(x.clone(), at) for f in (function, compiled(function))]
    torch.testing.assert_close(*results)


def test_channels_are_looked_up_with_the_places_of_blocks() -> None:
    def function(
        x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, scale: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        place = (at * 2).to(torch.int64)
        found = x[:, place] * at.frac() + scale[:, None, None]
        return found, y[:, place] * found

    at = torch.rand(12, 150) * 49
    x, y = torch.randn(16, 100, dtype=torch.float64), torch.randn(16, 100, dtype=torch.float64)
    scale = torch.randn(16, dtype=torch.float64)
    same(function, x, y, at, scale)
    at[7, 149] = 50
    with pytest.raises(Exception, match="index out of range"):
        compiled(function)(x, y, at, scale)


@pytest.mark.parametrize(
    "dtype", sweep([torch.float32, torch.int64], torch.float32, extended=[torch.int64]), ids=str
)
def test_sums_and_counts_of_the_same_cells(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    cells = torch.randint(0, 300, (300_001,))
    x = torch.randint(0, 9, (300_001,)).to(dtype)

    def function(x: torch.Tensor, cells: torch.Tensor) -> tuple[torch.Tensor, ...]:
        empty = x.new_zeros(300)
        sums = empty.index_add(0, cells, x)
        counts = empty.index_add(0, cells, torch.ones_like(x))
        # Of what the first two have made.
        third = sums.index_add(0, cells, counts[cells])
        return sums, counts, third

    same(function, x, cells)


def test_parts_of_a_stack_in_and_out_of_order() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        stack = torch.stack([x.exp(), y * 2, x - y], dim=-1)
        return stack[..., 2] + stack[..., 0] * stack[..., 1], stack.flip(-1)

    same(function, torch.randn(7, 33), torch.randn(7, 33))
    same(lambda x, y: function(x, y)[0], torch.randn(33, 7).T, torch.randn(7, 66)[:, ::2])


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    "shape",
    sweep([(2, 301), (4, 7, 11), (5, 3, 13), (1, 2, 6)], (2, 301), (5, 3, 13), (1, 2, 6)),
    ids=str,
)
def test_slices_that_are_looked_up_at_one_place(shape: tuple[int, ...], arch: str) -> None:
    torch.manual_seed(0)

    def function(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        *_, slices, last = shape
        at = (torch.sigmoid(x) * last).to(torch.int64).clamp(0, last - 1)
        parts = table.reshape(-1, slices, last) if len(shape) > 2 else table[None]
        total = x * 0
        for k in range(slices):
            total = total * 0.5 + parts[0, k][at] * (parts[-1, slices - 1 - k][at] + 1)
        return total

    table = torch.randn(shape)
    table.view(-1)[3] = float("nan")
    for size in (7, 1003, 20011):
        same(function, torch.randn(size), table, arch=arch)
