"""Functions with ``assert`` statements as they are, which pytest rewrites in modules of tests."""

from __future__ import annotations

import torch
from torch import Tensor


def asserted(x: Tensor) -> Tensor:
    """Of numbers whose sum is less than 3."""
    assert x.sum() < 3, "too large"
    return x + 1


def asserted_of_an_exponential(x: Tensor) -> Tensor:
    """Of a matrix whose exponential, which PyTorch computes, has elements less than 5."""
    exponential = torch.linalg.matrix_exp(x)
    assert (exponential < 5).all(), "too large"
    return exponential * 2
