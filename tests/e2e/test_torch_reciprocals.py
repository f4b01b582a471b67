"""Divisions by what a loop does not change: numbers of all sizes, and what is no number."""

from __future__ import annotations

import pytest
import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

SPECIAL = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, -3.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_quotients_of_extreme_numbers(dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)
    tiny, huge = info.tiny, info.max
    steps = torch.tensor([info.smallest_normal * 2.0**-k for k in (1, 5, 20)], dtype=dtype)
    edges = [tiny, tiny * 2, 2 / huge, huge, huge / 2, huge / 8, 1 / tiny]
    numbers = torch.cat([torch.tensor([*SPECIAL, *edges], dtype=dtype), steps])
    numbers = torch.cat([numbers, torch.randn(60, dtype=dtype) * 10.0 ** torch.arange(-30, 30)])
    d = numbers.view(-1, 1)
    x = numbers.view(1, -1).expand(len(numbers), -1).contiguous()

    compiled = polyblocks_jit_torch(
        lambda x, d: x / d, compile_options={"strict_target": True, "num_threads": 1}
    )
    ours, theirs = compiled(x, d), x / d
    assert torch.equal(ours.isnan(), theirs.isnan())
    assert torch.equal(ours.isinf(), theirs.isinf())
    zeros = theirs == 0
    assert torch.equal(ours[zeros].signbit(), theirs[zeros].signbit())
    normal = theirs.isfinite() & (theirs.abs() >= tiny)
    error = ((ours - theirs) / theirs)[normal].abs().max()
    assert error <= 2 * info.eps
    rest = theirs.isfinite() & ~normal
    assert ((ours - theirs)[rest].abs() <= 2 * tiny * info.eps).all()


def test_the_option_keeps_divisions() -> None:
    x, d = torch.randn(5, 64), torch.randn(5, 1)
    compiled = polyblocks_jit_torch(
        lambda x, d: x / d,
        compile_options={
            "strict_target": True,
            "polyblocks_disable_unsafe_math_canonicalizations": True,
        },
    )
    assert torch.equal(compiled(x, d), x / d)
