"""PyTorch: histograms of one and several dimensions are those of eager mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}
EDGES = torch.tensor([-1.0, -0.25, 0, 0, 0.5, 2])

HISTOGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "as many bins": lambda x, w: torch.histogram(x, 7),
    "one bin": lambda x, w: torch.histogram(x, 1),
    "weights": lambda x, w: torch.histogram(x, 6, weight=w),
    "density": lambda x, w: torch.histogram(x, 5, range=(-1, 1), weight=w, density=True),
    "range": lambda x, w: torch.histogram(x, 100, range=(-0.7, 0.3)),
    "range of one number": lambda x, w: torch.histogram(x, 3, range=(0, 0)),
    "edges": lambda x, w: torch.histogram(x, EDGES.to(x.dtype)),
    "edges and weights": lambda x, w: torch.histogram(x, EDGES.to(x.dtype), weight=w, density=True),
}
#: Of points of as many dimensions as the last one of the operand has elements.
SEVERAL: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "as many bins": lambda x, w: torch.histogramdd(x, [2, 3, 4]),
    "weights": lambda x, w: torch.histogramdd(x, 3, weight=w[..., 0], density=True),
    "range": lambda x, w: torch.histogramdd(x, [5, 1, 2], range=[-1, 1, -2, 0, 0.0, 0.5]),
    "edges": lambda x, w: torch.histogramdd(x, [EDGES.to(x.dtype)] * 3, weight=w[..., 0]),
}


def agree(function: Callable[..., Any], *tensors: Tensor) -> None:
    """Counts are equal, sums of weights are near, edges but for a rounding.

    Eager's are rounded by how many numbers its kernel takes together.
    """
    found = polyblocks_jit_torch(function, compile_options=STRICT)(*tensors)
    counts, edges = function(*tensors)
    assert type(found) is type(function(*tensors))
    exact = torch.equal(counts, counts.round())
    torch.testing.assert_close(
        found[0], counts, equal_nan=True, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-6
    )
    for mine, theirs in zip(found[1], edges, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=2 * torch.finfo(mine.dtype).eps)


@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.extended)]
)
@pytest.mark.parametrize("name", HISTOGRAMS)
def test_one_dimension(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(33, 40, dtype=dtype), torch.rand(33, 40, dtype=dtype)
    # Elements that lie on edges.
    x[0] = x[0].round()
    agree(HISTOGRAMS[name], x.T, w.T)


@pytest.mark.extended
@pytest.mark.parametrize("name", SEVERAL)
def test_several_dimensions(name: str) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(4, 50, 3), torch.rand(4, 50, 3)
    agree(SEVERAL[name], x, w)


def test_without_elements_and_of_equal_ones() -> None:
    for x in (torch.zeros(0), torch.full((5,), 3.0), torch.tensor(2.0)):
        agree(lambda x: torch.histogram(x, 3), x)
    agree(lambda x: torch.histogramdd(x, [2, 2]), torch.zeros(0, 2))


def test_elements_that_are_no_numbers_are_in_no_bin() -> None:
    x = torch.tensor([math.nan, 1, -math.inf, 2, math.inf, 0, math.nan])
    agree(lambda x: torch.histogram(x, 4, range=(0, 2)), x)
    agree(lambda x: torch.histogram(x, torch.tensor([0.0, 1, math.inf])), x)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_ranges_that_are_not_finite(value: float) -> None:
    def function(x: Tensor) -> Any:
        return torch.histogramdd(x, [2, 2])

    x = torch.tensor([[0.0, 1.0], [2.0, value]])
    for f in (function, polyblocks_jit_torch(function, compile_options=STRICT)):
        with pytest.raises(RuntimeError, match=r"dimension 1's range .*is not finite"):
            f(x)
