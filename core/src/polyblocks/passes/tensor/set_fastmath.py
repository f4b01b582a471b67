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

#: Ops that make a whole number, which jumps where what they round is off by its last bit.
ROUNDS = {
    "arith.fptosi",
    "arith.fptoui",
    "math.ceil",
    "math.floor",
    "math.round",
    "math.roundeven",
    "math.trunc",
}

#: Ops that hand on the last bit of an operand.
HANDS_ON = {
    *("arith.addf", "arith.divf", "arith.extf", "arith.mulf", "arith.negf", "arith.select"),
    *("arith.maximumf", "arith.maxnumf", "arith.minimumf", "arith.minnumf", "arith.subf"),
    *("arith.truncf", "math.absf"),
}

#: Ops that rearrange the elements of their first operand.
MOVES = {
    *("linalg.transpose", "tensor.cast", "tensor.collapse_shape", "tensor.expand_shape"),
    *("tensor.extract_slice", "tensor.pad"),
}


@dataclass(frozen=True)
class SetFastmathPass:
    """Put ``fastmath<reassoc, contract>`` on floating-point arithmetic.

    Before: ``%c = arith.addf %a, %b : f32``; after:
    ``%c = arith.addf %a, %b fastmath<reassoc,contract> : f32``. Nothing else is allowed: NaN, Inf
    and signed zeros keep their meaning. With ``mlir_disable_fast_math`` arithmetic stays as it is,
    and conversions round even where the frontend has marked them as ones that need not.

    A quotient that is rounded to a whole number may be contracted only: of ``123 / 41`` a product
    with the reciprocal of 41 makes less than 3, and of its floor 2.
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
            rounded: list[Any] = []

            on = ir.WalkResult.ADVANCE
            wanted = CONVERSIONS if disabled else OPS

            def visit(op: Any) -> Any:
                if op.name in wanted:
                    if not disabled:
                        op.attributes["fastmath"] = flags
                    elif FREE_ROUNDING_ATTRIBUTE in op.attributes:
                        del op.attributes[FREE_ROUNDING_ATTRIBUTE]
                elif op.name in ROUNDS:
                    rounded.append(op.operands[0])
                return on

            module.operation.walk(visit)
            for quotient in [] if disabled else _quotients(rounded):
                quotient.attributes["fastmath"] = exact


def _quotients(values: list[Any]) -> list[Any]:
    """The divisions whose last bit reaches any of these values, element by element."""
    found, seen = [], set(values)
    while values:
        value = values.pop()
        for source in _sources(value):
            if source not in seen:
                seen.add(source)
                values.append(source)
        operation = _maker(value)
        if operation is not None and operation.name == "arith.divf":
            found.append(operation)
    return found


def _maker(value: Any) -> Any:
    """The operation whose result a value is, if any."""
    from polyblocks.mlir import ir

    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def _sources(value: Any) -> list[Any]:
    """The values that an element of a value is made of."""
    made = _maker(value)
    if made is None:
        around = value.owner.owner.operation
        return [around.operands[value.arg_number]] if _is_elementwise(around) else []
    if _is_elementwise(made):
        body = made.regions[0].blocks[0].operations
        return [body[len(body) - 1].operands[list(made.results).index(value)]]
    if made.name in MOVES:
        return [made.operands[0]]
    return list(made.operands) if made.name in HANDS_ON else []


def _is_elementwise(op: Any) -> bool:
    """Whether each element of the results is made of one of each operand."""
    if op.name != "linalg.generic":
        return False
    return all("parallel" in str(kind) for kind in op.attributes["iterator_types"])
