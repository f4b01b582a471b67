"""Arrays that are read beyond their edges, slabs of arrays, and layers that pixels choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch import Tensor
from torch.nn import functional

from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

MODES = ["replicate", "reflect", "circular"]
SIZES = [(7, 5), (37, 64), (131, 517)]


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.each_choice
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("reach", [1, 2, 4])
def test_stencils_beyond_edges(
    check: Callable[..., Any], mode: str, size: tuple[int, int], reach: int
) -> None:
    """Each step reads what the one before has made; NaN and infinities spread as they do."""

    def function(x: Tensor) -> Tensor:
        for _ in range(2):
            padded = functional.pad(x, (reach, reach, reach, reach), mode=mode)
            rows = padded[..., : -2 * reach, :] + 0.5 * padded[..., 2 * reach :, :]
            x = rows[..., : -2 * reach] - 0.25 * rows[..., 2 * reach :]
        return x

    x = numbers(1, 3, *size)
    x[0, 1, 2, 3], x[0, 2, 5, 0], x[0, 0, 0, 4] = float("nan"), float("inf"), float("-inf")
    check(function, x)


@pytest.mark.each_choice
@pytest.mark.parametrize("sides", [(3, 0, 0, 2), (0, 1, 0, 1), (5, 2, 1, 4)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32], ids=str)
def test_one_side_and_dtypes(
    check: Callable[..., Any], sides: tuple[int, ...], dtype: torch.dtype
) -> None:
    def function(x: Tensor) -> Tensor:
        padded = torch.cat([x[:, :1]] * sides[2] + [x] + [x[:, -1:]] * sides[3], 1)
        wide = torch.cat([padded[..., :1]] * sides[0] + [padded] + [padded[..., -1:]] * sides[1], 2)
        return wide[..., 1:] * 2 - wide[..., :-1]

    check(function, (8 * numbers(2, 19, 45)).to(dtype))


@pytest.mark.parametrize("mode", sweep(MODES, "reflect", extended=["circular"]))
def test_inputs_of_any_strides(check: Callable[..., Any], mode: str) -> None:
    def function(x: Tensor) -> Tensor:
        padded = functional.pad(x, (2, 2, 2, 2), mode=mode)
        return padded[..., 4:, 4:] - padded[..., :-4, :-4]

    check(function, numbers(3, 1, 41, 53).transpose(2, 3))
    check(function, numbers(1, 40, 50, 3).permute(0, 3, 1, 2)[..., ::2])


@pytest.mark.each_choice
@pytest.mark.parametrize("extent", [5, 1030, 40000])
@pytest.mark.parametrize("mode", MODES)
def test_long_rows(check: Callable[..., Any], extent: int, mode: str) -> None:
    """Rows that tiles cut, and that round trips of several steps read anywhere."""

    def function(x: Tensor) -> Tensor:
        for _ in range(3):
            padded = functional.pad(x, (1, 1), mode=mode)
            x = (padded[..., 2:] - padded[..., :-2]).sin() + padded[..., 1:-1]
        return x

    check(function, numbers(1, 2, extent))


def test_what_goes_round_by_different_steps(check: Callable[..., Any]) -> None:
    def function(x: Tensor) -> Tensor:
        around = [x.roll((dy, dx), (0, 1)) for dy in (-7, 0, 2) for dx in (-1, 3)]
        return sum(around[1:], around[0]).cos() * x.roll(-11, 0)

    check(function, numbers(67, 130))


def test_a_halved_image_that_is_enlarged_again(check: Callable[..., Any]) -> None:
    def function(x: Tensor) -> Tensor:
        padded = functional.pad(x, (1, 1, 1, 1), mode="replicate")
        half = (padded[..., :-2:2, 1:-1:2] + padded[..., 2::2, 2::2]) * 0.5
        again = functional.interpolate(half, scale_factor=2, mode="bilinear")
        return x - again * again.relu()

    for size in ((6, 10), (34, 70), (258, 514)):
        check(function, numbers(1, 2, *size))


@pytest.mark.each_choice
@pytest.mark.parametrize("count", sweep([2, 3, 8, 13, 40], 2, 3, 13))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32], ids=str)
def test_layers(check: Callable[..., Any], count: int, dtype: torch.dtype) -> None:
    """Also NaN in layers that are not chosen, and counts that are no power of two."""
    choice = torch.rand(50, 71, generator=torch.Generator().manual_seed(2))
    layers = (9 * numbers(count, 50, 71)).to(dtype)
    if dtype.is_floating_point:
        layers[0, ::7, ::5] = float("nan")
        layers[-1, ::3] = float("inf")

    def function(layers: Tensor, choice: Tensor) -> Tensor:
        below = (choice * (count - 1)).to(torch.int64).clamp(0, count - 2)[None]
        low, high = layers.gather(0, below), layers.gather(0, below + 1)
        return (torch.where(choice[None] > 0.5, low, high) + low)[0]

    check(function, layers, choice)


def test_a_short_table_and_layers_of_an_enlarged_image(check: Callable[..., Any]) -> None:
    table = torch.linspace(-1, 1, 6)

    def function(layers: Tensor, choice: Tensor) -> Tensor:
        chosen = choice.clamp(0, 5)
        large = functional.interpolate(layers[None], scale_factor=2, mode="bilinear")[0]
        return large.gather(0, chosen[None])[0] * table[chosen] + (choice - 1)

    choice = torch.randint(-2, 9, (44, 78), generator=torch.Generator().manual_seed(3))
    check(function, numbers(6, 22, 39), choice)


@pytest.mark.parametrize(
    "size", sweep([(9, 11), (700, 1030)], (700, 1030), extended=[(9, 11)]), ids=str
)
def test_slabs_that_several_read(check: Callable[..., Any], size: tuple[int, int]) -> None:
    """Large enough for memory to count, and small; the slabs are of one and of several planes."""

    def function(x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        stack = torch.cat([x * known, known[None], x[1:] - 1])
        differences = stack[:, 1:] - stack[:, :-1]
        return differences.abs(), stack * (2 - stack[3])

    x = numbers(3, *size)
    x[0, 3, 4], x[2, 1, 1] = float("nan"), float("inf")
    check(function, x, (numbers(*size) > 0).float())


def test_a_padded_stencil_is_one_kernel(check: Callable[..., Any]) -> None:
    def function(x: Tensor) -> Tensor:
        padded = functional.pad(x, (1, 1, 1, 1), mode="replicate")
        return padded[..., 2:, 2:] - padded[..., :-2, :-2]

    report = check(function, numbers(1, 3, 40, 50))
    assert [len(part.kernels) for part in report.parts] == [1]


@pytest.mark.each_choice
@pytest.mark.parametrize(
    "widths",
    sweep([(-4, 5), (-6, 9), (5, -4), (9, -7), (-3, 3)], (-6, 9), (5, -4), (-3, 3)),
    ids=str,
)
@pytest.mark.parametrize("extent", [1, 4])
def test_gradients_where_all_is_cut_off_and_an_end_repeated(widths, extent):
    def function(x):
        return functional.pad(x, widths, mode="replicate")

    x = torch.randn(2, 3, extent, requires_grad=True)
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    cotangent = torch.randn(2, 3, extent + sum(widths))
    gradients = [torch.autograd.grad(call(x), x, cotangent) for call in (ours, function)]
    torch.testing.assert_close(*gradients)
