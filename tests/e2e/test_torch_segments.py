"""PyTorch: reductions of segments of a dimension, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}
KINDS = ("sum", "mean", "max", "min", "prod")
#: A sum and an extremum take all ways.
FEWER = [k if k in ("mean", "max") else pytest.param(k, marks=pytest.mark.extended) for k in KINDS]
ROWS = torch.tensor([[2, 0, 3], [4, 1, 0]])


def reduced(kind: str, **options: Any) -> Any:
    def function(x: Tensor, of: Tensor) -> Tensor:
        where = "offsets" if options.get("offsets") else "lengths"
        more = {k: v for k, v in options.items() if k != "offsets"}
        return torch.segment_reduce(x * 1, kind, axis=of.dim() - 1, **{where: of}, **more)

    return function


def agree(function: Any, x: Tensor, of: Tensor) -> None:
    """Results and gradients, positive and negative ones."""
    compiled = polyblocks_jit_torch(function, compile_options=STRICT)
    results = []
    for f in (compiled, function):
        x = x.detach().clone().requires_grad_()
        y = f(x, of)
        weights = torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape) - 2.5
        results.append((y, *torch.autograd.grad(y, x, weights)))
    torch.testing.assert_close(*results, equal_nan=True)


@pytest.mark.extended
@pytest.mark.parametrize("kind", FEWER)
def test_segments_of_rows(kind: str) -> None:
    """Also without elements, of elements that are equal, zero, infinite and no numbers."""
    x = torch.tensor([[1.5, -2, 0, 4, 4], [0.5, 3, 3, -1, 2]], dtype=torch.float64)
    agree(reduced(kind), x, ROWS)
    agree(reduced(kind, initial=2.0), x, ROWS.to(torch.int32))
    special = torch.tensor([[1.5, math.nan, 0, 0, 4], [0, math.nan, 2, math.inf, 2]])
    agree(reduced(kind), special, ROWS)
    agree(reduced(kind, initial=3), special[0, :2], torch.tensor([0, 2, 0]))


@pytest.mark.parametrize(
    "kind", [k if k == "max" else pytest.param(k, marks=pytest.mark.extended) for k in KINDS]
)
def test_segments_by_offsets(kind: str) -> None:
    """What is before the first one and after the last one is in none."""
    torch.manual_seed(0)
    x = torch.randn(9, 3, 2)
    agree(reduced(kind, offsets=True), x, torch.tensor([1, 4, 4, 7]))
    agree(reduced(kind, unsafe=True), x[..., 0], torch.tensor([3, 0, 4]))


@pytest.mark.extended
@pytest.mark.parametrize("shape", [(0,), (0, 2), (3, 0)], ids=str)
def test_segments_without_elements(shape: tuple[int, ...]) -> None:
    for kind in KINDS:
        agree(reduced(kind), torch.zeros(shape), torch.tensor([shape[0], 0]))


@pytest.mark.parametrize(
    "dtype", [pytest.param(torch.float16, marks=pytest.mark.extended), torch.bfloat16]
)
def test_segments_of_16_bits(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, of = torch.randn(64, dtype=dtype), torch.tensor([40, 0, 24])
    for kind in ("sum", "mean", "max"):
        function = reduced(kind)
        found = polyblocks_jit_torch(function, compile_options=STRICT)(x, of)
        assert found.dtype == dtype
        best = function(x.double(), of)
        found, eager = found.double() - best, function(x, of).double() - best
        error, allowed = (off.nan_to_num().abs().max() for off in (found, eager))
        assert error <= 2 * allowed + torch.finfo(dtype).eps


@pytest.mark.parametrize(
    ("of", "by_offsets", "message"),
    [
        ([2, 3], False, "lengths along axis to sum to"),
        ([-2, 8], False, "lengths contains negative value"),
        ([1, 3, 2], True, "Expected segment_length >= 0 to be true"),
    ],
)
def test_segments_that_are_refused(of: list[int], by_offsets: bool, message: str) -> None:
    function = reduced("sum", offsets=by_offsets)
    compiled = polyblocks_jit_torch(function, compile_options=STRICT)
    for f in (function, compiled):
        with pytest.raises(RuntimeError, match=message):
            f(torch.ones(6), torch.tensor(of))


def test_segments_beyond_the_data() -> None:
    """Of which eager mode reads what is behind."""
    compiled = polyblocks_jit_torch(reduced("sum", offsets=True), compile_options=STRICT)
    with pytest.raises(RuntimeError, match="a segment ends beyond the data"):
        compiled(torch.ones(6), torch.tensor([0, 3, 9]))
