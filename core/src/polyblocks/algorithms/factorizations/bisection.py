"""Eigenvalues of tridiagonal matrices and singular values of bidiagonal ones, by bisection.

How many of them are below a number is how many pivots of an elimination are negative. Every one is
looked for on its own, in a fixed number of steps: their searches are lanes of vectors.

Golub and Van Loan, Matrix Computations, 4th edition, 8.4.1; Demmel, Dhillon and Ren, On the
Correctness of Some Bisection-Like Parallel Eigenvalue Algorithms in Floating Point Arithmetic,
1995.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.affine.element import dtype_of
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Value
from polyblocks.algorithms.code import Code, Index, Part

#: Searches that are one iteration of a loop, which threads share.
_TOGETHER = 64

#: Gives the next pivot, and what makes of it what the step after it needs, from the number that is
#: tried, what the step before gave, and the number of the step.
Pivot = Callable[[Value, Value, Expr], tuple[Value, Callable[[Value], Value]]]


def bisect(
    code: Code,
    bounds: tuple[Value, Value],
    values: Part,
    first_state: Callable[[Value], Value],
    step: Pivot,
    batch: int,
    b: Index,
) -> None:
    """Write loops that find all values of a matrix of n rows, in ascending order.

    Args:
        code: where to write.
        bounds: of all values.
        values: to write to, [n].
        first_state: gives what the first step needs from the number that is tried.
        step: gives a pivot, and what makes what the next step needs from the pivot.
        batch: how many matrices there are.
        b: which of them this is.
    """
    (n,) = values.shape
    element = values.element
    width = min(n, _TOGETHER)
    blocks = -(-n // width)
    low, high = bounds
    with code.loop(blocks) as block:
        start = block * width
        end = start * -1 + n if n % width else Expr(width)

        def array() -> Part:
            return code.array((width,), element, batch * blocks, block + Expr.of(b) * blocks)

        lows, highs, tried, states, counts = (array() for _ in range(5))
        with code.loop(width, upper=end) as k:
            code.store(low, lows, k)
            code.store(high, highs, k)
        # One bit of the result in each step, and one more.
        with code.loop(dtype_of(element).precision + 2):
            with code.loop(width, upper=end) as k:
                middle = _middle(code, lows, highs, k)
                code.store(middle, tried, k)
                code.store(first_state(middle), states, k)
                code.fill(0.0, counts, k)
            with code.loop(n) as i, code.loop(width, upper=end) as k:
                number = code.load(tried, k)
                pivot, following = step(number, code.load(states, k), i)
                pivot = _nonzero(code, pivot)
                negative = code.greater(code.like(0.0, pivot), pivot)
                one = code.select(negative, code.like(1.0, pivot), code.like(0.0, pivot))
                code.add_to(one, counts, k)
                code.store(following(pivot), states, k)
            with code.loop(width, upper=end) as k:
                middle = code.load(tried, k)
                below = code.greater(code.load(counts, k), code.real(start + k, element))
                code.store(code.select(below, code.load(lows, k), middle), lows, k)
                code.store(code.select(below, middle, code.load(highs, k)), highs, k)
        with code.loop(width, upper=end) as k:
            code.store(_middle(code, lows, highs, k), values, start + k)


def _middle(code: Code, lows: Part, highs: Part, k: Expr) -> Value:
    total = code.add(code.load(lows, k), code.load(highs, k))
    return code.multiply(total, code.like(0.5, total))


def _nonzero(code: Code, pivot: Value) -> Value:
    """A pivot, or a tiny negative number for a smaller one: what is divided by it is finite."""
    least = code.like(_negligible(pivot.type), pivot)
    return code.select(code.greater(least, code.magnitude(pivot)), code.negate(least), pivot)


def _negligible(element: Any) -> float:
    """Nothing beside a matrix whose largest element is one."""
    return 2.0 ** (-60 if dtype_of(element).bits == 32 else -400)
