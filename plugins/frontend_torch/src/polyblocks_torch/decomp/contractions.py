"""Matrix products with a summand, and sums of products of three arrays.

torch-mlir has summands for floating-point numbers only, or not. Of 16 bits it rounds the product
before it adds; here the sum of both is rounded. Sums of products of three it computes element by
element; here they are a matrix product and a product.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

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


@decomposition(aten._trilinear.default)
def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """The sum of ``i1 * i2 * i3`` over ``sumdim``, as of ``bilinear`` and its gradients.

    The two whose product has fewest elements come first: what only they have is summed at once.

    Args:
        expand1, expand2, expand3: dimensions to insert in each; two have what all three lack.
        sumdim: of the product, with all dimensions.
    """
    operands = (i1, i2, i3)
    if not all(x.is_floating_point() or x.is_complex() for x in operands):
        return NotImplemented
    rank = i1.dim() + len(expand1)
    axes = [
        [d for d in range(rank) if d not in expanded] for expanded in (expand1, expand2, expand3)
    ]
    extents: dict[int, int] = {}
    for x, has in zip(operands, axes, strict=True):
        extents.update(zip(has, x.shape, strict=True))
    kept = [d for d in range(rank) if d not in sumdim]

    def between(a: int, b: int) -> list[int]:
        """The dimensions of the product of two."""
        last = axes[3 - a - b]
        return [d for d in range(rank) if d in {*axes[a], *axes[b]} and d in {*last, *kept}]

    a, b = min(((0, 1), (0, 2), (1, 2)), key=lambda p: prod(extents[d] for d in between(*p)))
    dims, last = between(a, b), 3 - a - b
    result = _product(operands[a], axes[a], operands[b], axes[b], dims)
    return _product(result, dims, operands[last], axes[last], kept)


def _product(
    x: Tensor, x_axes: Sequence[int], y: Tensor, y_axes: Sequence[int], kept: Sequence[int]
) -> Tensor:
    """``x * y``, summed over all dimensions but ``kept``; the axes number those of the operands.

    Without a dimension that only ``y`` has, or only ``x``, a matrix product has nothing to share.
    """
    every = sorted({*x_axes, *y_axes})
    if {*x_axes} < {*y_axes} or {*y_axes} <= {*x_axes} or every == list(kept):
        wide = [
            a.reshape([a.shape[axes.index(d)] if d in axes else 1 for d in every])
            for a, axes in ((x, list(x_axes)), (y, list(y_axes)))
        ]
        product = wide[0] * wide[1]
        summed = [i for i, d in enumerate(every) if d not in kept]
        return product.sum(summed) if summed else product
    return torch.einsum(x, list(x_axes), y, list(y_axes), list(kept))
