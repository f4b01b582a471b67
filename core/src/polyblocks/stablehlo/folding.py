"""Arithmetic on known integers, and on their ranges: for bounds, starts and clamps."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks.stablehlo.array import Array, Range, known_array
from polyblocks.stablehlo.element import Element
from polyblocks.stablehlo.elementwise import direction

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt,
    "LE": operator.le, "GT": operator.gt, "GE": operator.ge,
}  # fmt: skip


def _quotient(x: int, y: int) -> int:
    """Towards zero; by zero it is -1, as XLA has it."""
    if y == 0:
        return -1
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _remainder(x: int, y: int) -> int:
    """With the sign of the dividend, which it is itself for a divisor of zero."""
    return x if y == 0 else x - y * _quotient(x, y)


_INTEGERS: dict[str, Callable[..., Any]] = {
    "stablehlo.add": operator.add,
    "stablehlo.subtract": operator.sub,
    "stablehlo.multiply": operator.mul,
    "stablehlo.divide": _quotient,
    "stablehlo.remainder": _remainder,
    "stablehlo.maximum": max,
    "stablehlo.minimum": min,
    "stablehlo.clamp": lambda low, x, high: min(max(low, x), high),
    "stablehlo.select": lambda condition, x, y: x if condition else y,
    "stablehlo.and": operator.and_,
    "stablehlo.or": operator.or_,
    "stablehlo.xor": operator.xor,
    "stablehlo.not": operator.invert,
    "stablehlo.negate": operator.neg,
    "stablehlo.convert": lambda x: x,
}

_BOOLEANS: dict[str, Callable[..., Any]] = {
    "stablehlo.add": operator.or_,
    "stablehlo.multiply": operator.and_,
    "stablehlo.not": operator.not_,
    "stablehlo.convert": bool,
}


def fold(op: Any, arguments: list[Array], element: Element) -> Array | None:
    """The result if it is known: of few known integers, or decided by their ranges."""
    if op.name == "stablehlo.select":
        condition = arguments[0].splat
        if condition is not None:
            return arguments[1] if condition else arguments[2]
    if op.name == "stablehlo.convert" and arguments[0].element == element:
        return arguments[0]
    if not (element.is_integer or element.is_bool):
        return _splat_convert(op, arguments, element)
    known = [a.known for a in arguments]
    if any(k is None for k in known):
        return _by_ranges(op, arguments)
    if any(a.element.is_float or a.element.is_complex for a in arguments):
        return None
    compute = _computation(op, element)
    if compute is None:
        return None
    shape = max((k.shape for k in known if k is not None), key=len)
    spread = [np.broadcast_to(k, shape) for k in known if k is not None]
    values = np.frompyfunc(compute, len(spread), 1)(*spread)
    return known_array(element, values)


def _computation(op: Any, element: Element) -> Callable[..., Any] | None:
    """An operation as a function of Python's integers; None if it is not folded."""
    if op.name == "stablehlo.compare":
        return _COMPARISONS[direction(op)]
    if element.is_bool and op.name in _BOOLEANS:
        return _BOOLEANS[op.name]
    return _INTEGERS.get(op.name)


def _splat_convert(op: Any, arguments: list[Array], element: Element) -> Array | None:
    """A converted constant is a constant; only what is exact is computed here."""
    if op.name != "stablehlo.convert" or not element.is_float:
        return None
    (x,) = arguments
    exact = isinstance(x.splat, (int, bool)) and abs(int(x.splat)) <= 256
    return Array(x.shape, element, splat=float(x.splat)) if exact else None


def _by_ranges(op: Any, arguments: list[Array]) -> Array | None:
    """A comparison of integers of rank 0 that their ranges decide; others are not known."""
    if op.name != "stablehlo.compare" or arguments[0].element.is_bool:
        return None
    ranges = [a.bounds for a in arguments]
    if ranges[0] is None or ranges[1] is None:
        return None
    (low, high), (low2, high2) = ranges[0], ranges[1]
    verdict = {
        "LT": (high < low2, low >= high2),
        "LE": (high <= low2, low > high2),
        "GT": (low > high2, high <= low2),
        "GE": (low >= high2, high < low2),
        "EQ": (low == high == low2 == high2, high < low2 or low > high2),
        "NE": (high < low2 or low > high2, low == high == low2 == high2),
    }[direction(op)]
    if not any(verdict):
        return None
    return Array((), Element("i1"), splat=verdict[0])


def range_of(op: Any, arguments: list[Array], element: Element) -> Range | None:
    """The range of a result of rank 0, None if it may be anything."""
    if not element.is_integer:
        return None
    ranges = [a.bounds for a in arguments]
    found: Range | None = None
    if op.name == "stablehlo.select" and ranges[1] is not None and ranges[2] is not None:
        found = min(ranges[1][0], ranges[2][0]), max(ranges[1][1], ranges[2][1])
    elif all(r is not None for r in ranges):
        known = [r for r in ranges if r is not None]
        if op.name == "stablehlo.add":
            found = known[0][0] + known[1][0], known[0][1] + known[1][1]
        elif op.name == "stablehlo.subtract":
            found = known[0][0] - known[1][1], known[0][1] - known[1][0]
        elif op.name == "stablehlo.multiply":
            products = [x * y for x in known[0] for y in known[1]]
            found = min(products), max(products)
        elif op.name == "stablehlo.convert":
            found = known[0]
        elif op.name == "stablehlo.maximum":
            found = max(known[0][0], known[1][0]), max(known[0][1], known[1][1])
        elif op.name == "stablehlo.minimum":
            found = min(known[0][0], known[1][0]), min(known[0][1], known[1][1])
    fits = found is not None and element.lowest <= found[0] and found[1] <= element.highest
    return found if fits else None
