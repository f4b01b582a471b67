"""Functions of one number that are straight but for a few steps, as affine expressions.

A row that is held at its ends, ``max(0, min(i - 1, n - 1))``, is ``i - 1`` with a step of one up
at its beginning and one down at its end. ``(i + n - t) floordiv n`` is 0 for ``i < t`` and 1 from
there on, for ``i`` from 0 to ``n - 1``. Rows that grow by a half are ``(2 * i + 1) floordiv 3``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from polyblocks.affine.access import stride_along
from polyblocks.affine.expr import Atom, Div, Expr, Var
from polyblocks.affine.model import AffineAccess

#: Elements between which a function counts on by 1, at most.
PERIODS = 8
#: Steps of a function, at most, and elements for each of them, at least.
STEPS = 8
PER_STEP = 4
#: Values of a variable that are all tried.
LONGEST = 1 << 16


@dataclass(frozen=True)
class StepFunction:
    """``slope * ((rise * i + shift) floordiv period) + first``, and a height from each step on.

    Attributes:
        extent: numbers ``i``, from 0 on, that it is of.
        rise: by how many ``period`` numbers further it has grown, if ``slope`` is one.
        steps: pairs of the first number after a step, and by how much it is higher from there on.
    """

    extent: int
    slope: int
    period: int
    shift: int
    first: int
    steps: tuple[tuple[int, int], ...]
    rise: int = 1

    @classmethod
    def of(cls, values: Sequence[int] | np.ndarray) -> StepFunction | None:
        """The function with these values; None if it needs too many breakpoints."""
        numbers = np.asarray(values, dtype=np.int64)
        extent = len(numbers)
        if extent < 2:
            return None
        heights = np.diff(numbers)
        ones = int(np.count_nonzero(heights == 1))
        best: StepFunction | None = None
        for period in range(1, min(PERIODS, extent) + 1):
            slope = _most_common(heights) if period == 1 else 1
            for shift in range(period):
                # Where the quotient increases by one; any other change is a breakpoint.
                counted = (extent - 1 + shift) // period
                if period > 1 and abs(ones - counted) > STEPS:
                    continue
                rest = heights - slope if period == 1 else heights.copy()
                if period > 1:
                    rest[period - 1 - shift :: period] -= 1
                (at,) = np.nonzero(rest)
                if len(at) > STEPS or len(at) * PER_STEP > extent:
                    continue
                if best is not None and len(at) >= len(best.steps):
                    continue
                steps = tuple((int(t) + 1, int(rest[t])) for t in at)
                best = cls(extent, slope, period, shift, int(numbers[0]), steps)
        return best or cls._of_fraction(numbers, heights)

    @classmethod
    def _of_fraction(cls, numbers: np.ndarray, heights: np.ndarray) -> StepFunction | None:
        """The same for values that grow by a fraction whose numerator is not one."""
        extent = len(numbers)
        # Ends may be held; between them the slope is known to about two over the distance.
        low, high = extent // 4, extent - 1 - extent // 4
        grown = int(numbers[high] - numbers[low])
        best: StepFunction | None = None
        for period in range(2, min(PERIODS, extent) + 1):
            rise = round(grown * period / max(high - low, 1))
            if rise < 2 or gcd(rise, period) > 1:
                continue
            if abs(grown * period - rise * (high - low)) > (STEPS + 2) * period:
                continue
            for shift in range(period):
                rest = heights - np.diff((np.arange(extent) * rise + shift) // period)
                (at,) = np.nonzero(rest)
                if len(at) > STEPS or len(at) * PER_STEP > extent:
                    continue
                if best is not None and len(at) >= len(best.steps):
                    continue
                steps = tuple((int(t) + 1, int(rest[t])) for t in at)
                best = cls(extent, 1, period, shift, int(numbers[0]), steps, rise)
        return best

    def at(self, place: Expr) -> Expr:
        """Its value at a place."""
        counted = (place * self.rise + self.shift) // self.period
        result = counted * self.slope + self.first
        for begin, height in self.steps:
            result = result + ((place + (self.extent - begin)) // self.extent) * height
        return result


def _most_common(differences: np.ndarray) -> int:
    values, counts = np.unique(differences, return_counts=True)
    return int(values[np.argmax(counts)])


def is_step(atom: Atom) -> bool:
    """Whether it is a quotient of few values."""
    if not isinstance(atom, Div):
        return False
    low, high = atom.dividend.range()
    return high // atom.divisor - low // atom.divisor <= 2


def without_steps(expr: Expr) -> Expr:
    """An expression without the steps in it."""
    if all(isinstance(a, Var) for a, _ in expr.terms):
        return expr
    return Expr(expr.const, {a: c for a, c in expr.terms if isinstance(a, Var) or not is_step(a)})


def stride_between_steps(access: AffineAccess, var: Var) -> int | None:
    """Elements from one iteration to the next, but for those in which a place jumps."""
    return stride_along(access.buffer, [without_steps(e) for e in access.index], var)


def exact_range(expr: Expr) -> tuple[int, int]:
    """Smallest and largest value, exact where it is of one variable and has quotients."""
    found = expr.range()
    variables = set(expr.variables())
    if len(variables) != 1 or all(isinstance(atom, Var) for atom, _ in expr.terms):
        return found
    (var,) = variables
    if var.extent > LONGEST:
        return found
    values = _evaluate(expr, np.arange(var.extent))
    return int(values.min()), int(values.max())


def _evaluate(expr: Expr, numbers: np.ndarray) -> np.ndarray:
    """The values of an expression of one variable for these values of it."""
    total = np.full(len(numbers), expr.const)
    for atom, factor in expr.terms:
        if isinstance(atom, Var):
            part = numbers
        elif isinstance(atom, Div):
            part = _evaluate(atom.dividend, numbers) // atom.divisor
        else:
            part = _evaluate(atom.dividend, numbers) % atom.divisor
        total = total + factor * part
    return total
