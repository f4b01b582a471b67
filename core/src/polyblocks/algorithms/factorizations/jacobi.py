"""Jacobi's methods: eigenvalues of symmetric matrices, and singular values, by rotations.

Every pair of rows is rotated in turn, so that an element off the diagonal, or the product of two
rows, becomes zero; a sweep does this for all pairs. Sweeps converge quadratically, so that their
number can be fixed.

Golub and Van Loan, Matrix Computations, 4th edition, 8.5 and 8.6.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.element import dtype_of
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Part


def _sweeps(n: int, element: Any) -> int:
    """Sweeps after which nothing changes but by rounding.

    Measured on matrices of random elements and of clustered eigenvalues.
    """
    if n <= 2:
        return 1 if n < 2 else 2
    more = 3 if dtype_of(element).bits == 64 else 0
    return 4 + more + math.ceil(math.log2(n) * 0.75)


def _rounding(element: Any) -> float:
    """Half of the distance from one to the next number."""
    return 2.0 ** -dtype_of(element).precision


def symmetric_eigen(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that find eigenvalues and eigenvectors.

    Args:
        code: where to write.
        inputs: A, [batch, n, n]; its part above the diagonal is not used.
        outputs: eigenvalues in ascending order, [batch, n]; the eigenvector of each as a row,
            [batch, n, n].
    """
    batch, n, _ = inputs[0].shape
    with code.loop(batch) as b:
        a, values, vectors = (Part(each, (b,)) for each in (*inputs, *outputs))
        rows = code.array((n, n), a.element, batch, b)
        turned = code.array((n, n), a.element, batch, b)
        with code.loop(n) as i, code.loop(n, upper=i + 1) as j:
            x = code.load(a, i, j)
            code.store(x, rows, i, j)
            code.store(x, rows, j, i)
        _identity(code, turned)
        # An element that is small beside all others is as good as zero: rotations would add errors.
        small = code.array((1,), a.element, batch, b)
        code.fill(0.0, small, 0)
        with code.loop(n) as i, code.loop(n) as j:
            size = code.magnitude(code.load(rows, i, j))
            code.store(code.maximum(size, code.load(small, 0)), small, 0)
        rounding = code.constant(_rounding(a.element), a.element)
        code.store(code.multiply(code.load(small, 0), rounding), small, 0)
        with code.loop(_sweeps(n, a.element)), code.loop(n) as p, code.loop(n, lower=p + 1) as q:
            _annihilate(code, rows, turned, p, q, small)
        places = code.array((n,), integer(32), batch, b)
        _ranks(code, lambda i: code.load(rows, i, i), n, places)
        with code.loop(n) as i:
            place = code.place(code.load(places, i))
            code.store_at(code.load(rows, i, i), values, place)
            with code.loop(n) as j:
                code.store_at(code.load(turned, i, j), vectors, place, j)


def _annihilate(code: Code, rows: Part, turned: Part, p: Expr, q: Expr, small: Part) -> None:
    """Rotate rows and columns ``p`` and ``q`` so that the element that they share is zero."""
    n = rows.shape[0]
    first, second, shared = (code.load(rows, *at) for at in ((p, p), (q, q), (p, q)))
    matters = code.greater(code.magnitude(shared), code.load(small, 0))
    shared = code.select(matters, shared, code.like(0.0, shared))
    turn = _rotation(code, first, second, shared)
    _rotate(code, rows, p, q, turn)
    with code.loop(n) as i:
        x, y = _rotated(code, code.load(rows, i, p), code.load(rows, i, q), turn)
        code.store(x, rows, i, p)
        code.store(y, rows, i, q)
    for place, value in zip((p, q), turn.diagonal, strict=True):
        code.store(value, rows, place, place)
    code.fill(0.0, rows, p, q)
    code.fill(0.0, rows, q, p)
    _rotate(code, turned, p, q, turn)


@dataclass(frozen=True)
class _Turn:
    """A rotation, behind which two rows may change places.

    Attributes:
        sine: of the angle.
        half: the tangent of half of the angle.
        swaps: whether they do.
        diagonal: what is on the diagonal then, the larger number first.
    """

    sine: Value
    half: Value
    swaps: Value
    diagonal: tuple[Value, Value]


def _rotation(code: Code, first: Value, second: Value, shared: Value) -> _Turn:
    """The smaller angle that makes a symmetric 2x2 matrix diagonal.

    Rows are kept in descending order: rows of equal eigenvalues are neighbours then, without which
    convergence is not quadratic.
    """
    none = code.equal_zero(shared)
    one, zero = code.like(1.0, shared), code.like(0.0, shared)
    twice = code.select(none, one, code.add(shared, shared))
    slope = code.divide(code.subtract(second, first), twice)
    root = code.sqrt(code.add(code.multiply(slope, slope), one))
    size = code.reciprocal(code.add(code.magnitude(slope), root))
    tangent = code.select(none, zero, code.with_sign_of(size, slope))
    cosine = code.reciprocal(code.sqrt(code.add(code.multiply(tangent, tangent), one)))
    sine = code.multiply(tangent, cosine)
    change = code.multiply(tangent, shared)
    less, more = code.subtract(first, change), code.add(second, change)
    swaps = code.greater(more, less)
    diagonal = code.select(swaps, more, less), code.select(swaps, less, more)
    return _Turn(sine, code.divide(sine, code.add(cosine, one)), swaps, diagonal)


def _rotated(code: Code, x: Value, y: Value, turn: _Turn) -> tuple[Value, Value]:
    """``cosine x - sine y`` and ``sine x + cosine y``, or these the other way round.

    In this form (Rutishauser 1966) small angles add small errors.
    """
    less = code.multiply(turn.sine, code.add(y, code.multiply(turn.half, x)))
    more = code.multiply(turn.sine, code.subtract(x, code.multiply(turn.half, y)))
    first, second = code.subtract(x, less), code.add(y, more)
    return code.select(turn.swaps, second, first), code.select(turn.swaps, first, second)


def _rotate(code: Code, rows: Part, p: Expr, q: Expr, turn: _Turn) -> None:
    """Rotate two rows."""
    with code.loop(rows.shape[1]) as j:
        x, y = _rotated(code, code.load(rows, p, j), code.load(rows, q, j), turn)
        code.store(x, rows, p, j)
        code.store(y, rows, q, j)


def _identity(code: Code, rows: Part) -> None:
    n, m = rows.shape
    with code.loop(n) as i, code.loop(m) as j:
        code.fill(0.0, rows, i, j)
    with code.loop(min(n, m)) as i:
        code.fill(1.0, rows, i, i)


def _ranks(
    code: Code, key: Callable[[Expr], Value], n: int, places: Part, descending: bool = False
) -> None:
    """The place of every key in their order, an int32 each."""
    with code.loop(n) as i:
        code.fill(0, places, i)
        with code.loop(n) as j:
            mine, other = key(i), key(j)
            before = code.greater(other, mine) if descending else code.greater(mine, other)
            tie = code.both(code.same_number(mine, other), code.less(j, i))
            one = code.select(
                code.either(before, tie),
                code.constant(1, integer(32)),
                code.constant(0, integer(32)),
            )
            code.store(code.sum(code.load(places, i), one), places, i)


def orthogonal_rows(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that rotate rows until they are orthogonal: one-sided Jacobi (Hestenes).

    Args:
        code: where to write.
        inputs: A, [batch, n, m], n at most m.
        outputs: lengths of the rows in descending order, [batch, n]; the rows, divided by the
            largest magnitude in A, [batch, n, m]; the product of the rotations, [batch, n, n]:
            what A has to be multiplied with from the left.
    """
    batch, n, m = inputs[0].shape
    with code.loop(batch) as b:
        a, lengths, result, turns = (Part(each, (b,)) for each in (*inputs, *outputs))
        rows = code.array((n, m), a.element, batch, b)
        turned = code.array((n, n), a.element, batch, b)
        # Squares of elements as they are could leave the type's range.
        largest = code.array((1,), a.element, batch, b)
        code.fill(0.0, largest, 0)
        with code.loop(n) as i, code.loop(m) as j:
            size = code.magnitude(code.load(a, i, j))
            code.store(code.maximum(size, code.load(largest, 0)), largest, 0)
        with code.loop(n) as i, code.loop(m) as j:
            most = code.load(largest, 0)
            lift = code.lift(most)
            divisor = code.multiply(most, lift)
            divisor = code.select(code.equal_zero(most), code.like(1.0, most), divisor)
            code.store(code.divide(code.multiply(code.load(a, i, j), lift), divisor), rows, i, j)
        _identity(code, turned)
        products = code.array((3,), a.element, batch, b)
        with code.loop(_sweeps(n, a.element)), code.loop(n) as p, code.loop(n, lower=p + 1) as q:
            _orthogonalize(code, rows, turned, p, q, products)
        squares = code.array((n,), a.element, batch, b)
        with code.loop(n) as i:
            code.fill(0.0, squares, i)
            with code.loop(m) as j:
                x = code.load(rows, i, j)
                code.add_to(code.multiply(x, x), squares, i)
        places = code.array((n,), integer(32), batch, b)
        _ranks(code, lambda i: code.load(squares, i), n, places, descending=True)
        # Lengths that are zero beside the largest one, whose squares may be inexact.
        exponent = 100 if dtype_of(a.element).bits == 32 else 900
        with code.loop(n) as i:
            place = code.place(code.load(places, i))
            square, zero = code.load(squares, i), code.constant(0.0, a.element)
            matters = code.greater(square, code.constant(2.0**-exponent, a.element))
            scale = code.load(largest, 0)
            length = code.select(matters, code.multiply(code.sqrt(square), scale), zero)
            code.store_at(length, lengths, place)
            with code.loop(m) as j:
                x = code.select(matters, code.load(rows, i, j), zero)
                code.store_at(x, result, place, j)
            with code.loop(n) as j:
                code.store_at(code.load(turned, i, j), turns, place, j)


def _orthogonalize(code: Code, rows: Part, turned: Part, p: Expr, q: Expr, products: Part) -> None:
    """Rotate two rows so that their product is zero."""
    for number in range(3):
        code.fill(0.0, products, number)
    with code.loop(rows.shape[1]) as j:
        x, y = code.load(rows, p, j), code.load(rows, q, j)
        code.add_to(code.multiply(x, x), products, 0)
        code.add_to(code.multiply(y, y), products, 1)
        code.add_to(code.multiply(x, y), products, 2)
    first, second, shared = (code.load(products, number) for number in range(3))
    rounding = code.constant(_rounding(rows.element), rows.element)
    lengths = code.multiply(code.sqrt(first), code.sqrt(second))
    matters = code.greater(code.magnitude(shared), code.multiply(lengths, rounding))
    shared = code.select(matters, shared, code.like(0.0, shared))
    turn = _rotation(code, first, second, shared)
    _rotate(code, rows, p, q, turn)
    _rotate(code, turned, p, q, turn)
