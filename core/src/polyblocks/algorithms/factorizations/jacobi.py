"""Jacobi's methods: eigenvalues of symmetric matrices, and singular values, by rotations.

Every pair of rows is rotated in turn, so that an element off the diagonal, or the product of two
rows, becomes zero; a sweep does this for all pairs. Sweeps converge quadratically, so that their
number can be fixed.

Golub and Van Loan, Matrix Computations, 4th edition, 8.5 and 8.6.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.element import dtype_of
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Index, Part
from polyblocks.algorithms.factorizations.lu import is_small

#: Where an element of a matrix is.
_At = tuple[Index, Index]


def tiny(element: Any) -> float:
    """Squares below this one may be inexact, and are nothing beside one."""
    return 2.0 ** (-100 if dtype_of(element).bits == 32 else -900)


def rounding_of(element: Any) -> float:
    """Half of the distance from one to the next number."""
    return 2.0 ** -dtype_of(element).precision


def _sweeps(n: int, element: Any) -> int:
    """Sweeps of ``n`` rows after which nothing changes but by rounding.

    Measured on matrices of random elements and of clustered eigenvalues.
    """
    if n <= 2:
        return 1 if n < 2 else 2
    more = 3 if dtype_of(element).bits == 64 else 0
    return 4 + more + math.ceil(math.log2(n) * 0.75)


def rotate_symmetric(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that find eigenvalues and eigenvectors of very small matrices.

    Args:
        code: where to write.
        inputs: A, [batch, n, n]; its part above the diagonal is not used.
        outputs: eigenvalues in ascending order, [batch, n]; the eigenvector of each as a row,
            [batch, n, n], which can be missing.
    """
    batch, n, _ = inputs[0].shape
    with code.loop(batch) as b:
        a, values, *vectors = (Part(each, (b,)) for each in (*inputs, *outputs))
        rows = code.array((n, n), a.element, batch, b)
        turned = [code.array((n, n), a.element, batch, b) for _ in vectors]
        # Squares of elements as they are could leave the type's range.
        largest = code.array((1,), a.element, batch, b)
        code.fill(0.0, largest, 0)
        with code.loop(n) as i, code.loop(n, upper=i + 1) as j:
            code.raise_to(code.magnitude(code.load(a, i, j)), largest, 0)
        lift, factor = scale(code, code.load(largest, 0))
        with code.loop(n) as i, code.loop(n, upper=i + 1) as j:
            x = code.multiply(code.multiply(code.load(a, i, j), lift), factor)
            code.store(x, rows, i, j)
            code.store(x, rows, j, i)
        for each in turned:
            identity(code, each)
        annihilate = _annihilate_half if is_small(batch, n, n) else _annihilate
        with (
            code.loop(_sweeps(n, a.element)),
            code.loop(n) as p,
            code.loop(n, lower=p + 1) as q,
        ):
            annihilate(code, rows, turned, p, q)
        places = code.array((n,), integer(32), batch, b)
        sorted_values = code.array((n,), a.element, batch, b)
        ranks(code, lambda i: code.load(rows, i, i), n, places)
        in_order(code, places, lambda i, _: code.load(rows, i, i), sorted_values)
        with code.loop(n) as i:
            x = code.multiply(code.load(sorted_values, i), code.load(largest, 0))
            code.store(x, values, i)
        for source, to in zip(turned, vectors, strict=True):
            sorted_rows = code.array(source.shape, a.element, batch, b)
            write_in_order(code, places, source, sorted_rows, to)


def scale(code: Code, largest: Value) -> tuple[Value, Value]:
    """Two factors that make the largest magnitude of a matrix one."""
    lift = code.lift(largest)
    divisor = code.multiply(largest, lift)
    divisor = code.select(code.equal_zero(largest), code.like(1.0, largest), divisor)
    return lift, code.reciprocal(divisor)


def in_order(
    code: Code,
    places: Part,
    element: Callable[[Expr, tuple[Expr, ...]], Value],
    to: Part,
    inner: Sequence[int] = (),
) -> None:
    """Write rows to their places, going through all rows for each: no index is known late.

    Args:
        code: where to write.
        places: of the rows.
        element: what a row has at an index.
        to: the rows in order.
        inner: extents of a row.
    """
    (n,) = places.shape
    with code.loop(n) as place:
        with ExitStack() as loops:
            at = tuple(loops.enter_context(code.loop(extent)) for extent in inner)
            code.store(element(Expr(0), at), to, place, *at)
        with code.loop(n, lower=1) as i:
            here = code.same(code.load(places, i), code.number(place))
            with ExitStack() as loops:
                at = tuple(loops.enter_context(code.loop(extent)) for extent in inner)
                value = code.select(here, element(i, at), code.load(to, place, *at))
                code.store(value, to, place, *at)


def write_in_order(code: Code, places: Part, rows: Part, sorted_rows: Part, to: Part) -> None:
    """Write the first rows to their places, by way of ``sorted_rows``, an array of the iteration.

    Args:
        code: where to write.
        places: of the first rows, [n].
        rows: [n …, m].
        sorted_rows: at least [n, m].
        to: the rows in order.
    """
    (n,), m = places.shape, rows.shape[1]
    in_order(code, places, lambda i, j: code.load(rows, i, j[0]), sorted_rows, (m,))
    with code.loop(n) as i, code.loop(m) as j:
        code.copy(sorted_rows, (i, j), to, (i, j))


def _annihilate(code: Code, rows: Part, turned: list[Part], p: Expr, q: Expr) -> None:
    """Rotate rows and columns ``p`` and ``q`` so that the element that they share is zero."""
    n, _ = rows.shape
    turn = _turn(code, rows, p, q)
    _rotate(code, rows, p, q, turn)
    # But for what the two share, the columns are what the rows are.
    with code.loop(n) as i:
        code.copy(rows, (p, i), rows, (i, p))
        code.copy(rows, (q, i), rows, (i, q))
    _finish(code, rows, p, q, turn)
    code.fill(0.0, rows, p, q)
    for each in turned:
        _rotate(code, each, p, q, turn)


def _annihilate_half(code: Code, rows: Part, turned: list[Part], p: Expr, q: Expr) -> None:
    """:func:`_annihilate` of what is on and below the diagonal."""
    n, _ = rows.shape
    turn = _turn(code, rows, p, q)
    ranges: list[tuple[Index, Index, Callable[[Expr], tuple[_At, _At]]]] = [
        (0, p, lambda i: ((p, i), (q, i))),
        (p + 1, q, lambda i: ((i, p), (q, i))),
        (q + 1, n, lambda i: ((i, p), (i, q))),
    ]
    for lower, upper, places in ranges:
        with code.loop(n, lower=lower, upper=upper) as i:
            one, other = places(i)
            _rotate_two(code, rows, one, other, turn)
    _finish(code, rows, p, q, turn)
    for each in turned:
        _rotate(code, each, p, q, turn)


def _turn(code: Code, rows: Part, p: Expr, q: Expr) -> _Turn:
    """The rotation of two rows and columns of a symmetric matrix whose largest element is one."""
    first, second, shared = (code.load(rows, *at) for at in ((p, p), (q, q), (q, p)))
    # An element that is small beside all others is as good as zero: rotations would add errors.
    rounding = code.constant(rounding_of(rows.element), rows.element)
    matters = code.greater(code.magnitude(shared), rounding)
    shared = code.select(matters, shared, code.like(0.0, shared))
    difference, twice = code.subtract(second, first), code.add(shared, shared)
    squares = code.add(code.multiply(difference, difference), code.multiply(twice, twice))
    divisor = code.add(code.magnitude(difference), code.sqrt(squares))
    divisor = code.select(matters, divisor, code.like(1.0, divisor))
    tangent = code.divide(
        code.multiply(code.with_sign_of(code.like(1.0, twice), difference), twice), divisor
    )
    return _rotation(code, first, second, shared, tangent)


def _finish(code: Code, rows: Part, p: Expr, q: Expr, turn: _Turn) -> None:
    """Write what is known of the elements that two rows and columns share."""
    for place, value in zip((p, q), turn.diagonal, strict=True):
        code.store(value, rows, place, place)
    code.fill(0.0, rows, q, p)


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


def _tangent(code: Code, first: Value, second: Value, shared: Value) -> Value:
    """Of the smaller angle that makes a symmetric 2x2 matrix of any elements diagonal."""
    none = code.equal_zero(shared)
    one, zero = code.like(1.0, shared), code.like(0.0, shared)
    twice = code.select(none, one, code.add(shared, shared))
    slope = code.divide(code.subtract(second, first), twice)
    root = code.sqrt(code.add(code.multiply(slope, slope), one))
    size = code.reciprocal(code.add(code.magnitude(slope), root))
    return code.select(none, zero, code.with_sign_of(size, slope))


def _rotation(code: Code, first: Value, second: Value, shared: Value, tangent: Value) -> _Turn:
    """The rotation by an angle that makes a symmetric 2x2 matrix diagonal.

    Rows are kept in descending order: rows of equal eigenvalues are neighbours then, without which
    convergence is not quadratic.
    """
    one = code.like(1.0, tangent)
    root = code.sqrt(code.add(code.multiply(tangent, tangent), one))
    more = code.add(root, one)
    # One division for the cosine and for the tangent of half of the angle.
    inverse = code.reciprocal(code.multiply(root, more))
    sine = code.multiply(tangent, code.multiply(more, inverse))
    half = code.multiply(tangent, code.multiply(root, inverse))
    change = code.multiply(tangent, shared)
    low, high = code.subtract(first, change), code.add(second, change)
    swaps = code.greater(high, low)
    diagonal = code.select(swaps, high, low), code.select(swaps, low, high)
    return _Turn(sine, half, swaps, diagonal)


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
        _rotate_two(code, rows, (p, j), (q, j), turn)


def _rotate_two(code: Code, rows: Part, one: _At, other: _At, turn: _Turn) -> None:
    """Rotate two elements."""
    x, y = _rotated(code, code.load(rows, *one), code.load(rows, *other), turn)
    code.store(x, rows, *one)
    code.store(y, rows, *other)


def identity(code: Code, rows: Part) -> None:
    n, m = rows.shape
    with code.loop(n) as i, code.loop(m) as j:
        code.fill(0.0, rows, i, j)
    with code.loop(min(n, m)) as i:
        code.fill(1.0, rows, i, i)


def ranks(
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


def orthogonalize(code: Code, rows: Part, turned: Sequence[Part], batch: int, b: Index) -> None:
    """Rotate rows until they are orthogonal: one-sided Jacobi (Hestenes).

    Args:
        code: where to write.
        rows: of a matrix whose largest element is one, [n, m].
        turned: where the product of the rotations is written, what the matrix has to be multiplied
            with from the left, [n, n]; it can be missing.
        batch: how many matrices there are.
        b: which of them this is.
    """
    n, _ = rows.shape
    for each in turned:
        identity(code, each)
    products = code.array((3,), rows.element, batch, b)
    with (
        code.loop(_sweeps(n, rows.element)),
        code.loop(n) as p,
        code.loop(n, lower=p + 1) as q,
    ):
        _orthogonalize(code, rows, turned, p, q, products)


def _orthogonalize(
    code: Code, rows: Part, turned: Sequence[Part], p: Expr, q: Expr, products: Part
) -> None:
    """Rotate two rows so that their product is zero."""
    for number in range(3):
        code.fill(0.0, products, number)
    with code.loop(rows.shape[1]) as j:
        x, y = code.load(rows, p, j), code.load(rows, q, j)
        code.add_to(code.multiply(x, x), products, 0)
        code.add_to(code.multiply(y, y), products, 1)
        code.add_to(code.multiply(x, y), products, 2)
    first, second, shared = (code.load(products, number) for number in range(3))
    rounding = code.constant(rounding_of(rows.element), rows.element)
    lengths = code.multiply(code.sqrt(first), code.sqrt(second))
    matters = code.greater(code.magnitude(shared), code.multiply(lengths, rounding))
    shared = code.select(matters, shared, code.like(0.0, shared))
    tangent = _tangent(code, first, second, shared)
    turn = _rotation(code, first, second, shared, tangent)
    _rotate(code, rows, p, q, turn)
    for each in turned:
        _rotate(code, each, p, q, turn)
