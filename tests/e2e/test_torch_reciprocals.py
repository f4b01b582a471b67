"""Divisions by what a loop does not change: numbers of all sizes, and what is no number."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

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


@pytest.mark.parametrize("shape", [(64, 64), (4096,)])
def test_quotients_that_are_rounded(shape: tuple[int, ...]) -> None:
    # 1 / 41 and the others are rounded such that a product with them is off where it is whole.
    divisors = [41.0, 47.0, 55.0, 61.0, 83.0, 97.0, 0.1, 0.3]

    def whole(x: torch.Tensor, d: torch.Tensor) -> list[torch.Tensor]:
        found = [f(x / n) for n in divisors for f in (torch.floor, torch.ceil, torch.trunc)]
        found += [(x / n).clamp(0, 255).to(torch.uint8) for n in divisors]
        return [*found, (x / d).long()]

    x = torch.arange(0.0, 4096.0).view(shape)
    d = torch.tensor(divisors).repeat_interleave(512).view(shape)
    largest = x.view(64, 64).amax(1, keepdim=True) + 1

    def levels(x: torch.Tensor) -> torch.Tensor:
        return (x.view(64, 64) / largest * 49).long()

    ours = polyblocks_jit_torch(whole, compile_options={"strict_target": True})(x, d)
    for mine, theirs in zip(ours, whole(x, d), strict=True):
        assert torch.equal(mine, theirs)
    ours = polyblocks_jit_torch(levels, compile_options={"strict_target": True})(x)
    assert torch.equal(ours, levels(x))


def test_quotients_that_are_moved_before_they_are_rounded() -> None:
    places = torch.arange(4095, -1, -3)

    def whole(x: torch.Tensor) -> list[torch.Tensor]:
        y = x / 0.3
        rows = y.view(64, 64)
        return [
            torch.cat([y, x / 0.1]).floor(),
            torch.stack([y, x / 0.1], 1).floor(),
            *(each.floor() for each in (y[places], y.flip(0), y.roll(5), rows.amax(1))),
            *(y.cummax(0).values.floor(), functional.max_pool2d(rows[None], 2).floor()),
            y.index_put((places[:1],), x[6:7] / 0.1).floor(),
            *(y % 1.0, torch.fmod(y, 1.0)),
        ]

    x = torch.arange(0.0, 4096.0)
    ours = polyblocks_jit_torch(whole, compile_options={"strict_target": True})(x)
    for mine, theirs in zip(ours, whole(x), strict=True):
        assert torch.equal(mine, theirs)


def test_quotients_that_are_compared_or_sorted() -> None:
    x, limits = 3 * torch.arange(4096.0), 10 * torch.arange(4096.0)

    def sort(x: torch.Tensor) -> torch.Tensor:
        return (x / 0.3).sort().values.long()

    def compare(x: torch.Tensor) -> list[torch.Tensor]:
        y = x / 0.3
        ones = y - limits
        return [y >= limits, y == limits, torch.where(y < limits, 1, 0), ones > 0, ones.sign()]

    def order(x: torch.Tensor) -> list[torch.Tensor]:
        rows = torch.stack([x / 0.3, limits], 1)
        return [rows.topk(1).indices, rows.argsort(dim=1, stable=True), (x / 0.3).view(torch.int32)]

    for f in (sort, compare, order):
        ours = polyblocks_jit_torch(f, compile_options={"strict_target": True})(x)
        for mine, theirs in zip(ours, f(x), strict=True):
            assert torch.equal(mine, theirs)
