"""Powers with constant exponents: roots where PyTorch takes roots, products for integers."""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.reciprocal.default)
def reciprocal(x: Tensor) -> Tensor:
    # torch-mlir's own lowering refuses a zero at run time; here it becomes an infinity.
    return torch.div(1.0, x)


@decomposition(aten.pow.Tensor_Scalar)
def pow_scalar(x: Tensor, exponent: complex) -> Tensor:
    if x.is_complex() or isinstance(exponent, complex):
        return NotImplemented
    dtype = torch.result_type(x, exponent)
    if not dtype.is_floating_point:
        return _integer_power(x.to(dtype), int(exponent))
    if x.dtype != dtype:
        return torch.pow(x.to(dtype), exponent)
    # Unlike pow, the root of -inf is NaN and the root of -0 is -0.
    if exponent == 0.5:
        return x.sqrt()
    if exponent == -0.5:
        return x.rsqrt()
    return NotImplemented


def _integer_power(x: Tensor, exponent: int) -> Tensor:
    """Square and multiply; PyTorch refuses negative exponents before this is called."""
    if exponent == 0:
        return torch.ones_like(x)
    half = _integer_power(x, exponent // 2) if exponent > 1 else None
    square = x if half is None else half * half
    return square * x if half is not None and exponent & 1 else square
