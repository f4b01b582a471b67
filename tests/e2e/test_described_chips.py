"""Programs compiled for CPUs of other descriptions, and run on this one.

`python tests/slow/random_programs.py FIRST LAST --chip all` runs many more of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import layer_fuzz
import program_fuzz
import pytest
import torch
from described_chips import NAMES, described_as
from sweeps import sweep
from torch import nn

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


class Block(nn.Module):
    """The basic block of ResNet-18 (He et al. 2015, table 1)."""

    def __init__(self, channels: int, features: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, features, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(features, features, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(features) for _ in range(2))
        self.skip = nn.Identity() if stride == 1 else nn.Conv2d(channels, features, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(self.norms[1](self.second(y)) + self.skip(x))


@pytest.mark.parametrize(("chip", "stride"), [("toy", 1), ("toy", 2), ("lanes-4", 2)])
def test_a_block_of_resnet(check: Callable[..., Any], chip: str, stride: int) -> None:
    model = Block(4, 4 * stride, stride).eval()
    with torch.no_grad(), described_as(chip):
        check(model, torch.randn(2, 4, 32, 32))


#: Programs, each for a chip.
SEEDS = list(enumerate(NAMES))


@pytest.mark.parametrize("case", sweep(SEEDS, *SEEDS[:3], extended=SEEDS[3:]), ids=str)
def test_a_random_program(case: tuple[int, str]) -> None:
    seed, chip = case
    fuzz = (program_fuzz, layer_fuzz)[seed % 2]
    with described_as(chip):
        assert program_fuzz.check(fuzz.make(seed), polyblocks_jit_torch, seed) == []
