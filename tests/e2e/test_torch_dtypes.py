"""Operations on types other than float32, where they are not what float32's suggest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch import Tensor
from torch.nn import functional

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def same_as_eager(function: Callable[..., Any], *inputs: Tensor) -> None:
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    torch.testing.assert_close(compiled(*inputs), function(*inputs), equal_nan=True)


def test_complex_padding_is_real() -> None:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        return (
            functional.pad(x, (1, 2), value=1.0),
            functional.pad(x, (-1, 2, 0, 1), value=-2.5),
            functional.pad(x, (1, 0)),
            torch.ops.aten.constant_pad_nd(x, (0, 1), 3 - 4j),
        )

    same_as_eager(function, torch.randn(2, 3, dtype=torch.complex64))


@pytest.mark.each_choice
@pytest.mark.simulated
@pytest.mark.parametrize("count", [64, 61, 1])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16], ids=str)
def test_floats_become_small_integers_that_wrap_around(dtype: torch.dtype, count: int) -> None:
    def function(*floats: Tensor) -> tuple[Tensor, ...]:
        return tuple(x.to(dtype) for x in floats)

    # The last ones are in the range of the type alone without a sign.
    x = (
        torch.linspace(-70000, 70000, count)
        if dtype == torch.int16
        else torch.linspace(-400, 255, count)
    )
    same_as_eager(function, x, x.double(), x.clamp(-3e4, 3e4).half(), x.bfloat16())


@pytest.mark.parametrize(
    "dtype",
    sweep([torch.int64, torch.int32, torch.int8, torch.uint8], torch.int64, extended=[torch.uint8]),
    ids=str,
)
def test_integer_means_are_rounded_down(dtype: torch.dtype) -> None:
    def function(x: Tensor, index: Tensor, src: Tensor) -> tuple[Tensor, ...]:
        return (
            x.scatter_reduce(0, index, src, "mean"),
            x.scatter_reduce(0, index, src, "mean", include_self=False),
            x.index_reduce(0, index, src, "mean"),
            x[0].scatter_reduce(0, index[:1] * 0, src[:1], "mean"),
        )

    # Places 7 and 8 get nothing.
    index = torch.arange(30) * 5 % 7
    low = 0 if dtype == torch.uint8 else -100
    same_as_eager(
        function,
        torch.randint(low, 100, (9,), dtype=dtype),
        index,
        torch.randint(low, 100, (30,), dtype=dtype),
    )


@pytest.mark.parametrize(
    "dtype",
    sweep([torch.float16, torch.bfloat16], torch.bfloat16, extended=[torch.float16]),
    ids=str,
)
def test_norms_of_16_bits_overflow_only_where_the_norm_does(dtype: torch.dtype) -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        norm = torch.linalg.vector_norm
        return (
            torch.dist(x, y), torch.dist(x, y, 3), norm(x, 2), norm(x, 3, dim=1), norm(x, 1),
            norm(x, 2, dim=0, keepdim=True, dtype=torch.float32), norm(x, 0), norm(x[0, 0], 2),
            norm(x, torch.inf), torch.linalg.matrix_norm(x, dtype=dtype),
        )  # fmt: skip

    x = (torch.randn(20, 50) * 200).to(dtype)
    same_as_eager(function, x, -x)


@pytest.mark.parametrize(
    "dtype",
    sweep([torch.int64, torch.int32, torch.int8, torch.uint8], torch.uint8, extended=[torch.int32]),
    ids=str,
)
def test_integer_powers_wrap_around(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    edges = torch.tensor([limits.max, limits.min, limits.bits, limits.bits - 1, 0, 1])
    exponents = torch.cat((edges.to(dtype), torch.arange(60).to(dtype), edges.to(dtype)))
    low = 0 if limits.min == 0 else -10
    bases = torch.cat((torch.randint(low, 10, (66,)).to(dtype), edges.to(dtype)))
    ones = torch.tensor([1, -1]).to(dtype).repeat(36)

    def function(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
        return x**y, 3**y, z**y, x.to(torch.int64) ** y, torch.erfc(y)

    same_as_eager(function, bases, exponents, ones)


@pytest.mark.parametrize("shape", sweep([(), (3,), (40,)], (40,), extended=[(), (3,)]), ids=str)
def test_angles_of_16_bits_call_no_library(shape: tuple[int, ...]) -> None:
    x, y = torch.randn(shape).half(), torch.randn(shape).half()
    same_as_eager(torch.atan2, x, y)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.float16, torch.bfloat16, torch.int8],
        torch.int8,
        extended=[torch.float16, torch.bfloat16],
    ),
    ids=str,
)
def test_limits_may_have_another_type(dtype: torch.dtype) -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        limit = torch.tensor(0.25)
        return x.clamp_min(limit), x.clamp_max(limit), x.clamp_min(y), x.clamp_max(y)

    y = torch.linspace(-2, 2, 21)
    y[3] = torch.nan
    same_as_eager(function, (torch.randn(21) * 3).to(dtype), y)
