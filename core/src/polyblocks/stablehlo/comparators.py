"""Comparators of sorts that compare one key: which key, and which way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from polyblocks.mlir import ir
from polyblocks.stablehlo.element import Element
from polyblocks.stablehlo.elementwise import direction, is_total


@dataclass(frozen=True)
class SortKey:
    """The key of a sort.

    Attributes:
        operand: the array that it is computed of.
        value: the key of the first of two elements, in the comparator.
        descending: whether elements with large keys come first.
    """

    operand: int
    value: Any
    descending: bool


def sort_key(region: Any) -> SortKey | None:
    """The key that a comparator compares; None if it compares in another way.

    It is one comparison of two integers, or of two floating-point numbers in their total order,
    which are computed in the same way from the elements of one array.
    """
    (block,) = region.blocks
    (result,) = block.operations[len(block.operations) - 1].operation.operands
    if isinstance(result, ir.BlockArgument) or result.owner.operation.name != "stablehlo.compare":
        return None
    compare = result.owner.operation
    kind = Element.of(compare.operands[0].type)
    ordered = kind.is_integer or kind.name == "i1" or (kind.is_float and is_total(compare))
    if not ordered or direction(compare) not in ("LT", "GT"):
        return None
    numbers: set[int] = set()
    first, second = compare.operands
    if not _same_expression(first, second, numbers) or len(numbers) != 1:
        return None
    return SortKey(numbers.pop(), first, direction(compare) == "GT")


def compares_numbers(value: Any) -> bool:
    """Whether the key of a comparator in the total order makes zeros equal, and all NaN.

    JAX takes zero for each of the two zeros and one NaN, with no sign, for each NaN.
    """
    seen = set()
    while not isinstance(value, ir.BlockArgument):
        if value.owner.operation.name != "stablehlo.select":
            return False
        condition, constant, value = value.owner.operation.operands
        test = None if isinstance(condition, ir.BlockArgument) else condition.owner.operation
        number = _number(constant)
        if test is None or test.name != "stablehlo.compare" or number is None:
            return False
        x, other = test.operands
        if not isinstance(x, ir.BlockArgument):
            return False
        zero = number == 0 and math.copysign(1, number) > 0
        if direction(test) == "EQ" and _number(other) == 0 and zero:
            seen.add("zero")
        elif direction(test) == "NE" and other == x and math.isnan(number):
            seen.add("nan")
        else:
            return False
    return seen == {"zero", "nan"}


def _number(value: Any) -> float | None:
    """The number that a value always is; None if it is not a constant."""
    if isinstance(value, ir.BlockArgument) or value.owner.operation.name != "stablehlo.constant":
        return None
    number: float = ir.FloatAttr(
        ir.DenseElementsAttr(value.owner.operation.attributes["value"]).get_splat_value()
    ).value
    return number


def _same_expression(first: Any, second: Any, numbers: set[int]) -> bool:
    """Whether two values are the same of the elements that are compared.

    Args:
        first, second: of the first and of the second element of an array.
        numbers: takes the numbers of the arrays.
    """
    if isinstance(first, ir.BlockArgument) or isinstance(second, ir.BlockArgument):
        if not isinstance(first, ir.BlockArgument) or not isinstance(second, ir.BlockArgument):
            return False
        numbers.add(first.arg_number // 2)
        return first.arg_number % 2 == 0 and second.arg_number == first.arg_number + 1
    one, other = first.owner.operation, second.owner.operation
    return (
        one.name == other.name
        and _attributes(one) == _attributes(other)
        and first.type == second.type
        and not len(one.regions)
        and len(one.results) == len(other.results) == 1
        and len(one.operands) == len(other.operands)
        and all(
            _same_expression(a, b, numbers)
            for a, b in zip(one.operands, other.operands, strict=True)
        )
    )


def _attributes(op: Any) -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes}
