"""Operations of the ``math`` dialect that C's library does not have, as LLVM's intrinsics.

The conversion to calls of the library refuses a module that holds any other operation of ``math``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: ``math`` operation -> intrinsic, and the name of its flag (0 or false: defined for zero, too).
_SAME = {
    "math.copysign": ("llvm.intr.copysign", None),
    "math.ctpop": ("llvm.intr.ctpop", None),
    "math.absi": ("llvm.intr.abs", "is_int_min_poison"),
    "math.ctlz": ("llvm.intr.ctlz", "is_zero_poison"),
    "math.cttz": ("llvm.intr.cttz", "is_zero_poison"),
}

#: Classes of numbers, as LLVM's language reference numbers the bits of ``llvm.is.fpclass``.
_CLASSES = {
    "math.isnan": 0x003,
    "math.isinf": 0x204,
    "math.isfinite": 0x1F8,
    "math.isnormal": 0x108,
}


def to_intrinsics(operations: Callable[[str], list[Any]]) -> None:
    """Rewrite them.

    Args:
        operations: gives all operations of a name; a context and a location are current.
    """
    from polyblocks.mlir import ir

    for name, (intrinsic, flag) in _SAME.items():
        no = ir.BoolAttr.get(False)
        for op in operations(name):
            _replace(op, intrinsic, {flag: no} if flag else {})
    for name, bits in _CLASSES.items():
        bit = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), bits)
        for op in operations(name):
            _replace(op, "llvm.intr.is.fpclass", {"bit": bit})


def widen_fma(operations: Callable[[str], list[Any]]) -> None:
    """Compute fused multiply-adds of bfloat16 in float32, which MLIR's own pass leaves out.

    Args:
        operations: see :func:`to_intrinsics`.
    """
    from polyblocks.mlir import ir

    def convert(name: str, value: Any, type_: Any) -> Any:
        return ir.Operation.create(name, results=[type_], operands=[value]).result

    f32 = ir.F32Type.get()
    for op in operations("math.fma"):
        type_ = op.results[0].type
        if not isinstance(type_, ir.BF16Type):
            continue
        with ir.InsertionPoint(op):
            wide = [convert("arith.extf", value, f32) for value in op.operands]
            sum_ = ir.Operation.create("math.fma", results=[f32], operands=wide).result
            op.results[0].replace_all_uses_with(convert("arith.truncf", sum_, type_))
        op.erase()


def _replace(op: Any, intrinsic: str, attributes: dict[str, Any]) -> None:
    from polyblocks.mlir import ir

    with ir.InsertionPoint(op):
        new = ir.Operation.create(
            intrinsic,
            results=[result.type for result in op.results],
            operands=list(op.operands),
            attributes=attributes,
        )
    op.results[0].replace_all_uses_with(new.result)
    op.erase()
