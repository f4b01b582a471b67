"""set-fastmath: allow reassociation and contraction on the program's floating-point ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.attributes import FREE_ROUNDING_ATTRIBUTE
from polyblocks.passes import facts
from polyblocks.passes.tensor.exact_quotients import demands, exact_quotients

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

    A quotient that is rounded to a whole number, or compared, may be contracted only: of
    ``123 / 41`` a product with the reciprocal of 41 makes less than 3, and of its floor 2. So may
    those whose difference is compared with zero.
    """

    name: ClassVar[str] = "set-fastmath"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> None:
        """Rewrite in place."""
        from polyblocks.mlir import ir

        disabled = context.options.mlir_disable_fast_math
        with module.context:
            flags = ir.Attribute.parse("#arith.fastmath<reassoc,contract>")
            exact = ir.Attribute.parse("#arith.fastmath<contract>")
            exactly: list[Any] = []

            on = ir.WalkResult.ADVANCE
            wanted = CONVERSIONS if disabled else OPS

            def visit(op: Any) -> Any:
                exactly.extend(demands(op))
                if op.name in wanted:
                    if not disabled:
                        op.attributes["fastmath"] = flags
                    elif FREE_ROUNDING_ATTRIBUTE in op.attributes:
                        del op.attributes[FREE_ROUNDING_ATTRIBUTE]
                return on

            module.operation.walk(visit)
            for quotient in [] if disabled else exact_quotients(exactly):
                quotient.attributes["fastmath"] = exact
