"""The place of the largest or smallest element: two plain reductions instead of one of pairs.

The body of a reduction of (value, index) pairs is classified by evaluating it. Bodies of
comparisons, selections and logic alone depend on nothing but the order of what they compare, so
that a few numbers stand for all.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

from polyblocks.mlir import ir
from polyblocks.stablehlo import code
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.element import Element
from polyblocks.stablehlo.elementwise import direction
from polyblocks.stablehlo.lowering import Lowering

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt,
    "LE": operator.le, "GT": operator.gt, "GE": operator.ge,
}  # fmt: skip

_LOGIC: dict[str, Callable[..., Any]] = {
    "stablehlo.and": lambda x, y: x and y,
    "stablehlo.or": lambda x, y: x or y,
    "stablehlo.xor": lambda x, y: x != y,
    "stablehlo.not": lambda x: not x,
    "stablehlo.select": lambda condition, x, y: x if condition else y,
}


def arg_extremum(
    lowering: Lowering, op: Any, inputs: list[Array], inits: list[Array], dims: list[int]
) -> list[Array] | None:
    """The results of such a reduction; None if it is another one."""
    if len(inputs) != 2 or len(dims) != 1 or inits[1].number != 0:
        return None
    values, places = inputs
    kind, index = values.element, places.element
    (dim,) = dims
    if places.iota != dim or not index.is_integer or values.shape[dim] - 1 > index.highest:
        return None
    if not (kind.is_float or kind.is_integer):
        return None
    for largest in (True, False):
        if inits[0].splat == _neutral(kind, largest) and _decides(op.regions[0], kind, largest):
            return _two_reductions(lowering, values, index, dim, largest)
    return None


def _neutral(kind: Element, largest: bool) -> Any:
    """The neutral element: no number is on its far side."""
    if kind.is_float:
        return -math.inf if largest else math.inf
    return kind.lowest if largest else kind.highest


def _decides(region: Any, kind: Element, largest: bool) -> bool:
    """Whether a body takes the pair with the extremum, NaN first, of equal ones the first."""
    numbers = [-1.0, 0.0, 1.0, math.nan] if kind.is_float else [1, 2, 3]
    for x, y in itertools.product(numbers, numbers):
        got = _evaluate(region, [x, 3, y, 4])
        if got is None:
            return False
        stays = math.isnan(x) or not math.isnan(y) and (x >= y if largest else x <= y)
        want = (x, 3) if stays else (y, 4)
        if got[1] != want[1] or not (got[0] == want[0] or math.isnan(got[0] + want[0])):
            return False
    return True


def _evaluate(region: Any, values: list[Any]) -> list[Any] | None:
    """Evaluate a region on two pairs, given as value, index, value, index; None if unknown."""
    (block,) = region.blocks
    known = dict(zip(block.arguments, values, strict=True))
    for view in block.operations:
        op = view.operation
        if any(v not in known for v in op.operands):
            return None
        operands = [known[v] for v in op.operands]
        if op.name == "stablehlo.return":
            return operands
        total = "TOTALORDER" in str(op.attributes.get("compare_type", ""))
        if op.name == "stablehlo.compare" and not total:
            known[op.results[0]] = _COMPARISONS[direction(op)](*operands)
        elif op.name in _LOGIC and all(
            isinstance(v, bool) or op.name == "stablehlo.select" for v in operands
        ):
            known[op.results[0]] = _LOGIC[op.name](*operands)
        else:
            return None
    return None


def _two_reductions(
    lowering: Lowering, x: Array, index: Element, dim: int, largest: bool
) -> list[Array]:
    """The extremum; then the first place where it is."""
    kind, rank = x.element, x.rank
    every = list(range(rank))
    kept = [d for d in every if d != dim]
    shape = tuple(x.shape[d] for d in kept)
    kinds = ["reduction" if d == dim else "parallel" for d in every]
    name = "max" if largest else "min"
    suffix = "imumf" if kind.is_float else "ui" if kind.is_unsigned else "si"

    def extremum(loaded: list[Any]) -> list[Any]:
        return [code.emit(f"arith.{name}{suffix}", [loaded[1], loaded[0]])]

    source = lowering.operand(x, every)
    start = lowering.filled(shape, kind, _neutral(kind, largest)), kept
    (best,) = lowering.loops(kinds, [source], [start], extremum, x.shape)

    def first(loaded: list[Any]) -> list[Any]:
        element, most, place = loaded
        if kind.is_float:
            chosen = code.compare_float("oeq", element, most)
            chosen = code.either(chosen, code.is_nan(element))
        else:
            chosen = code.compare_int("eq", element, most)
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
        here = code.emit("linalg.index", [], ir.IndexType.get(), dim=number)
        here = code.emit("arith.index_cast", [here], index.type)
        far = code.constant(index, index.highest)
        least = "arith.minui" if index.is_unsigned else "arith.minsi"
        return [code.emit(least, [place, code.select(chosen, here, far)])]

    nowhere = lowering.filled(shape, index, index.highest), kept
    (where,) = lowering.loops(kinds, [source, (best, kept)], [nowhere], first, x.shape)
    return [Array(shape, kind, best), Array(shape, index, where)]
