"""Functions of square matrices."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyblocks_torch.algorithms.repeated_squares import repeated_squares
from polyblocks_torch.decomp.factorizations import is_real
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

#: 1-norms up to which 15 terms of Taylor's series are exact but for rounding (A. Al-Mohy and
#: N. Higham, Computing the action of the matrix exponential, SIAM J. Sci. Comput. 33 (2011), table
#: 3.1). One more costs nothing here.
_ENOUGH = {torch.float32: 2.2, torch.float64: 0.64}
#: 1 / k!
_TAYLOR = tuple(1 / math.factorial(k) for k in range(17))


@decomposition(aten.linalg_matrix_exp.default)
def linalg_matrix_exp(a: Tensor) -> Tensor:
    """Scaling and squaring: ``exp(A) = exp(A / 2^s) ^ (2^s)``, with an ``s`` for each matrix."""
    if not is_real(a):
        return NotImplemented
    if not a.numel():
        return torch.empty_like(a)
    if a.shape[-1] == 1:
        return a.exp()
    norm = a.abs().sum(-2).amax(-1)
    finite = norm.isfinite()
    norm = torch.where(finite, norm, 0.0)
    scale = (norm / _ENOUGH[a.dtype]).clamp(min=0.5).frexp().exponent.to(torch.int32)
    # In two steps: a power of two can be below the smallest number.
    half = scale // 2
    first, second = (torch.exp2(-k.to(a.dtype))[..., None, None] for k in (half, scale - half))
    power = _series(torch.where(finite[..., None, None], a, torch.nan) * first * second)
    flat = power.reshape(-1, *a.shape[-2:])
    result = repeated_squares(flat, scale.reshape(-1), scale.amax())
    return result.reshape(a.shape)


def _series(a: Tensor) -> Tensor:
    """Taylor's series up to the 16th power, by M. Paterson and L. Stockmeyer's scheme."""
    unit = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    square = a @ a
    powers = (unit, a, square, square @ a)
    fourth = square @ square
    result = _TAYLOR[16] * fourth
    for k in (12, 8, 4, 0):
        part = sum(_TAYLOR[k + i] * power for i, power in enumerate(powers))
        result = result + part
        if k:
            result = result @ fourth
    return result
