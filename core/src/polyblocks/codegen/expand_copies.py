"""expand-copies: ``memref.copy`` becomes loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.walk import nested


@dataclass(frozen=True)
class ExpandCopiesPass:
    """Copy element by element; upstream calls ``memcpy``, or a library's ``memrefCopy``.

    Before::

        memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32, strided<[16, 1]>>

    After::

        affine.for %i = 0 to 4 {
          affine.for %j = 0 to 8 {
            %v = affine.load %a[%i, %j]
            affine.store %v, %b[%i, %j]
          }
        }
    """

    name: ClassVar[str] = "expand-copies"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was a copy.

        Raises:
            ValueError: a copy of a memref whose shape is not static.
        """
        from polyblocks.mlir import ir

        del context
        copies = [op for op in nested(module.operation) if op.name == "memref.copy"]
        with module.context:
            for op in copies:
                with op.location, ir.InsertionPoint(op):
                    _copy(op.operands[0], op.operands[1])
                op.erase()
        return bool(copies)


def _copy(source: Any, target: Any) -> None:
    from polyblocks import mlir

    ir = mlir.ir
    affine = mlir.dialect("affine")
    type_ = source.type
    if not type_.has_static_shape:
        raise ValueError(f"memref.copy of {type_} has no static shape")

    def level(indices: list[Any]) -> None:
        if len(indices) == type_.rank:
            identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
            value = ir.Operation.create(
                "affine.load",
                results=[type_.element_type],
                operands=[source, *indices],
                attributes={"map": identity},
            ).result
            ir.Operation.create(
                "affine.store",
                operands=[value, target, *indices],
                attributes={"map": identity},
            )
            return
        loop = affine.AffineForOp(0, type_.shape[len(indices)], 1)
        with ir.InsertionPoint(loop.body):
            level([*indices, loop.induction_variable])
            affine.AffineYieldOp([])

    level([])
