"""Matrix products with a summand that torch-mlir has for floating-point numbers only, or not."""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.addmm.default)
def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    if x.is_floating_point():
        return NotImplemented
    if not x.is_complex():
        # PyTorch rounds them towards zero.
        beta, alpha = int(beta), int(alpha)
    product = torch.mm(a, b)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return product + (x if beta == 1 else x * beta)


@decomposition(aten.addbmm.default)
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """The sum over the batch is part of one product: [N, B * M] times [B * M, P]."""
    rows = a.transpose(0, 1).reshape(a.shape[1], -1)
    return torch.addmm(x, rows, b.reshape(-1, b.shape[2]), beta=beta, alpha=alpha)
