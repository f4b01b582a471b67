"""Random attentions, compiled and compared with float64 and eager mode; scores stay in tiles.

`python tests/slow/random_attention.py` runs many more of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from attention_fuzz import FINITE, MASKS, Sample, make, problem
from sweeps import sweep
from torch import Tensor

import polyblocks
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("number", sweep([1, 3, 5, 7, 9, 11, 13, 22], 1, 7, 11))
def test_random_attention(number: int) -> None:
    assert problem(make(0, number)) == ""


def test_draws_are_repeated_and_have_all_masks() -> None:
    drawn = [make(1, number) for number in range(100)]
    assert drawn[:10] == [make(1, number) for number in range(10)]
    assert {sample.mask for sample in drawn} == set(MASKS)
    assert any(sample.library for sample in drawn)
    assert {sample.mask for sample in drawn if sample.flex} == set(MASKS) - set(FINITE)


@pytest.mark.parametrize("mask", ["none", "boolean"])
@pytest.mark.parametrize("library", [True, False])
def test_scores_are_in_tiles(library: bool, mask: str) -> None:
    """Twelve heads of 1,024 queries and keys have 48 MiB of scores."""
    heads = (1, 12, 1)
    sample = Sample(heads, 1024, 1024, 64, 64, torch.float32, mask, library, "masked rows", 1)
    assert problem(sample) == ""
    assert _workspace(sample.function(), sample.inputs()) < 8 << 20


def test_scores_are_in_memory_if_the_option_says_so() -> None:
    sample = Sample((1, 12, 1), 1024, 1024, 64, 64, torch.float32, "none", False, "", 1)
    function, inputs = sample.function(), sample.inputs()
    apart = _workspace(function, inputs, polyblocks_disable_reduce_reduce_fusion=True)
    assert apart > 48 << 20


def test_a_sum_over_pairs_of_points_is_in_tiles() -> None:
    """Not attention: a kernel of distances times weights."""

    def smooth(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
        squares = (x * x).sum(-1)[:, None] + (y * y).sum(-1)[None, :]
        return torch.exp(2 * x @ y.T - squares) @ w

    points = [torch.randn(2048, 8) * 0.2, torch.randn(2048, 8) * 0.2, torch.randn(2048, 32)]
    found = polyblocks_jit_torch(smooth)(*points)
    exact = smooth(*(x.double() for x in points))
    assert (found - exact).abs().max() < 1e-5 * exact.abs().max()


def _workspace(function: Callable[..., Tensor], inputs: list[Tensor], **options: Any) -> int:
    """Bytes of memory between kernels."""
    given = {"target": "cpu", "arch": "znver4", "num_threads": 2, **options}
    artifact = polyblocks.aot(function, inputs, given, frontend="torch")
    found = [a for a in artifact.manifest["arguments"] if a["role"] == "workspace"]
    return sum(a["shape"][0] for a in found)
