"""Reductions without an outer loop: their result is carried out of a loop at the top of @main."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

Function = Callable[[torch.Tensor], torch.Tensor]


@pytest.mark.parametrize(
    "function, shape",
    [
        (lambda x: x.softmax(-1), (1, 10)),
        (lambda x: x.softmax(-1), (1, 1000)),
        (lambda x: x.sum(), (10,)),
        (lambda x: x.sum(), (5000,)),
        (lambda x: x.mean() + x.amax(), (64, 64)),
        (lambda x: torch.nn.functional.layer_norm(x, (10,)), (1, 10)),
    ],
    ids=["softmax 10", "softmax 1000", "sum 10", "sum 5000", "mean and max", "layer_norm"],
)
def test_a_reduction_of_everything_compiles_and_is_right(
    function: Function, shape: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    x = torch.rand(shape)
    compiled = polyblocks_jit_torch(function, compile_options={"strict_target": True})
    torch.testing.assert_close(compiled(x), function(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(511, 255), (512, 256), (2, 1001), (4099, 33)])
def test_columns_that_threads_share(shape: tuple[int, int]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(4))
    x[shape[0] // 2, ::7] = float("nan")
    x[1, 1::7] = float("-inf")

    def function(x: Tensor) -> tuple[Tensor, ...]:
        return x.amax(0), x.nansum(0), x.amin(0)

    options = {"target": "cpu", "strict_target": True, "num_threads": 2}
    found = polyblocks_jit_torch(function, compile_options=options)(x)
    for one, other in zip(found, function(x), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True, rtol=1e-4, atol=1e-4)
