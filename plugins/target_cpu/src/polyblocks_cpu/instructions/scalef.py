"""AVX-512's instruction for multiplying by powers of two."""

from __future__ import annotations

from functools import partial
from typing import Any

from polyblocks.codegen.builder import Builder, Val
from polyblocks.mlir import ir
from polyblocks_cpu.instructions.avx512 import intrinsic
from polyblocks_cpu.instructions.registers import by_registers

_BITS = {"f32": 32, "f64": 64}
_SUFFIXES = {"f32": "ps", "f64": "pd"}
_MASK_BITS = 8
_WIDEST = 512


def multiply_by_power(b: Builder, x: Val, exponent: Val) -> Val | None:
    """``x * 2^floor(exponent)`` by ``vscalef``, which takes the exponent as a float.

    LLVM's ``ldexp`` takes an integer, and converts it to a float for that instruction.

    Returns:
        None but for vectors that fill one register of 128, 256 or 512 bits, or some of 512.
    """
    if b.shape is None or len(b.shape) != 1 or b.scalable or x.kind not in _BITS:
        return None
    (lanes,) = b.shape
    bits = lanes * _BITS[x.kind]
    if bits in (128, 256, 512):
        return Val(b, _scalef(x.kind, x.value, exponent.value), x.kind)
    if bits % _WIDEST or bits & (bits - 1):
        return None
    width = _WIDEST // _BITS[x.kind]
    value = by_registers(width, partial(_scalef, x.kind), (x.value, exponent.value))
    return Val(b, value, x.kind)


def _scalef(kind: str, x: Any, exponent: Any) -> Any:
    """One instruction; both operands fill a register."""
    (lanes,) = x.type.shape
    bits = lanes * _BITS[kind]
    operands = [x, exponent, x, _constant(max(lanes, _MASK_BITS), -1)]
    if bits == _WIDEST:
        # Rounding as the control register says.
        operands.append(_constant(32, 4))
    return intrinsic(f"mask.scalef.{_SUFFIXES[kind]}.{bits}", *operands)


def _constant(bits: int, value: int) -> Any:
    type_ = ir.IntegerType.get_signless(bits)
    attribute = ir.IntegerAttr.get(type_, value)
    return ir.Operation.create(
        "llvm.mlir.constant", results=[type_], attributes={"value": attribute}
    ).result
