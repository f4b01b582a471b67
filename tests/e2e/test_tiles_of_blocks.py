"""Tiles of GPUs with checks, with every other element, and of enlarged images, simulated."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

import polyblocks
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

CHIPS = {"sm_90a": "nvgpu", "gfx1100": "amdgpu"}


def compiled(function: Any, arch: str) -> Any:
    options = {"target": CHIPS[arch], "arch": arch, "simulate": True, "strict_target": True}
    return polyblocks_jit_torch(compile_options=options)(function)


def kernels(function: Any, inputs: list[torch.Tensor], arch: str) -> int:
    options = {"target": CHIPS[arch], "arch": arch, "simulate": True}
    return len(polyblocks.aot(function, inputs, options, frontend="torch").manifest["kernels"])


def sharpened_curve(places: torch.Tensor, curve: torch.Tensor) -> torch.Tensor:
    """A table's values, and what they differ by from their neighbours above and below."""
    y = torch.tanh(curve[places])
    return 2 * y[1:-1] - 0.5 * (y[2:] + y[:-2])


def interleaved(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Rows of two images in turn, smoothed."""
    rows = torch.stack([torch.exp(a), torch.tanh(b)], dim=1).reshape(-1, a.shape[1])
    return rows[2:] + rows[1:-1] + rows[:-2]


def enlarged(x: torch.Tensor) -> torch.Tensor:
    """An image enlarged four times in two steps, smoothed between."""
    for _ in range(2):
        x = functional.interpolate(x, scale_factor=2.0, mode="bilinear")
        x = x + functional.avg_pool2d(functional.pad(x, (1, 1, 1, 1), mode="replicate"), 3, 1)
    return x


@pytest.mark.parametrize("arch", CHIPS)
def test_a_check_that_fails_is_told_from_within_a_tile(arch: str) -> None:
    places, curve = torch.randint(0, 257, (130, 70)), torch.randn(257)
    assert kernels(sharpened_curve, [places, curve], arch) == 1
    run = compiled(sharpened_curve, arch)
    torch.testing.assert_close(run(places, curve), sharpened_curve(places, curve))
    places[77, 31] = 257
    with pytest.raises(Exception, match="index out of range"):
        run(places, curve)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(67, 131), (1, 1), (2, 257)])
def test_rows_of_two_images_in_turn(arch: str, shape: tuple[int, int]) -> None:
    a, b = torch.randn(shape), torch.randn(shape)
    a[0, 0] = float("nan")
    want = interleaved(a, b)
    torch.testing.assert_close(compiled(interleaved, arch)(a, b), want, equal_nan=True)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(1, 3, 37, 53), (1, 1, 64, 96)])
def test_enlarged_twice(arch: str, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    x[..., 9, 20] = float("nan")
    torch.testing.assert_close(compiled(enlarged, arch)(x), enlarged(x), equal_nan=True)
