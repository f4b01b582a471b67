"""Powers: roots where PyTorch takes roots, products for integers."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyblocks_torch.decomp.complex_functions import power
from polyblocks_torch.decomp.numbers import number
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.reciprocal.default)
def reciprocal(x: Tensor) -> Tensor:
    # torch-mlir's own lowering refuses a zero at run time; here it becomes an infinity.
    return torch.div(1.0, x)


@decomposition(aten.pow.Tensor_Scalar)
def pow_scalar(x: Tensor, exponent: complex) -> Tensor:
    if x.is_complex() or isinstance(exponent, complex):
        return power(x, exponent)
    dtype = torch.result_type(x, exponent)
    if not dtype.is_floating_point:
        return _integer_power(x.to(dtype), int(exponent))
    if x.dtype != dtype:
        return torch.pow(x.to(dtype), exponent)
    if exponent not in (0.5, -0.5):
        return NotImplemented
    # Unlike pow, the root of -inf is NaN and the root of -0 is -0.
    root = x.sqrt() if exponent > 0 else x.rsqrt()
    if dtype != torch.float16:
        return root
    # Of this type alone eager mode takes no roots.
    of_zero, of_infinity = (0.0, math.inf) if exponent > 0 else (math.inf, 0.0)
    return torch.where(x == 0, of_zero, torch.where(x == -math.inf, of_infinity, root))


def _integer_power(x: Tensor, exponent: int) -> Tensor:
    """Square and multiply; PyTorch refuses negative exponents before this is called."""
    if exponent == 0:
        return torch.ones_like(x)
    half = _integer_power(x, exponent // 2) if exponent > 1 else None
    square = x if half is None else half * half
    return square * x if half is not None and exponent & 1 else square


@decomposition(aten.pow.Tensor_Tensor)
def pow_tensor(x: Tensor, exponent: Tensor) -> Tensor:
    """Of integers: square and multiply over the bits of the exponents.

    A negative exponent gives the whole part of a fraction: 0, except for bases of 1 and -1.
    """
    dtype = torch.result_type(x, exponent)
    if dtype.is_complex:
        return power(x, exponent)
    if dtype.is_floating_point:
        return NotImplemented
    limits = torch.iinfo(dtype)
    # torch-mlir does not shift bytes; their products are the low bits of wider ones.
    wide = torch.int32 if limits.bits == 8 else dtype
    x, exponent = x.to(dtype).to(wide), exponent.to(dtype).to(wide)
    result, square, bits = torch.ones_like(x), x, exponent
    for _ in range(limits.max.bit_length()):
        result = torch.where((bits & 1) != 0, result * square, result)
        square, bits = square * square, bits >> 1
    if limits.min < 0:
        of_minus_one = torch.where((exponent & 1) != 0, -1, 1)
        fraction = torch.where(x == 1, 1, torch.where(x == -1, of_minus_one, 0))
        result = torch.where(exponent < 0, fraction.to(wide), result)
    return result.to(dtype)


@decomposition(aten.pow.Scalar)
def pow_of_scalar(x: complex, exponent: Tensor) -> Tensor:
    dtype = torch.result_type(x, exponent)
    if dtype.is_complex:
        return power(x, exponent)
    if dtype.is_floating_point:
        return NotImplemented
    return pow_tensor(number(x, dtype, exponent.device), exponent)
