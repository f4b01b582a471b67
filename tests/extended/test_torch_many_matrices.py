"""PyTorch: factorizations of many small matrices, each in a lane of vectors."""

from __future__ import annotations

import pytest
import torch
from tests.support.factorization_check import (
    LOSSES,
    definite,
    factors_agree,
    gradients_agree,
    random,
    systems_agree,
)
from tests.support.sweeps import sweep

DTYPES = [torch.float32, torch.float64]
#: Enough matrices for the lanes of vectors, with some left: whole blocks, and as columns of others.
MANY = [(37, 1, 1), (70, 3, 3), (3, 6, 4, 4), (19, 16, 16)]
MANY_RECTANGLES = [pytest.param(s, marks=pytest.mark.slow) for s in ((17, 5, 9), (18, 9, 5))]


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [*MANY, *MANY_RECTANGLES], ids=str)
def test_factors(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    factors_agree(random(*shape, dtype=dtype))


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", MANY, ids=str)
def test_systems(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    systems_agree(definite(*shape, dtype=dtype), random(*shape[:-1], 2, dtype=dtype))


@pytest.mark.parametrize("name", sweep(LOSSES, "inv", "qr", "svdvals"))
def test_gradients(name: str) -> None:
    gradients_agree(name, random(35, 4, 4) + 3 * torch.eye(4, dtype=torch.float64))
