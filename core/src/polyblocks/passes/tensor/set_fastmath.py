"""set-fastmath: allow reassociation and contraction on the program's floating-point ops."""

from __future__ import annotations

import math
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

#: Ops whose result jumps where an operand is off by its last bit: whole numbers and remainders.
ROUNDS = {
    "arith.fptosi",
    "arith.fptoui",
    "arith.remf",
    "math.ceil",
    "math.floor",
    "math.round",
    "math.roundeven",
    "math.trunc",
}

#: Ops that hand on the last bit of one of their operands.
CHOOSES = {
    *("arith.maximumf", "arith.maxnumf", "arith.minimumf", "arith.minnumf", "arith.select"),
    *("arith.bitcast", "arith.extf", "arith.negf", "arith.truncf", "arith.xori", "math.absf"),
    "tensor.extract",
}

#: Ops that hand on that of all of them. Sums of many numbers round by themselves.
COMPUTES = {"arith.addf", "arith.divf", "arith.mulf", "arith.subf"}

#: Ops whose results have the elements of their operands.
MOVES = {
    *("linalg.broadcast", "linalg.transpose", "tensor.cast", "tensor.collapse_shape"),
    *("tensor.concat", "tensor.expand_shape", "tensor.extract_slice", "tensor.from_elements"),
    *("tensor.gather", "tensor.insert", "tensor.insert_slice", "tensor.pad", "tensor.reshape"),
    *("tensor.splat", "tm_tensor.scatter", "tm_tensor.sort"),
}

#: Predicates of ``arith.cmpf`` that look at NaN alone, if at anything: false, ord, uno, true.
BLIND = {0, 7, 14, 15}


@dataclass(frozen=True)
class SetFastmathPass:
    """Put ``fastmath<reassoc, contract>`` on floating-point arithmetic.

    Before: ``%c = arith.addf %a, %b : f32``; after:
    ``%c = arith.addf %a, %b fastmath<reassoc,contract> : f32``. Nothing else is allowed: NaN, Inf
    and signed zeros keep their meaning. With ``mlir_disable_fast_math`` arithmetic stays as it is,
    and conversions round even where the frontend has marked them as ones that need not.

    A quotient that is rounded to a whole number, or compared, may be contracted only: of
    ``123 / 41`` a product with the reciprocal of 41 makes less than 3, and of its floor 2.
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
                elif op.name in ROUNDS or op.name == "arith.cmpf" and _jumps(op):
                    rounded.extend(op.operands)
                return on

            module.operation.walk(visit)
            for quotient in [] if disabled else _quotients(rounded):
                quotient.attributes["fastmath"] = exact


def _jumps(comparison: Any) -> bool:
    """Whether a comparison may come out otherwise where an operand is off by its last bit.

    The sign of a number does not depend on it, nor whether it is finite. The choice of the larger
    or smaller of two numbers does, but is off by that bit as well.
    """
    if comparison.attributes["predicate"].value in BLIND or any(
        _is_zero_or_infinite(value) for value in comparison.operands
    ):
        return False
    compared = set(comparison.operands)
    return not all(
        use.owner.name == "arith.select" and set(list(use.owner.operands)[1:]) == compared
        for use in comparison.results[0].uses
    )


def _is_zero_or_infinite(value: Any) -> bool:
    """Whether a value is a constant that is 0 or infinite, at each element."""
    from polyblocks.mlir import constant_number

    number = constant_number(value)
    return number is not None and (number == 0 or math.isinf(number))


def _quotients(values: list[Any]) -> list[Any]:
    """The divisions whose last bit reaches any of these values."""
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
    """The values whose last bit an element of a value has."""
    made = _maker(value)
    if made is None:
        around = value.owner.owner.operation
        return (
            _values_of_argument(around, value.arg_number) if around.name == "linalg.generic" else []
        )
    if made.name in ("linalg.generic", "scf.if"):
        number = list(made.results).index(value)
        return [_yielded(region)[number] for region in made.regions]
    if made.name in CHOOSES or made.name in MOVES:
        return list(made.operands)
    return list(made.operands) if made.name in COMPUTES and not _is_reduced(made.parent) else []


def _values_of_argument(generic: Any, number: int) -> list[Any]:
    """The values that the argument of that number has in the body of a ``linalg.generic``."""
    carried = number - (len(generic.operands) - len(generic.results))
    found = [generic.operands[number]]
    if carried >= 0 and _is_reduced(generic):
        found.append(_yielded(generic.regions[0])[carried])
    return found


def _yielded(region: Any) -> list[Any]:
    """The values that become results, or elements of them."""
    body = region.blocks[0].operations
    return list(body[len(body) - 1].operands)


def _is_reduced(around: Any) -> bool:
    """Whether an operation reduces its operands."""
    if around.name != "linalg.generic":
        return False
    return any("reduction" in str(kind) for kind in around.attributes["iterator_types"])
