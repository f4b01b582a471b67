"""Positions of the extremum of many elements, which are found in parts."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from polyblocks_torch.decomp.comparisons import argmax, argmin  # noqa: E402


@pytest.mark.parametrize("count", [1 << 20, 5 << 18, (1 << 20) + 7])
def test_first_of_equal_ones_and_of_nans(count: int) -> None:
    x = torch.randn(count)
    assert argmax(x) == x.argmax()
    assert argmin(x) == x.argmin()
    low, high = count // 3, count - 5
    x[low] = x[high] = 9.0
    assert argmax(x) == low
    x[high - 1] = x[high] = torch.nan
    assert argmax(x) == argmin(x) == high - 1
    assert argmax(x.reshape(1, -1), keepdim=True).shape == (1, 1)
