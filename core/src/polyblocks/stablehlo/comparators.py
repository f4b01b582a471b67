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


def sort_keys(region: Any) -> list[SortKey] | None:
    """The keys that a comparator compares, the most significant one first.

    Each is compared as two integers, or as two floating-point numbers in their total order, which
    are computed in the same way from the elements of one array; where they are equal, the next one
    decides: ``first < second or (first == second and ...)``.

    Returns:
        The keys; None if it compares in another way.
    """
    (block,) = region.blocks
    (result,) = block.operations[len(block.operations) - 1].operation.operands
    keys = []
    while True:
        rest = _operands(result, "stablehlo.or")
        key = _sort_key(rest[0] if rest else result)
        if key is None:
            return None
        keys.append(key)
        if not rest:
            return keys
        decided = _operands(rest[1], "stablehlo.and")
        if not decided or not _compares_equal(decided[0], rest[0]):
            return None
        result = decided[1]


def _operands(value: Any, name: str) -> list[Any]:
    """The operands of the operation that makes a value, if it has this name."""
    if isinstance(value, ir.BlockArgument) or value.owner.operation.name != name:
        return []
    return list(value.owner.operation.operands)


def _sort_key(value: Any) -> SortKey | None:
    """The key that one comparison compares."""
    operands = _operands(value, "stablehlo.compare")
    if not operands or direction(value.owner.operation) not in ("LT", "GT"):
        return None
    compare, kind = value.owner.operation, Element.of(operands[0].type)
    if not (kind.is_integer or kind.name == "i1" or (kind.is_float and is_total(compare))):
        return None
    numbers: set[int] = set()
    if not _same_expression(operands[0], operands[1], numbers) or len(numbers) != 1:
        return None
    return SortKey(numbers.pop(), operands[0], direction(compare) == "GT")


def _compares_equal(value: Any, other: Any) -> bool:
    """Whether a value says that the two numbers are equal which another comparison compares."""
    operands = _operands(value, "stablehlo.compare")
    compare = value.owner.operation if operands else None
    return (
        compare is not None
        and direction(compare) == "EQ"
        and operands == list(other.owner.operation.operands)
        and is_total(compare) == is_total(other.owner.operation)
    )


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
