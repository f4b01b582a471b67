"""Divisions whose last bit decides about a result that jumps: a whole number, a comparison, bits.

Such results are looked for backwards from what jumps. Of some values all of the number matters, of
others the sign alone: that of a quotient is right however it is rounded, that of a difference of
quotients is not.
"""

from __future__ import annotations

import math
from typing import Any

from polyblocks.passes.tensor.control_flow import CONTROL_FLOW

#: Ops whose result jumps where an operand is off by its last bit: whole numbers, remainders, bits.
ROUNDS = {
    *("arith.bitcast", "arith.fptosi", "arith.fptoui", "arith.remf", "math.ceil", "math.floor"),
    *("math.round", "math.roundeven", "math.trunc"),
}

#: Ops that hand on the last bit of one of their operands.
CHOOSES = {
    *("arith.maximumf", "arith.maxnumf", "arith.minimumf", "arith.minnumf", "arith.select"),
    *("arith.bitcast", "arith.extf", "arith.negf", "arith.truncf", "arith.xori", "math.absf"),
    "tensor.extract",
}

#: Ops that hand on that of all of them. Sums of many numbers round by themselves.
COMPUTES = {"arith.addf", "arith.divf", "arith.mulf", "arith.subf", "math.sqrt"}

#: Those of them whose sign is not a matter of their operands' signs.
SUMS = {"arith.addf", "arith.subf"}

#: Ops whose results have the elements of their operands.
MOVES = {
    *("linalg.broadcast", "linalg.transpose", "tensor.cast", "tensor.collapse_shape"),
    *("tensor.concat", "tensor.expand_shape", "tensor.extract_slice", "tensor.from_elements"),
    *("tensor.gather", "tensor.insert", "tensor.insert_slice", "tensor.pad", "tensor.reshape"),
    *("tensor.splat", "tm_tensor.scatter", "tm_tensor.sort"),
}

#: Predicates of ``arith.cmpf`` that look at NaN alone, if at anything: false, ord, uno, true.
BLIND = {0, 7, 14, 15}


def demands(operation: Any) -> list[tuple[Any, bool]]:
    """The values that what an operation jumps at depends on, and whether by their sign alone."""
    if operation.name == "arith.cmpf":
        return _compared(operation)
    return [(value, False) for value in operation.operands] if operation.name in ROUNDS else []


def exact_quotients(demanded: list[tuple[Any, bool]]) -> list[Any]:
    """The operations ``arith.divf`` that are to round as divisions do.

    Args:
        demanded: the :func:`demands` of all operations of a program.
    """
    found, seen, todo = [], set(demanded), list(demanded)
    while todo:
        value, sign = todo.pop()
        for demand in _sources(value, sign):
            if demand not in seen:
                seen.add(demand)
                todo.append(demand)
        made = _maker(value)
        if not sign and made is not None and made.name == "arith.divf":
            found.append(made)
    return found


def _compared(comparison: Any) -> list[tuple[Any, bool]]:
    """The demands of a comparison.

    Whether a number is finite does not depend on its last bit. The choice of the larger or smaller
    of two numbers does, but is off by that bit as well.
    """
    if comparison.attributes["predicate"].value in BLIND:
        return []
    operands = list(comparison.operands)
    fixed = [_constant(value) for value in operands]
    if any(number is not None and math.isinf(number) for number in fixed):
        return []
    compared = set(operands)
    if all(
        use.owner.name == "arith.select" and set(list(use.owner.operands)[1:]) == compared
        for use in comparison.results[0].uses
    ):
        return []
    return [(value, 0 in fixed) for value in operands]


def _constant(value: Any) -> float | None:
    from polyblocks.mlir import constant_number

    return constant_number(value)


def _maker(value: Any) -> Any:
    """The operation whose result a value is, if any."""
    from polyblocks.mlir import ir

    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def _sources(value: Any, sign: bool) -> list[tuple[Any, bool]]:
    """The values whose last bit an element of a value has, or whose signs its sign is made of."""
    made = _maker(value)
    if made is None:
        return [(source, sign) for source in _values_of_argument(value)]
    if made.name in (*CONTROL_FLOW, "linalg.generic"):
        return [(source, sign) for source in _values_of_result(made, value)]
    if made.name in CHOOSES or made.name in MOVES:
        return [(operand, sign) for operand in made.operands]
    if made.name not in COMPUTES or _is_reduced(made.parent):
        return []
    return [(operand, sign and made.name not in SUMS) for operand in made.operands]


def _values_of_result(made: Any, value: Any) -> list[Any]:
    """The values that a result of an operation with regions has."""
    number = list(made.results).index(value)
    if made.name == "scf.while":
        return [_yielded(made.regions[0])[1 + number]]
    found = [_yielded(region)[number] for region in made.regions]
    return [*found, made.operands[3 + number]] if made.name == "scf.for" else found


def _values_of_argument(argument: Any) -> list[Any]:
    """The values that the argument of a body has."""
    around, number = argument.owner.owner.operation, argument.arg_number
    if around.name == "linalg.generic":
        carried = number - (len(around.operands) - len(around.results))
        found = [around.operands[number]]
        if carried >= 0 and _is_reduced(around):
            found.append(_yielded(around.regions[0])[carried])
        return found
    if around.name == "scf.for":
        return [around.operands[2 + number], _yielded(around.regions[0])[number - 1]][: 2 * number]
    if around.name == "scf.while":
        before, after = around.regions
        if argument.owner == before.blocks[0]:
            return [around.operands[number], _yielded(after)[number]]
        return [_yielded(before)[1 + number]]
    return []


def _yielded(region: Any) -> list[Any]:
    """The values that become results, or elements of them."""
    body = region.blocks[0].operations
    return list(body[len(body) - 1].operands)


def _is_reduced(around: Any) -> bool:
    """Whether an operation reduces its operands."""
    if around.name != "linalg.generic":
        return False
    return any("reduction" in str(kind) for kind in around.attributes["iterator_types"])
