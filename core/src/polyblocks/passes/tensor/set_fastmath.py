"""set-fastmath: allow reassociation and contraction on the program's floating-point ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.attributes import FREE_ROUNDING_ATTRIBUTE
from polyblocks.passes import facts

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

#: Ops that a frontend marks where the rounding of a value is not the program's.
CONVERSIONS = {"arith.extf", "arith.truncf"}


@dataclass(frozen=True)
class SetFastmathPass:
    """Put ``fastmath<reassoc, contract>`` on floating-point arithmetic.

    Before: ``%c = arith.addf %a, %b : f32``; after:
    ``%c = arith.addf %a, %b fastmath<reassoc,contract> : f32``. Nothing else is allowed: NaN, Inf
    and signed zeros keep their meaning. With ``mlir_disable_fast_math`` arithmetic stays as it is,
    and conversions round even where the frontend has marked them as ones that need not.
    """

    name: ClassVar[str] = "set-fastmath"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> None:
        """Rewrite in place."""
        from polyblocks.mlir import ir

        disabled = context.options.mlir_disable_fast_math
        with module.context:
            flags = ir.Attribute.parse("#arith.fastmath<reassoc,contract>")

            on = ir.WalkResult.ADVANCE
            wanted = CONVERSIONS if disabled else OPS

            def visit(op: Any) -> Any:
                if op.name in wanted:
                    if not disabled:
                        op.attributes["fastmath"] = flags
                    elif FREE_ROUNDING_ATTRIBUTE in op.attributes:
                        del op.attributes[FREE_ROUNDING_ATTRIBUTE]
                return on

            module.operation.walk(visit)
