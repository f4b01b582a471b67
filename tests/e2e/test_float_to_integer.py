"""Conversions of floats to integers, and shifts by run-time counts: one result on every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from cpu_kernels import runnable_levels
from simulated_chips import on_chip

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

NAN, INF = float("nan"), float("inf")
#: Of each, more than a vector: what fits, what does not, and what is no number.
NUMBERS = [
    *(NAN, -NAN, INF, -INF, 2.0**31, -(2.0**31), 2.0**31 - 128, -(2.0**31) - 256, 2.0**63),
    *(-(2.0**63), 1e20, -1e20, 2.0**32 + 512, 300.0, -1.5, 255.9, -0.0, 0.5, -129.0, 65537.0),
] * 5
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return polyblocks_jit_torch(function, compile_options={"strict_target": True, **options})


def converted(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The lowest of 32 or 64 bits for what does not fit them; fewer bits are the lower ones."""
    bits = 64 if dtype == torch.int64 else 32
    wide = x.double()
    fits = wide.abs() < 2.0 ** (bits - 1)
    return torch.where(fits, torch.where(fits, wide, 0.0).to(torch.int64), -(2 ** (bits - 1))).to(
        dtype
    )


def everything(*inputs: torch.Tensor) -> list[torch.Tensor]:
    return [x.to(dtype) for x in inputs for dtype in INTEGERS]


def assert_converted(ours: list[torch.Tensor], inputs: list[torch.Tensor]) -> None:
    cases = [(x, dtype) for x in inputs for dtype in INTEGERS]
    for result, (x, dtype) in zip(ours, cases, strict=True):
        assert torch.equal(result, converted(x, dtype)), (x.dtype, dtype)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", runnable_levels())
@pytest.mark.parametrize("count", [1, 100])
def test_on_every_level(arch: str, count: int) -> None:
    inputs = [torch.tensor(NUMBERS[:count], dtype=torch.float64).to(dtype) for dtype in FLOATS]
    assert_converted(compiled(everything, arch=arch)(*inputs), inputs)


@pytest.mark.parametrize("chip", ["sm_90a", "gfx1100"])
def test_on_simulated_gpus(chip: str) -> None:
    inputs = [torch.tensor(NUMBERS, dtype=torch.float64).to(dtype) for dtype in FLOATS]
    with on_chip(chip) as seen:
        ours = compiled(everything)(*inputs)
    assert seen.launches
    assert_converted(ours, inputs)


@pytest.mark.parametrize("number", [NAN, INF, -1e20, 3.7])
def test_constants(number: float) -> None:
    """Which LLVM would fold to anything it likes."""

    def f() -> list[torch.Tensor]:
        constants = [
            torch.full((9,), number, dtype=dtype) for dtype in (torch.float32, torch.float64)
        ]
        return [c.to(dtype) for c in constants for dtype in INTEGERS]

    constants = [torch.full((9,), number, dtype=dtype) for dtype in (torch.float32, torch.float64)]
    assert_converted(compiled(f)(), constants)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("chip", ["cpu", "sm_90a", "gfx1100"])
def test_nan_is_no_index(chip: str, dtype: torch.dtype, request: pytest.FixtureRequest) -> None:
    def f(table: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return table[x.to(dtype)]

    table, right, wrong = torch.arange(8.0), torch.tensor([1.5, 7.0]), torch.tensor([1.0, NAN])
    if chip == "cpu":
        g = compiled(f)
        assert torch.equal(g(table, right), f(table, right))
        with pytest.raises(Exception, match="index out of range"):
            g(table, wrong)
        return
    with on_chip(chip):
        g = compiled(f)
        assert torch.equal(g(table, right), f(table, right))
        with pytest.raises(Exception, match="index out of range"):
            g(table, wrong)
