"""Functions with ``assert`` statements as they are, which pytest rewrites in modules of tests."""

from __future__ import annotations

import torch
from torch import Tensor


def asserted(x: Tensor) -> Tensor:
    """Of numbers whose sum is less than 3."""
    assert x.sum() < 3, "too large"
    return x + 1


def asserted_of_a_factor(x: Tensor) -> Tensor:
    """Of a matrix whose LDL factor, which PyTorch computes, has elements less than 5."""
    factor = torch.linalg.ldl_factor_ex(x).LD
    assert (factor < 5).all(), "too large"
    return factor * 2
