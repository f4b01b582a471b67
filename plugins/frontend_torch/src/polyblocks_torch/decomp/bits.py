"""Numbers taken apart: signs, exponents, neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from polyblocks_torch.decomp.numbers import number, wrapped
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

#: float dtype -> (integer dtype of its size, bits of the mantissa, bias of the exponent)
_FORMATS = {
    torch.float64: (torch.int64, 52, 1023),
    torch.float32: (torch.int32, 23, 127),
    torch.float16: (torch.int16, 10, 15),
    torch.bfloat16: (torch.int16, 7, 127),
}


@decomposition(aten.signbit.default)
def signbit(x: Tensor) -> Tensor:
    if x.dtype not in _FORMATS:
        return (
            x < 0
            if x.dtype not in (torch.bool, torch.uint8)
            else torch.zeros_like(x, dtype=torch.bool)
        )
    return x.view(_FORMATS[x.dtype][0]) < 0


def _as_float(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating_point else x.to(torch.get_default_dtype())


@decomposition(aten.copysign.Tensor)
def copysign(x: Tensor, other: Tensor) -> Tensor:
    dtype = _as_float(torch.empty((), dtype=torch.result_type(x, other), device="meta")).dtype
    if x.dtype == other.dtype == dtype:
        return NotImplemented
    return torch.copysign(x.to(dtype), other.to(dtype))


@decomposition(aten.copysign.Scalar)
def copysign_scalar(x: Tensor, other: float) -> Tensor:
    magnitude = _as_float(x).abs()
    return -magnitude if math.copysign(1.0, other) < 0 else magnitude


@decomposition(aten.nextafter.default)
def nextafter(x: Tensor, other: Tensor) -> Tensor:
    if x.dtype not in _FORMATS or x.dtype != other.dtype:
        return NotImplemented
    integer = _FORMATS[x.dtype][0]
    x, other = torch.broadcast_tensors(x, other)
    bits = x.view(integer)
    # Floats are ordered as their magnitude's bits: one up moves away from zero.
    away = (other > x) == (x > 0)
    stepped = torch.where(away, bits + 1, bits - 1).view(x.dtype)
    smallest = torch.ones_like(bits).view(x.dtype)
    from_zero = torch.where(other > 0, smallest, -smallest)
    result = torch.where(x == 0, from_zero, stepped)
    result = torch.where(x == other, other, result)
    return torch.where(x.isnan() | other.isnan(), x + other, result)


@decomposition(aten.frexp.Tensor)
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    if x.dtype not in (torch.float64, torch.float32):
        return NotImplemented
    integer, mantissa_bits, bias = _FORMATS[x.dtype]
    # Subnormal numbers are scaled into the normal range first.
    tiny = torch.finfo(x.dtype).smallest_normal
    small = (x.abs() < tiny) & (x != 0)
    shift = mantissa_bits + 1
    scaled = torch.where(small, x * 2.0**shift, x)
    bits = scaled.view(integer)
    # The bits of a number are sign, exponent + bias, mantissa; a sign shifts ones in.
    field = scaled.abs().view(integer) >> mantissa_bits
    exponent = field - (bias - 1) - torch.where(small, shift, 0)
    # Replaces the exponent by -1: the mantissa is in [0.5, 1).
    cleared = bits - ((field - (bias - 1)) << mantissa_bits)
    plain = (x == 0) | ~x.isfinite()
    mantissa = torch.where(plain, x, cleared.view(x.dtype))
    return mantissa, torch.where(plain, 0, exponent).to(torch.int32)


@decomposition(aten.ldexp.Tensor, rounds=True)
def ldexp(x: Tensor, other: Tensor) -> Tensor:
    if not x.is_floating_point() or other.is_floating_point() or other.is_complex():
        base: Tensor | float = 2.0
        if x.is_complex() or x.dtype in (torch.float64, torch.float16, torch.bfloat16):
            # In eager mode a power of a 0-d tensor, or of integers, has the digits of the result.
            base = torch.scalar_tensor(2.0, dtype=x.dtype.to_real())
        if x.is_complex() and other.dtype is torch.bfloat16:
            # There are no complex numbers of that type.
            other = other.to(torch.float32)
        return x * torch.pow(base, other)
    narrow = x.dtype not in (torch.float32, torch.float64)
    wide = x.to(torch.float32) if narrow else x
    integer, mantissa_bits, bias = _FORMATS[wide.dtype]
    # Three powers of two keep each factor a normal number.
    most = 3 * bias - 3
    exponent = other.to(torch.int32).clamp(-most, most).to(integer)
    third = torch.div(exponent, 3, rounding_mode="trunc")
    for part in (third, third, exponent - 2 * third):
        wide = wide * ((part + bias) << mantissa_bits).view(wide.dtype)
    return wide.to(x.dtype)


@decomposition(aten.angle.default)
def angle(x: Tensor) -> Tensor:
    if x.is_complex():
        return torch.atan2(x.imag, x.real)
    if not x.dtype.is_floating_point:
        x = x.to(torch.get_default_dtype())
    turned = torch.where(x < 0, torch.full_like(x, torch.pi), 0.0)
    return torch.where(x.isnan(), x, turned)


@decomposition(aten.hypot.default)
def hypot(x: Tensor, y: Tensor) -> Tensor:
    # Scaled by the larger one, so that squares neither overflow nor vanish. The magnitude of the
    # least integer does not fit its type.
    dtype = torch.result_type(x, y)
    x, y = x.to(dtype).abs(), y.to(dtype).abs()
    large, small = torch.maximum(x, y), torch.minimum(x, y)
    ratio = torch.where(large == 0, 0.0, small / large)
    result = large * torch.sqrt(1 + ratio * ratio)
    infinite = x.isinf() | y.isinf()
    return torch.where(infinite, torch.inf, result)


def _bitwise(op: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, int], Tensor]:
    """The operation of a tensor and a number, of tensors of the type of the result.

    Of booleans and a number that is not boolean, that is int64.
    """

    def with_number(x: Tensor, other: int) -> Tensor:
        dtype = torch.result_type(x, other)
        return op(x.to(dtype), number(other, dtype, x.device))

    return with_number


decomposition(aten.bitwise_and.Scalar)(_bitwise(torch.bitwise_and))
decomposition(aten.bitwise_or.Scalar)(_bitwise(torch.bitwise_or))
decomposition(aten.bitwise_xor.Scalar)(_bitwise(torch.bitwise_xor))


def _of_number(op: Callable[[Tensor, Tensor], Tensor]) -> Callable[[int, Tensor], Tensor]:
    """The operation of a number and a tensor."""

    def of_number(x: int, other: Tensor) -> Tensor:
        dtype = torch.result_type(x, other)
        return op(number(x, dtype, other.device), other.to(dtype))

    return of_number


decomposition(aten.bitwise_and.Scalar_Tensor)(_of_number(torch.bitwise_and))
decomposition(aten.bitwise_or.Scalar_Tensor)(_of_number(torch.bitwise_or))
decomposition(aten.bitwise_xor.Scalar_Tensor)(_of_number(torch.bitwise_xor))
decomposition(aten.bitwise_left_shift.Scalar_Tensor)(_of_number(torch.bitwise_left_shift))
decomposition(aten.bitwise_right_shift.Scalar_Tensor)(_of_number(torch.bitwise_right_shift))


@decomposition(aten.bitwise_left_shift.Tensor_Scalar, aten.__lshift__.Scalar)
def left_shift(x: Tensor, other: int) -> Tensor:
    """By a number; a machine's shift is not defined for all of them, and gives 0 here."""
    dtype = torch.result_type(x, other)
    amount = wrapped(other, dtype)
    if not 0 <= amount < torch.iinfo(dtype).bits:
        return torch.zeros_like(x, dtype=dtype)
    return torch.bitwise_left_shift(x.to(dtype), number(amount, dtype, x.device))


@decomposition(aten.bitwise_right_shift.Tensor_Scalar, aten.__rshift__.Scalar)
def right_shift(x: Tensor, other: int) -> Tensor:
    """By a number; of those that a machine's shift is not defined for, the sign is left."""
    dtype = torch.result_type(x, other)
    amount, bits = wrapped(other, dtype), torch.iinfo(dtype).bits
    if not 0 <= amount < bits:
        if torch.iinfo(dtype).min == 0:
            return torch.zeros_like(x, dtype=dtype)
        amount = bits - 1
    return torch.bitwise_right_shift(x.to(dtype), number(amount, dtype, x.device))


@decomposition(aten.__lshift__.Tensor)
def left_shift_tensor(x: Tensor, other: Tensor) -> Tensor:
    return torch.bitwise_left_shift(x, other)


@decomposition(aten.__rshift__.Tensor)
def right_shift_tensor(x: Tensor, other: Tensor) -> Tensor:
    return torch.bitwise_right_shift(x, other)


@decomposition(aten.fmax.default)
def fmax(x: Tensor, y: Tensor) -> Tensor:
    if not torch.result_type(x, y).is_floating_point:
        return torch.maximum(x, y)
    return torch.where(y.isnan() | (x >= y), x, y)


@decomposition(aten.fmin.default)
def fmin(x: Tensor, y: Tensor) -> Tensor:
    if not torch.result_type(x, y).is_floating_point:
        return torch.minimum(x, y)
    return torch.where(y.isnan() | (x <= y), x, y)
