"""Fused multiply-adds, which Dynamo makes of ``addcmul_`` and ``addcdiv_`` with a scale."""

from __future__ import annotations

# The op is registered when this is imported.
import torch
import torch._inductor.inductor_prims
from torch import Tensor
from torch._prims_common import get_computation_dtype

from polyblocks_torch.decomp.registry import decomposition

prims = torch.ops.prims


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
