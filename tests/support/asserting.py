"""Functions with ``assert`` statements as they are, which pytest rewrites in modules of tests."""

from __future__ import annotations

import torch
from torch import Tensor


def asserted(x: Tensor) -> Tensor:
    """Of numbers whose sum is less than 3."""
    assert x.sum() < 3, "too large"
    return x + 1


def asserted_of_a_polynomial(x: Tensor) -> Tensor:
    """Of numbers whose Hermite polynomial, which PyTorch computes, is less than 5."""
    polynomial = torch.special.hermite_polynomial_h(x, 1)
    assert (polynomial < 5).all(), "too large"
    return polynomial * 2
