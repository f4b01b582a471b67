"""Ranges of integer SSA values, from the operations that compute them."""

from __future__ import annotations

from typing import Any

from polyblocks.mlir import ir

Range = tuple[int, int]

#: How many operations to look through.
DEPTH = 8
_SAME = {"arith.index_cast", "arith.extsi"}


def range_of(value: Any, depth: int = DEPTH) -> Range | None:
    """Least and greatest value of a signed integer; None if it may be anything."""
    if depth == 0:
        return None
    if isinstance(value, ir.BlockArgument):
        return _of_variable(value)
    op = value.owner.operation
    name, operands = op.name, op.operands
    if name == "arith.constant":
        attribute = op.attributes["value"]
        if not isinstance(attribute, ir.IntegerAttr):
            return None
        number = ir.IntegerAttr(attribute).value
        return number, number
    if name in _SAME:
        # Of an index nothing is lost where it is narrower than 64 bits: it was cast from as few.
        return range_of(operands[0], depth - 1)
    if name in ("arith.extui", "arith.index_castui"):
        # Reads the sign as one more bit.
        found = range_of(operands[0], depth - 1)
        return found if found is not None and found[0] >= 0 else None
    if name in ("arith.minsi", "arith.maxsi"):
        sides = [range_of(v, depth - 1) for v in operands]
        return _extremum(sides, low=name == "arith.minsi")
    if name in ("arith.minui", "arith.andi"):
        # The result is at most whichever side is known, read without a sign.
        tops = [r[1] for r in (range_of(v, depth - 1) for v in operands) if r and r[0] >= 0]
        return (0, min(tops)) if tops else None
    if name in ("arith.ori", "arith.xori"):
        sides = [range_of(v, depth - 1) for v in operands]
        if any(side is None or side[0] < 0 for side in sides):
            return None
        return 0, (1 << max(side[1] for side in sides if side).bit_length()) - 1
    if name in ("arith.addi", "arith.select"):
        sides = [range_of(v, depth - 1) for v in list(operands)[-2:]]
        if sides[0] is None or sides[1] is None:
            return None
        if name == "arith.select":
            return min(sides[0][0], sides[1][0]), max(sides[0][1], sides[1][1])
        return _fitting((sides[0][0] + sides[1][0], sides[0][1] + sides[1][1]), value.type)
    return None


def _extremum(sides: list[Range | None], low: bool) -> Range | None:
    """The range of the smaller or larger of two numbers; one side alone bounds it on one end."""
    first, second = sides
    if first is None or second is None:
        known = first or second
        if known is None:
            return None
        # The other end is anything; wide enough that no sum of it fits a type.
        return (-(1 << 63), known[1]) if low else (known[0], (1 << 63) - 1)
    choose = min if low else max
    return choose(first[0], second[0]), choose(first[1], second[1])


def _fitting(found: Range, kind: Any) -> Range | None:
    """None where the sum could have wrapped around."""
    width = kind.width if isinstance(kind, ir.IntegerType) else 64
    limit = 1 << (width - 1)
    return found if -limit <= found[0] and found[1] < limit else None


def _of_variable(value: Any) -> Range | None:
    """The range of a loop's variable whose bounds are numbers."""
    op = value.owner.owner.operation
    if op.name != "affine.for" or value.arg_number != 0:
        return None
    bounds = []
    for key in ("lowerBoundMap", "upperBoundMap"):
        results = ir.AffineMapAttr(op.attributes[key]).value.results
        if len(results) != 1 or not isinstance(results[0], ir.AffineConstantExpr):
            return None
        bounds.append(int(results[0].value))
    return (bounds[0], bounds[1] - 1) if bounds[0] < bounds[1] else None
