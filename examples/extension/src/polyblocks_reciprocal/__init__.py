"""An extension of PolyBlocks: divisions by constants become multiplications.

A division takes several times as long as a multiplication, and its unit is not pipelined. The
product with the rounded reciprocal may differ from the quotient in the last bit, so the pass is
left out where the user wants divisions as they are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import hookimpl

#: The version of the hooks that this was written for.
POLYBLOCKS_API = {"configure_pipeline": 1}


@hookimpl
def configure_pipeline(pipeline: Any, options: Any) -> None:
    """Put the pass at the end of stage S1; hooks take the arguments that they need."""
    if not options.polyblocks_disable_unsafe_math_canonicalizations:
        pipeline.append("S1", ReciprocalDivisionPass())


@dataclass(frozen=True)
class ReciprocalDivisionPass:
    """Multiply by the reciprocal instead of dividing by a constant.

    Before::

        %c = arith.constant 3.0 : f32
        %y = arith.divf %x, %c : f32

    After::

        %r = arith.constant 0.333333343 : f32
        %y = arith.mulf %x, %r : f32
    """

    name: ClassVar[str] = "reciprocal-division"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the module in place, and report how often that was possible."""
        # MLIR is imported in the pass, which runs on a cache miss only.
        from polyblocks import mlir

        divisions: list[Any] = []

        def visit(op: Any) -> Any:
            if op.name == "arith.divf" and _constant_divisor(op):
                divisions.append(op)
            return mlir.ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        arith = mlir.dialect("arith")
        with module.context:
            for op in divisions:
                type_ = op.results[0].type
                with op.location, mlir.ir.InsertionPoint(op):
                    attribute = mlir.ir.FloatAttr.get(type_, 1.0 / _constant_divisor(op))
                    reciprocal = arith.ConstantOp(type_, attribute).result
                    product = arith.MulFOp(
                        op.operands[0], reciprocal, fastmath=op.attributes["fastmath"]
                    )
                op.results[0].replace_all_uses_with(product.result)
                op.erase()
        context.decide(self.name, "module", "divisions replaced", count=len(divisions))


def _constant_divisor(op: Any) -> float:
    """The value of a divisor that is a scalar constant with a normal reciprocal, else 0."""
    from polyblocks.mlir import ir

    owner = op.operands[1].owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return 0.0
    value = owner.attributes["value"]
    number = float(value.value) if isinstance(value, ir.FloatAttr) else 0.0
    return number if 1e-30 < abs(number) < 1e30 else 0.0
