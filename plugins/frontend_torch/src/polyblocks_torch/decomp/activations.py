"""Activations and roundings whose results are small or of either sign of zero.

``exp(x) - 1`` near zero is the rounding of 1, and a difference of equal numbers has no sign.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.elu.default)
def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    below = torch.expm1(x if input_scale == 1 else x * input_scale)
    above = x if scale == 1 else x * scale
    factor = alpha * scale
    return torch.where(x < 0, below if factor == 1 else below * factor, above)


@decomposition(aten.celu.default)
def celu(x: Tensor, alpha: float = 1) -> Tensor:
    return elu(x, alpha, 1, 1 / alpha)


@decomposition(aten.selu.default)
def selu(x: Tensor) -> Tensor:
    return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@decomposition(aten.hardswish_backward.default)
def hardswish_backward(grad: Tensor, x: Tensor) -> Tensor:
    """PyTorch's own decomposition lets the gradient through where ``x`` is NaN."""
    inner = torch.where(x >= 3, grad, grad * (x / 3 + 0.5))
    return torch.where(x <= -3, 0.0, inner)


@decomposition(aten.trunc.default)
def trunc(x: Tensor) -> Tensor:
    """torch-mlir loses the sign of what becomes zero."""
    if not x.is_floating_point():
        return x.clone()
    return torch.copysign(x.abs().floor(), x)


@decomposition(aten.frac.default)
def frac(x: Tensor) -> Tensor:
    return x - x.trunc()
