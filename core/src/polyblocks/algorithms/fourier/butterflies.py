"""Transforms of a few numbers as straight-line code.

Written once for any arithmetic: MLIR's scalars, or Python's numbers in tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from polyblocks.algorithms.fourier.roots import root

#: Real and imaginary part; None stands for an imaginary part of zero.
Number = tuple[Any, Any]

#: Radices with code of their own, or made of two others.
COMPOSITE = {6: (2, 3), 8: (2, 4), 9: (3, 3), 10: (2, 5), 16: (4, 4)}


class Arithmetic(Protocol):
    """Operations on real scalars of one type."""

    def add(self, x: Any, y: Any) -> Any:
        """The sum."""

    def sub(self, x: Any, y: Any) -> Any:
        """The difference."""

    def mul(self, x: Any, y: Any) -> Any:
        """The product."""

    def neg(self, x: Any) -> Any:
        """The negative."""

    def number(self, value: float) -> Any:
        """A constant."""


def butterfly(a: Arithmetic, x: Sequence[Number], sign: int) -> list[Number]:
    """``sum(x[j] exp(sign 2 pi i j k / r))`` for every k below r, the number of terms."""
    r = len(x)
    if r == 1:
        return list(x)
    if r == 2:
        return [add(a, x[0], x[1]), subtract(a, x[0], x[1])]
    if r == 4:
        return _four(a, x, sign)
    if r in COMPOSITE:
        return _composite(a, x, sign, *COMPOSITE[r])
    return _odd(a, x, sign)


def add(a: Arithmetic, x: Number, y: Number) -> Number:
    """The sum of two complex numbers."""
    if x[1] is None or y[1] is None:
        return a.add(x[0], y[0]), y[1] if x[1] is None else x[1]
    return a.add(x[0], y[0]), a.add(x[1], y[1])


def subtract(a: Arithmetic, x: Number, y: Number) -> Number:
    """The difference of two complex numbers."""
    re = a.sub(x[0], y[0])
    if y[1] is None:
        return re, x[1]
    return re, a.neg(y[1]) if x[1] is None else a.sub(x[1], y[1])


def multiply(a: Arithmetic, x: Number, y: Number) -> Number:
    """The product of two complex numbers."""
    if x[1] is None:
        x, y = y, x
    if y[1] is None:
        return a.mul(x[0], y[0]), None if x[1] is None else a.mul(x[1], y[0])
    re = a.sub(a.mul(x[0], y[0]), a.mul(x[1], y[1]))
    return re, a.add(a.mul(x[0], y[1]), a.mul(x[1], y[0]))


def turned(a: Arithmetic, x: Number, k: int, n: int) -> Number:
    """``x exp(2 pi i k / n)``, for constants k and n."""
    k %= n
    if k == 0:
        return x
    re, im = x
    if 2 * k == n:
        return a.neg(re), None if im is None else a.neg(im)
    if 4 * k in (n, 3 * n):
        # By i, or by -i.
        up = 4 * k == n
        zero = a.number(0.0) if im is None else None
        if up:
            return (zero if im is None else a.neg(im)), re
        return (zero if im is None else im), a.neg(re)
    if 8 * k % n == 0 and im is not None:
        # An odd number of eighths: one factor for both parts.
        half = a.number(root(1, 8)[0])
        eighth = 8 * k // n
        total, difference = a.mul(a.add(re, im), half), a.mul(a.sub(re, im), half)
        if eighth == 1:
            return difference, total
        if eighth == 7:
            return total, a.neg(difference)
        if eighth == 3:
            return a.neg(total), difference
        return a.neg(difference), a.neg(total)
    c, s = root(k, n)
    return multiply(a, x, (a.number(c), a.number(s)))


def _four(a: Arithmetic, x: Sequence[Number], sign: int) -> list[Number]:
    even, odd = add(a, x[0], x[2]), subtract(a, x[0], x[2])
    total, difference = add(a, x[1], x[3]), subtract(a, x[1], x[3])
    plus, minus = _plus_i(a, odd, difference), _minus_i(a, odd, difference)
    if sign < 0:
        plus, minus = minus, plus
    return [add(a, even, total), plus, subtract(a, even, total), minus]


def _plus_i(a: Arithmetic, x: Number, y: Number) -> Number:
    """``x + i y``."""
    re = x[0] if y[1] is None else a.sub(x[0], y[1])
    return re, y[0] if x[1] is None else a.add(x[1], y[0])


def _minus_i(a: Arithmetic, x: Number, y: Number) -> Number:
    """``x - i y``."""
    re = x[0] if y[1] is None else a.add(x[0], y[1])
    return re, a.neg(y[0]) if x[1] is None else a.sub(x[1], y[0])


def _composite(
    a: Arithmetic, x: Sequence[Number], sign: int, outer: int, inner: int
) -> list[Number]:
    """``r = outer * inner``: first transforms of every ``inner``-th number."""
    r = len(x)
    rows = [butterfly(a, [x[inner * j + i] for j in range(outer)], sign) for i in range(inner)]
    results: list[Number] = [(None, None)] * r
    for k in range(outer):
        column = [turned(a, rows[i][k], sign * i * k, r) for i in range(inner)]
        for q, value in enumerate(butterfly(a, column, sign)):
            results[k + outer * q] = value
    return results


def _odd(a: Arithmetic, x: Sequence[Number], sign: int) -> list[Number]:
    """Of an odd number of terms: those of j and r - j have the same cosine, and opposite sines."""
    r = len(x)
    half = range(1, (r + 1) // 2)
    sums = [add(a, x[j], x[r - j]) for j in half]
    differences = [subtract(a, x[j], x[r - j]) for j in half]
    total = x[0]
    for value in sums:
        total = add(a, total, value)
    results = [total] * r
    for k in half:
        even, odd = x[0], None
        for j, plus, minus in zip(half, sums, differences, strict=True):
            c, s = root(j * k, r)
            even = add(a, even, multiply(a, plus, (a.number(c), None)))
            term = multiply(a, minus, (a.number(sign * s), None))
            odd = term if odd is None else add(a, odd, term)
        assert odd is not None
        results[k], results[r - k] = _plus_i(a, even, odd), _minus_i(a, even, odd)
    return results
