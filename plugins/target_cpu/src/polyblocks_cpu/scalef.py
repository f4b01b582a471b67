"""AVX-512's instruction for multiplying by powers of two."""

from __future__ import annotations

from typing import Any

from polyblocks.codegen.builder import Builder, Val
from polyblocks.mlir import ir

_BITS = {"f32": 32, "f64": 64}
_SUFFIXES = {"f32": "ps", "f64": "pd"}
_MASK_BITS = 8


def multiply_by_power(b: Builder, x: Val, exponent: Val) -> Val | None:
    """``x * 2^exponent`` by ``vscalef``, which takes the exponent as a float.

    LLVM's ``ldexp`` takes an integer, of which it makes a float for that instruction.

    Returns:
        None but for vectors that fill a register of 128, 256 or 512 bits.
    """
    if b.shape is None or len(b.shape) != 1 or b.scalable or x.kind not in _BITS:
        return None
    (lanes,) = b.shape
    bits = lanes * _BITS[x.kind]
    if bits not in (128, 256, 512):
        return None
    mask = max(lanes, _MASK_BITS)
    operands = [x.value, exponent.value, x.value, _constant(mask, -1)]
    if bits == 512:
        # As the control register says.
        operands.append(_constant(32, 4))
    name = f"llvm.x86.avx512.mask.scalef.{_SUFFIXES[x.kind]}.{bits}"
    op = ir.Operation.create(
        "llvm.call_intrinsic",
        results=[b.type(x.kind)],
        operands=operands,
        attributes={
            "intrin": ir.StringAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )
    return Val(b, op.result, x.kind)


def _constant(bits: int, value: int) -> Any:
    type_ = ir.IntegerType.get_signless(bits)
    attribute = ir.IntegerAttr.get(type_, value)
    return ir.Operation.create(
        "llvm.mlir.constant", results=[type_], attributes={"value": attribute}
    ).result
