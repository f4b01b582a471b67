"""set-fastmath: allow reassociation and contraction on the program's floating-point ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

#: Ops whose rounding may change; comparisons, minima and maxima keep NaN and signed zero as is.
OPS = {
    "arith.addf",
    "arith.divf",
    "arith.mulf",
    "arith.negf",
    "arith.subf",
    "complex.add",
    "complex.div",
    "complex.mul",
    "complex.sub",
}


@dataclass(frozen=True)
class SetFastmathPass:
    """Put ``fastmath<reassoc, contract>`` on floating-point arithmetic.

    Before: ``%c = arith.addf %a, %b : f32``; after:
    ``%c = arith.addf %a, %b fastmath<reassoc,contract> : f32``. Nothing else is allowed: NaN, Inf
    and signed zeros keep their meaning. ``mlir_disable_fast_math`` leaves all as it is.
    """

    name: ClassVar[str] = "set-fastmath"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite in place."""
        from polyblocks.mlir import ir

        if context.options.mlir_disable_fast_math:
            return
        with module.context:
            flags = ir.Attribute.parse("#arith.fastmath<reassoc,contract>")

            def visit(op: Any) -> Any:
                if op.name in OPS:
                    op.attributes["fastmath"] = flags
                return ir.WalkResult.ADVANCE

            module.operation.walk(visit)
