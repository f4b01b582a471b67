"""16-bit values are compared as they are stored, however precisely they were computed."""

from __future__ import annotations

import pytest
import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_an_arg_max_finds_the_maximum_of_computed_values(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 0.5 + 1
        return y.argmax(1), y.amax(0)

    x = torch.randn(31, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    places, maxima = polyblocks_jit_torch(function)(x)
    expected_places, expected_maxima = function(x)
    assert torch.equal(places, expected_places)
    assert torch.equal(maxima, expected_maxima)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_steps_are_taken_at_rounded_values(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 3.0
        return torch.floor(y), y.to(torch.int32)

    # Three times these is just below an integer, and rounds to it.
    x = (torch.arange(1, 400) / 3).to(dtype)
    outputs = polyblocks_jit_torch(function)(x)
    for ours, right in zip(outputs, function(x), strict=True):
        assert torch.equal(ours, right)
