"""Remainders and rounded quotients of floating-point numbers.

torch-mlir divides, rounds and multiplies back, which loses the remainder when the quotient is
large or rounds up. PyTorch starts from C's ``fmod``, which is exact.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch._prims_common import get_computation_dtype

from polyblocks_torch.decomp.numbers import number, wrapped
from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.elementwise import number_in

aten = torch.ops.aten


def _promoted(x: Tensor, y: Tensor | float, narrow: bool = True) -> tuple[Tensor, Tensor] | None:
    """Both operands as tensors of the type that is computed in; None unless the result is a float.

    Args:
        x: the dividend.
        y: the divisor.
        narrow: whether a number is rounded to the type of the result, as eager does for remainders
            but not for quotients.
    """
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return None
    computed = get_computation_dtype(dtype)
    if isinstance(y, Tensor):
        # One without dimensions is as a number.
        divisor = (y if x.dim() and not y.dim() and not narrow else y.to(dtype)).to(computed)
    else:
        number = number_in(y, dtype) if narrow else y
        divisor = torch.full((), number, dtype=computed, device=x.device)
    return x.to(dtype).to(computed), divisor


@decomposition(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(x: Tensor, y: Tensor | float) -> Tensor:
    pair = _promoted(x, y)
    if pair is None:
        if isinstance(y, Tensor):
            return NotImplemented
        dtype = torch.result_type(x, y)
        return torch.fmod(x.to(dtype), number(y, dtype, x.device))
    if isinstance(y, Tensor) and x.dtype == y.dtype:
        return NotImplemented
    return torch.fmod(*pair).to(torch.result_type(x, y))


def _turns(rest: Tensor, y: Tensor | float) -> Tensor:
    """Whether a remainder has another sign than the divisor, which makes the quotient one less."""
    if isinstance(y, Tensor):
        return ((rest < 0) & (y > 0)) | ((rest > 0) & (y < 0))
    return rest < 0 if y > 0 else rest > 0


@decomposition(aten.remainder.Tensor, aten.remainder.Scalar)
def remainder(x: Tensor, y: Tensor | float) -> Tensor:
    pair = _promoted(x, y)
    if pair is None:
        return NotImplemented
    rest = torch.fmod(*pair)
    result = torch.where(_turns(rest, y), rest + pair[1], rest)
    return result.to(torch.result_type(x, y))


@decomposition(aten.remainder.Scalar_Tensor)
def remainder_of_number(x: float, y: Tensor) -> Tensor:
    return torch.remainder(number(x, torch.result_type(x, y), y.device), y)


def _floor_divide(x: Tensor, y: Tensor, divisor: Tensor | float) -> Tensor:
    rest = torch.fmod(x, y)
    quotient = (x - rest) / y
    quotient = torch.where(_turns(rest, divisor), quotient - 1, quotient)
    rounded = quotient.floor()
    rounded = torch.where(quotient - rounded > 0.5, rounded + 1, rounded)
    exact = x / y
    rounded = torch.where(quotient == 0, torch.copysign(torch.zeros_like(exact), exact), rounded)
    return torch.where(y == 0, exact, rounded)


@decomposition(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(x: Tensor | float, y: Tensor | float) -> Tensor:
    if not isinstance(x, Tensor):
        assert isinstance(y, Tensor), "one of both is a tensor"
        x = number(x, torch.result_type(x, y), y.device)
    pair = _promoted(x, y, narrow=False)
    if pair is None:
        return torch.div(x, y, rounding_mode="floor")
    return _floor_divide(*pair, y).to(torch.result_type(x, y))


@decomposition(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div_mode(x: Tensor | float, y: Tensor | float, *, rounding_mode: str | None) -> Tensor:
    dtype = torch.result_type(x, y)
    if not isinstance(x, Tensor):
        # As torch.div(7, y, rounding_mode="floor") is recorded.
        assert isinstance(y, Tensor), "one of both is a tensor"
        x = number(x, dtype, y.device)
        return torch.div(x, y, rounding_mode=rounding_mode)
    whole = not (dtype.is_floating_point or dtype.is_complex)
    if whole and not isinstance(y, Tensor) and wrapped(y, dtype) != y:
        return torch.div(x, wrapped(y, dtype), rounding_mode=rounding_mode)
    if rounding_mode != "floor":
        return NotImplemented
    pair = _promoted(x, y, narrow=False)
    if pair is None:
        return _floor_divide_integers(x, y)
    return _floor_divide(*pair, y).to(torch.result_type(x, y))


def _floor_divide_integers(x: Tensor, y: Tensor | float) -> Tensor:
    # torch-mlir divides integers as floats to round them down: wrong beyond 2**53, and silent
    # when the divisor is zero.
    dtype = torch.result_type(x, y)
    divisor = y.to(dtype) if isinstance(y, Tensor) else y
    quotient = torch.div(x.to(dtype), divisor, rounding_mode="trunc")
    return quotient - _turns(x.to(dtype) - quotient * divisor, divisor).to(dtype)
