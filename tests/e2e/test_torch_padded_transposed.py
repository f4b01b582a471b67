"""Transposed convolutions of inputs that the program pads by itself."""

from __future__ import annotations

import pytest
import torch
from sweeps import sweep
from torch.nn import functional

from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


@pytest.mark.each_choice
@pytest.mark.parametrize(
    "pad",
    sweep([(1, 2), (0, 3), (2, 0), (-1, 2), (1, -2), (1, 1, 2, 0)], (0, 3), (1, -2), (1, 1, 2, 0)),
)
@pytest.mark.parametrize("value", [0.0, 1.5])
def test_padding_in_front_of_a_strided_one(pad: tuple[int, ...], value: float) -> None:
    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        padded = functional.pad(x, pad, value=value)
        return functional.conv_transpose2d(padded, w, stride=(3, 2), padding=1, dilation=(1, 2))

    x, w = torch.randn(2, 4, 3, 7), torch.randn(4, 5, 3, 4)
    result = polyblocks_jit_torch(compile_options={"strict_target": True})(f)(x, w)
    torch.testing.assert_close(result.double(), f(x.double(), w.double()), atol=1e-5, rtol=1e-5)
