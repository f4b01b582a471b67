"""Matrix products with a summand that torch-mlir has for floating-point numbers only, or not.

Of 16 bits it rounds the product before it adds; here the sum of both is rounded.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.opmath import NARROW, converted, wide_product

aten = torch.ops.aten


@decomposition(aten.addmm.default)
def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    if x.is_floating_point() and x.dtype not in NARROW:
        return NotImplemented
    return _sum(x, wide_product(aten.mm, a, b), beta, alpha)


@decomposition(aten.baddbmm.default)
def baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return _sum(x, wide_product(aten.bmm, a, b), beta, alpha)


def _sum(x: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """``beta * x + alpha * product``, computed in the type of the product."""
    if not x.is_floating_point() and not x.is_complex():
        # PyTorch rounds them towards zero.
        beta, alpha = int(beta), int(alpha)
    result = product if alpha == 1 else product * alpha
    if beta != 0:
        wide = converted(x, product.dtype)
        result = (wide if beta == 1 else wide * beta) + result
    return converted(result, x.dtype)


@decomposition(aten.addbmm.default)
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """The sum over the batch is part of one product: [N, B * M] times [B * M, P]."""
    rows = a.transpose(0, 1).reshape(a.shape[1], -1)
    return torch.addmm(x, rows, b.reshape(-1, b.shape[2]), beta=beta, alpha=alpha)
