"""Arithmetic on scalars of PyTorch's types, as ``arith`` operations at the insertion point.

An MLIR integer has no sign; each value here carries the PyTorch type that says how to read it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from polyblocks import mlir
from polyblocks.attributes import FREE_ROUNDING_ATTRIBUTE, GCD

#: Floating-point types -> their widths.
FLOATS = {torch.float64: 64, torch.float32: 32, torch.float16: 16, torch.bfloat16: 16}
#: Integer types -> their widths.
INTEGERS = {
    torch.int64: 64,
    torch.int32: 32,
    torch.int16: 16,
    torch.int8: 8,
    torch.uint8: 8,
    torch.bool: 1,
}
#: Integers that have no sign.
UNSIGNED = frozenset({torch.uint8, torch.bool})

#: Up to here float32 holds all integers.
_EXACT_IN_FLOAT32 = 1 << 24


@dataclass(frozen=True)
class Scalar:
    """An SSA value and the PyTorch type of its bits."""

    value: Any
    dtype: torch.dtype

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_unsigned(self) -> bool:
        return self.dtype in UNSIGNED


def element_type(dtype: torch.dtype) -> Any:
    """The MLIR type of the elements of builtin tensors."""
    ir = mlir.ir
    if dtype in INTEGERS:
        return ir.IntegerType.get_signless(INTEGERS[dtype])
    if dtype is torch.bfloat16:
        return ir.BF16Type.get()
    if dtype.is_complex:
        part = torch.float64 if dtype is torch.complex128 else torch.float32
        return ir.ComplexType.get(element_type(part))
    return {16: ir.F16Type, 32: ir.F32Type, 64: ir.F64Type}[FLOATS[dtype]].get()


def number_in(number: bool | int | float, dtype: torch.dtype) -> bool | int | float:
    """A Python number in a type: integers wrap around, floats are rounded, as in eager mode.

    Where PyTorch's result is undefined (a float outside of the integer type), it is its kernels'.
    """
    if dtype is torch.bool:
        return bool(number)
    if dtype in INTEGERS:
        if isinstance(number, float):
            with _disable_current_modes():
                return int(torch.tensor(number, dtype=torch.float64).to(dtype).item())
        width = INTEGERS[dtype]
        wrapped = int(number) & ((1 << width) - 1)
        return wrapped - (1 << width) if dtype not in UNSIGNED and wrapped >> width - 1 else wrapped
    if dtype is torch.float64:
        return float(number)
    if isinstance(number, int) and abs(number) > _EXACT_IN_FLOAT32:
        # Rounded once, which by way of a Python float it would not be.
        with _disable_current_modes():
            number = float(torch.tensor(number, dtype=torch.int64).to(torch.float32))
    # The 16-bit types are made from float32.
    single = ctypes.c_float(number).value
    if dtype is torch.float32:
        return single
    with _disable_current_modes():
        return float(torch.tensor(single, dtype=torch.float32).to(dtype))


def recast(number: bool | int | float, own: torch.dtype, dtype: torch.dtype) -> bool | int | float:
    """A number of one type converted to another, as by PyTorch's kernels."""
    if own == dtype:
        return number
    with _disable_current_modes():
        converted: bool | int | float = torch.tensor(number, dtype=own).to(dtype).item()
    return converted


def constant(number: bool | int | float, dtype: torch.dtype) -> Scalar:
    """A number in a type, see :func:`number_in`."""
    ir, kind = mlir.ir, element_type(dtype)
    number = number_in(number, dtype)
    if dtype in FLOATS:
        attribute = ir.FloatAttr.get(kind, float(number))
    else:
        width = INTEGERS[dtype]
        # The attribute of an integer without sign is written with one.
        signed = int(number) - (1 << width) if int(number) >> width - 1 == 1 else int(number)
        attribute = ir.IntegerAttr.get(kind, signed)
    return Scalar(mlir.dialect("arith").ConstantOp(kind, attribute).result, dtype)


def convert(x: Scalar, dtype: torch.dtype, *, exactly: bool = True) -> Scalar:
    """A scalar in another type, converted as eager mode does.

    Args:
        x: the scalar.
        dtype: the other type.
        exactly: whether floats that lose precision are rounded; else the rounding may be left out
            where the result is computed with.
    """
    if x.dtype == dtype:
        return x
    arith, kind = mlir.dialect("arith"), element_type(dtype)
    if dtype is torch.bool:
        return compare("ne", x, constant(0, x.dtype))
    if x.is_float and dtype in FLOATS:
        return Scalar(_convert_float(x, dtype, exactly), dtype)
    if x.is_float:
        return Scalar(_convert_to_integer(x, dtype), dtype)
    if dtype in FLOATS:
        make = arith.UIToFPOp if x.is_unsigned else arith.SIToFPOp
        if FLOATS[dtype] == 16:
            single = Scalar(make(element_type(torch.float32), x.value).result, torch.float32)
            return convert(single, dtype)
        return Scalar(make(kind, x.value).result, dtype)
    before, after = INTEGERS[x.dtype], INTEGERS[dtype]
    if before == after:
        return Scalar(x.value, dtype)
    if before > after:
        return Scalar(arith.TruncIOp(kind, x.value).result, dtype)
    extend = arith.ExtUIOp if x.is_unsigned else arith.ExtSIOp
    return Scalar(extend(kind, x.value).result, dtype)


def _convert_float(x: Scalar, dtype: torch.dtype, exactly: bool) -> Any:
    arith = mlir.dialect("arith")
    before, after = FLOATS[x.dtype], FLOATS[dtype]
    if 16 in (before, after) and before != 32 and after != 32:
        # PyTorch's 16-bit types convert from and to float32 alone.
        x = convert(x, torch.float32, exactly=exactly)
        before = 32
    kind, rounded = element_type(dtype), x.value.owner
    if before < after and not exactly and _is_free_rounding(rounded, kind):
        return rounded.operation.operands[0]
    made = (arith.ExtFOp if before < after else arith.TruncFOp)(kind, x.value)
    if not exactly:
        made.operation.attributes[FREE_ROUNDING_ATTRIBUTE] = mlir.ir.UnitAttr.get()
    return made.result


def _is_free_rounding(maker: Any, kind: Any) -> bool:
    """Whether an operation rounds a number of a type, and need not."""
    return (
        not isinstance(maker, mlir.ir.Block)
        and maker.operation.name == "arith.truncf"
        and FREE_ROUNDING_ATTRIBUTE in maker.operation.attributes
        and maker.operation.operands[0].type == kind
    )


def _convert_to_integer(x: Scalar, dtype: torch.dtype) -> Any:
    """By way of 32 bits, whose lower ones are taken: ``-1.5`` becomes the byte 255, 300.0 44."""
    arith = mlir.dialect("arith")
    if FLOATS[x.dtype] == 16:
        x = convert(x, torch.float32)
    wide = torch.int64 if dtype is torch.int64 else torch.int32
    whole = arith.FPToSIOp(element_type(wide), x.value).result
    return convert(Scalar(whole, wide), dtype).value


#: Comparison -> predicates of floats, of integers with a sign, of those without.
_PREDICATES = {
    "eq": ("OEQ", "eq", "eq"),
    "ne": ("UNE", "ne", "ne"),
    "lt": ("OLT", "slt", "ult"),
    "le": ("OLE", "sle", "ule"),
    "gt": ("OGT", "sgt", "ugt"),
    "ge": ("OGE", "sge", "uge"),
}


def compare(name: str, x: Scalar, y: Scalar) -> Scalar:
    """Compare two scalars of one type.

    Args:
        name: ``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge``.
    """
    arith = mlir.dialect("arith")
    of_floats, signed, unsigned = _PREDICATES[name]
    if x.is_float:
        value = arith.CmpFOp(getattr(arith.CmpFPredicate, of_floats), x.value, y.value).result
    else:
        predicate = getattr(arith.CmpIPredicate, unsigned if x.is_unsigned else signed)
        value = arith.CmpIOp(predicate, x.value, y.value).result
    return Scalar(value, torch.bool)


def select(condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
    """``x`` where a boolean holds, else ``y``, which is of the same type."""
    chosen = mlir.dialect("arith").SelectOp(condition.value, x.value, y.value).result
    return Scalar(chosen, x.dtype)


def binary(of_floats: str | None, of_integers: str | None) -> Callable[[Scalar, Scalar], Scalar]:
    """A function of two scalars of one type.

    Args:
        of_floats, of_integers: names of classes of the ``arith`` dialect.
    """

    def apply(x: Scalar, y: Scalar) -> Scalar:
        name = of_floats if x.is_float else of_integers
        assert name is not None, f"no such operation on {x.dtype}"
        return Scalar(getattr(mlir.dialect("arith"), name)(x.value, y.value).result, x.dtype)

    return apply


add = binary("AddFOp", "AddIOp")
subtract = binary("SubFOp", "SubIOp")
multiply = binary("MulFOp", "MulIOp")
bit_and = binary(None, "AndIOp")
bit_or = binary(None, "OrIOp")
bit_xor = binary(None, "XOrIOp")
shift_left = binary(None, "ShLIOp")
#: Without the sign: zeros move in.
shift_right_logically = binary(None, "ShRUIOp")


def divide(x: Scalar, y: Scalar) -> Scalar:
    """The quotient, of integers rounded toward zero."""
    return binary("DivFOp", "DivUIOp" if x.is_unsigned else "DivSIOp")(x, y)


def remainder(x: Scalar, y: Scalar) -> Scalar:
    """The remainder of a division toward zero; it has the sign of ``x``."""
    return binary("RemFOp", "RemUIOp" if x.is_unsigned else "RemSIOp")(x, y)


def shift_right(x: Scalar, y: Scalar) -> Scalar:
    """Shift to the right, the sign in."""
    return binary(None, "ShRUIOp" if x.is_unsigned else "ShRSIOp")(x, y)


def trailing_zeros(x: Scalar) -> Scalar:
    """How many zeros an integer ends with; its width for zero."""
    return Scalar(mlir.dialect("math").CountTrailingZerosOp(x.value).result, x.dtype)


def greatest_divisor(x: Scalar, y: Scalar) -> Scalar:
    """Of two integers that are read without a sign; the other one of zero."""
    made = mlir.ir.Operation.create(GCD, results=[x.value.type], operands=[x.value, y.value])
    return Scalar(made.result, x.dtype)
