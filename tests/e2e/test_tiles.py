"""Chains that run tile by tile, at sizes that no vector and no tile divides, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep

#: One chip with masks, one with wide and one with narrow vectors without.
ARCHS = ["native", "x86-64-v3", "x86-64"]
SIZES = [(61, 67), (131, 517), (300, 1030)]


def rows(x: torch.Tensor) -> torch.Tensor:
    """A stencil down the columns."""
    return x[:-2] * 0.3 + x[1:-1] * 0.5 + x[2:] * 0.2


def columns(x: torch.Tensor) -> torch.Tensor:
    """A stencil along the rows."""
    return x[:, :-2] * 0.2 + x[:, 1:-1] * 0.6 + x[:, 2:] * 0.2


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("size", sweep(SIZES, (61, 67)))
def test_chain_of_stencils(check: Callable[..., Any], size: tuple[int, int], arch: str) -> None:
    """Stages between are computed beyond their rows, where functions meet arbitrary numbers."""

    def function(x: torch.Tensor) -> torch.Tensor:
        y = columns(rows(x))
        y = torch.log(rows(y).abs() + 1)
        y = torch.sin(columns(rows(y)) * 3)
        y = torch.sqrt(columns(y).abs())
        return columns(rows(y))

    check(function, torch.randn(size), arch=arch)


@pytest.mark.parametrize("arch", sweep(ARCHS, "native", "x86-64"))
@pytest.mark.parametrize("size", sweep(SIZES, (131, 517)))
def test_padded_stencils(check: Callable[..., Any], size: tuple[int, int], arch: str) -> None:
    """Borders of their own: bounds of rows at the edges, parts of one buffer."""

    def function(x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = torch.nn.functional.pad(x[None], (1, 1, 1, 1), mode="replicate")[0]
            x = columns(rows(x))
        return x

    check(function, torch.randn(size), arch=arch)


@pytest.mark.parametrize("arch", sweep(ARCHS, "native", "x86-64-v3"))
@pytest.mark.parametrize("size", sweep([(7, 61), (33, 1030), (5, 20011)], (33, 1030)))
def test_rows_that_are_swept_several_times(
    check: Callable[..., Any], size: tuple[int, int], arch: str
) -> None:
    """Sweeps that are merged, and those that only follow each other."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        e = torch.exp(x - x.amax(1, keepdim=True))
        centered = x - x.mean(1, keepdim=True)
        normal = centered / (centered.square().mean(1, keepdim=True) + 1e-5).sqrt()
        return e / e.sum(1, keepdim=True), normal, x.amax(1), x.amin(1), (x * x).sum(1)

    check(function, torch.randn(size), arch=arch)


@pytest.mark.parametrize("arch", sweep(ARCHS, "native", "x86-64"))
def test_parts_of_one_result(check: Callable[..., Any], arch: str) -> None:
    """What is joined is written in parts, each with what it is made of."""

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a = columns(rows(torch.nn.functional.pad(x, (2, 2, 2, 2))))
        b = columns(rows(torch.nn.functional.pad(y, (2, 2, 2, 2))))
        return torch.stack([rows(a), rows(b), rows(a + b)])

    check(function, torch.randn(101, 133), torch.randn(101, 133), arch=arch)
