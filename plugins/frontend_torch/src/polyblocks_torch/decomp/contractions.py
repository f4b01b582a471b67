"""Matrix products with a summand that torch-mlir has for floating-point numbers only, or not.

Of 16 bits it rounds the product before it adds; here the sum of both is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.opmath import NARROW, converted, wide_product

aten = torch.ops.aten


@decomposition(aten.addmm.default)
def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    if _is_ignored(x, alpha):
        return _scaled(x, beta, (a.shape[0], b.shape[1]))
    if x.is_floating_point() and x.dtype not in NARROW and beta != 0:
        return NotImplemented
    return _sum(x, wide_product(aten.mm, a, b), beta, alpha)


@decomposition(aten.addmv.default)
def addmv(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    if _is_ignored(x, alpha):
        return _scaled(x, beta, (a.shape[0],))
    return _sum(x, torch.mv(a, b), beta, alpha)


@decomposition(aten.baddbmm.default)
def baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    rows, inner, columns = a.shape[1], a.shape[2], b.shape[2]
    if _is_ignored(x, alpha) and inner * rows * columns >= _OF_LIBRARY:
        return _scaled(x, beta, (a.shape[0], rows, columns))
    return _sum(x, wide_product(aten.bmm, a, b), beta, alpha)


#: Eager mode multiplies smaller matrices of a batch by itself, also if the product counts nothing.
_OF_LIBRARY = 400


def _is_ignored(x: Tensor, alpha: float) -> bool:
    """Whether the product is not computed, so that no NaN in it counts: BLAS's rule."""
    return alpha == 0 and (x.is_complex() or x.dtype in (torch.float32, torch.float64))


def _scaled(x: Tensor, beta: float, shape: Sequence[int]) -> Tensor:
    """The scaled addend, without the product."""
    if beta == 0:
        return x.new_zeros(shape)
    return (x * beta).expand(shape).clone()


def _sum(x: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """``beta * x + alpha * product``, computed in the type of the product.

    Without ``beta`` nothing that is in ``x`` counts.
    """
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
