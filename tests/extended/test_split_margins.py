"""Sums of arrays with zeros around slices are computed slice by slice, as frameworks do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from polyblocks.explanation.run import explain
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.extended


def _within(x: torch.Tensor, rows: int, begin: int) -> torch.Tensor:
    zeros = x.new_zeros(rows, x.shape[1])
    return torch.slice_scatter(zeros, x, 0, begin, begin + x.shape[0])


def apart(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _within(a, 12, 0) + _within(b, 12, 6)


def with_a_gap(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _within(a, 15, 0) + _within(b, 15, 8)


def overlapping(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _within(a, 9, 0) + _within(b, 9, 3)


def multiplied(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _within(a, 12, 0) * _within(b, 12, 6)


def read_elsewhere(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    first = _within(a, 12, 0)
    return torch.roll(first, 1, 0) + (first + _within(b, 12, 6))


@pytest.mark.parametrize("function", [apart, with_a_gap, overlapping, multiplied, read_elsewhere])
def test_values_and_signs_are_those_of_the_framework(function: Callable[..., torch.Tensor]) -> None:
    a, b = torch.randn(6, 7), torch.randn(6, 7)
    a[0, 0], a[1, 1], a[2, 2] = float("nan"), float("inf"), -0.0
    found = polyblocks_jit_torch(compile_options={"target": "cpu"})(function)(a, b)
    expected = function(a, b)
    torch.testing.assert_close(found, expected, equal_nan=True)
    number = ~expected.isnan()
    assert torch.equal(torch.signbit(found)[number], torch.signbit(expected)[number])


def test_products_store_the_gradients_of_heads_that_were_slices_of_one_array() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        zeros = x.new_zeros(2, 32, 32)

        def part(heads: torch.Tensor, at: int) -> torch.Tensor:
            rows = (0.5 * heads).reshape(4, 4, 8, 8).permute(0, 2, 1, 3).reshape(32, 32)
            return torch.select_scatter(zeros, rows, 0, at)

        whole = part(torch.bmm(x, y), 0) + part(torch.bmm(y, x), 1)
        return whole.permute(1, 0, 2).reshape(32, 64).clone()

    x, y = torch.randn(16, 8, 8), torch.randn(16, 8, 8)
    with explain() as report:
        found = polyblocks_jit_torch(compile_options={"target": "cpu"})(function)(x, y)
    torch.testing.assert_close(found, function(x, y))
    (part,) = report.to_json()["parts"]
    split = [d for d in part["report"]["decisions"] if d["pass"] == "split-margins"]
    assert [d["pieces"] for d in split] == [2]
