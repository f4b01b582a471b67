"""Gradients of weights that are normalized."""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten._weight_norm_interface_backward.default)
def weight_norm_backward(
    grad: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Gradients of ``v`` and ``g``; the weight is ``g * v / norms``.

    Args:
        grad: of the weight, of the shape of ``v``.
        v: the directions.
        g: the lengths, with extents of 1 but along ``dim``.
        norms: of the slices of ``v``, of the shape of ``g``.
        dim: the dimension that is not summed over.
    """
    others = [k for k in range(v.dim()) if k != dim % v.dim()]
    along = (grad * v).sum(others, keepdim=True)
    of_v = g / norms * (grad - v * (along / (norms * norms)))
    return of_v.to(v.dtype), (along / norms).to(g.dtype)
