"""Reductions without an outer loop: their result is carried out of a loop at the top of @main."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

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
