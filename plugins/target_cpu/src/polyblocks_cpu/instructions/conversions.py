"""x86's conversions of floats to signed integers: of what does not fit, the lowest one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from polyblocks.affine.vectors.vector_ops import shuffle
from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.define_arithmetic import Convert
from polyblocks.mlir import ir
from polyblocks.target import TargetDescription
from polyblocks_cpu.describe import required_features
from polyblocks_cpu.instructions.registers import by_registers, in_a_register, invoke

#: Float and integer -> of a scalar, which is the lowest lane of a register.
_SCALARS = {
    ("f32", "i32"): "sse.cvttss2si",
    ("f32", "i64"): "sse.cvttss2si64",
    ("f64", "i32"): "sse2.cvttsd2si",
    ("f64", "i64"): "sse2.cvttsd2si64",
}
#: Float, integer, and bits of the wider one's register -> of vectors.
_VECTORS = {
    ("f32", "i32", 128): "sse2.cvttps2dq",
    ("f32", "i32", 256): "avx.cvtt.ps2dq.256",
    ("f32", "i32", 512): "avx512.mask.cvttps2dq.512",
    ("f64", "i32", 128): "sse2.cvttpd2dq",
    ("f64", "i32", 256): "avx.cvtt.pd2dq.256",
    ("f64", "i32", 512): "avx512.mask.cvttpd2dq.512",
    ("f32", "i64", 256): "avx512.mask.cvttps2qq.256",
    ("f32", "i64", 512): "avx512.mask.cvttps2qq.512",
    ("f64", "i64", 256): "avx512.mask.cvttpd2qq.256",
    ("f64", "i64", 512): "avx512.mask.cvttpd2qq.512",
}
_BITS = {"f32": 32, "f64": 64, "i32": 32, "i64": 64}
_MASK_BITS = 8


def conversions(target: TargetDescription) -> Convert:
    """The conversions that an x86 chip has."""
    features = required_features(target)
    widest = 512 if "avx512dq" in features else 256 if "avx" in features else 128
    return _Conversions(min(widest, target.vector_bits or widest), "avx512dq" in features)


@dataclass(frozen=True)
class _Conversions:
    """See :data:`polyblocks.codegen.define_arithmetic.Convert`.

    Attributes:
        widest: bits of the widest register.
        masked: whether AVX-512's are there.
    """

    widest: int
    masked: bool

    def __call__(self, b: Builder, x: Val, kind: str) -> Val | None:
        if (x.kind, kind) not in _SCALARS:
            return None
        if b.shape is None:
            return Val(b, _of_scalar(x.value, x.kind, kind), kind)
        if len(b.shape) != 1 or any(b.scalable or ()):
            return None
        (lanes,) = b.shape
        found = self._instruction(lanes, x.kind, kind)
        if found is None:
            return Val(b, _lane_by_lane(b, x, kind), kind)
        width, instruction = found
        if lanes == width:
            return Val(b, instruction(x.value), kind)
        through = in_a_register if lanes < width else by_registers
        return Val(b, through(width, instruction, (x.value,)), kind)

    def _instruction(
        self, lanes: int, float_: str, integer: str
    ) -> tuple[int, Callable[[Any], Any]] | None:
        """The widest one that is needed, and how many lanes it takes."""
        wider = max(_BITS[float_], _BITS[integer])
        found = None
        for (*types, bits), name in _VECTORS.items():
            width = bits // wider
            if types != [float_, integer] or bits > self.widest:
                continue
            if name.startswith("avx512") and not self.masked:
                continue
            if found is None or (width <= lanes and lanes % width == 0):
                found = width, partial(_of_register, name, bits, integer)
        if found is not None and lanes > found[0] and (lanes & (lanes - 1) or lanes % found[0]):
            return None
        return found


def _of_register(name: str, bits: int, integer: str, x: Any) -> Any:
    """One instruction."""
    (lanes,) = x.type.shape
    # At least a register of them; what is more than those converted is zero.
    made = max(lanes, 128 // _BITS[integer])
    result = ir.VectorType.get([made], ir.IntegerType.get_signless(_BITS[integer]))
    operands = [x]
    if name.startswith("avx512"):
        operands += [_constant(result, 0), _constant(_bits_type(max(lanes, _MASK_BITS)), -1)]
        if bits == 512:
            # Rounding as the control register says, which conversions by truncation ignore.
            operands.append(_constant(_bits_type(32), 4))
    whole = invoke(f"llvm.x86.{name}", operands, [result]).result
    return whole if made == lanes else shuffle(whole, whole, list(range(lanes)))


def _of_scalar(x: Any, float_: str, integer: str) -> Any:
    register = ir.VectorType.get([128 // _BITS[float_]], x.type)
    wide = ir.Operation.create("vector.broadcast", results=[register], operands=[x]).result
    result = ir.IntegerType.get_signless(_BITS[integer])
    return invoke(f"llvm.x86.{_SCALARS[float_, integer]}", [wide], [result]).result


def _lane_by_lane(b: Builder, x: Val, kind: str) -> Any:
    """As LLVM does where there is no instruction for vectors."""
    element = x.value.type.element_type
    parts = []
    for lane in range(x.value.type.shape[0]):
        position = ir.DenseI64ArrayAttr.get([lane])
        part = ir.Operation.create(
            "vector.extract",
            results=[element],
            operands=[x.value],
            attributes={"static_position": position},
        ).result
        parts.append(_of_scalar(part, x.kind, kind))
    return ir.Operation.create(
        "vector.from_elements", results=[b.type(kind)], operands=parts
    ).result


def _bits_type(bits: int) -> Any:
    return ir.IntegerType.get_signless(bits)


def _constant(type_: Any, value: int) -> Any:
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    attribute = ir.IntegerAttr.get(element, value)
    if element is not type_:
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return ir.Operation.create(
        "llvm.mlir.constant", results=[type_], attributes={"value": attribute}
    ).result
