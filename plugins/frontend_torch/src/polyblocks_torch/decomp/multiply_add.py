"""Fused multiply-adds, which Dynamo makes of ``addcmul_`` and ``addcdiv_`` with a scale; the cross
product, which is made of such."""

from __future__ import annotations

# The op is registered when this is imported.
import torch
import torch._inductor.inductor_prims
from torch import Tensor
from torch._prims_common import get_computation_dtype

from polyblocks_torch.decomp.registry import decomposition

aten, prims = torch.ops.aten, torch.ops.prims


@decomposition(prims.fma.default)
def fma(a: Tensor, b: Tensor | float, c: Tensor) -> Tensor:
    """``a * b + c``, rounded once where the type is a narrow one.

    float32 and wider are left to contraction.
    """
    wide = get_computation_dtype(c.dtype)
    if wide == c.dtype:
        return a * b + c
    factor = b.to(wide) if isinstance(b, Tensor) else b
    return (a.to(wide) * factor + c.to(wide)).to(c.dtype)


@decomposition(aten.linalg_cross.default)
def cross(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """PyTorch's own decomposition gathers at computed indices."""
    a, b = (v.unbind(dim) for v in torch.broadcast_tensors(x, y))
    pairs = ((1, 2), (2, 0), (0, 1))
    return torch.stack([a[i] * b[j] - a[j] * b[i] for i, j in pairs], dim)
