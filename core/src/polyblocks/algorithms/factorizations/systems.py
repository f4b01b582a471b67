"""Systems of linear equations with any square matrix, and inverses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Part
from polyblocks.algorithms.factorizations.lu import (
    Elimination,
    eliminate,
    is_small,
    lu,
    permutation,
    write_order,
)
from polyblocks.algorithms.factorizations.triangular import triangular_solve


def solve(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that solve A X = B, and factorize A.

    Args:
        code: where to write.
        inputs: A, [batch, n, n]; B, [batch, n, m].
        outputs: X, [batch, n, m]; and what :func:`lu` gives for A.
    """
    a, right = inputs
    x, *factorized = outputs
    batch, n, m = right.shape
    if is_small(batch, n, m):
        _small_solve(code, a, right, x, factorized)
    else:
        lu(code, [a], factorized)
        _substitute(code, factorized, right, x)


def invert(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that invert matrices.

    Args:
        code: where to write.
        inputs: A, [batch, n, n].
        outputs: its inverse, [batch, n, n]; info, as of :func:`lu`.
    """
    (a,) = inputs
    inverse, info = outputs
    batch, n, _ = a.shape
    if is_small(batch, n, n):
        _small_inverse(code, a, inverse, info)
        return
    factorized = [_array((batch, n, n), a.element), _array((batch, n), integer(32)), info]
    lu(code, [a], factorized)
    unit = _array(a.shape, a.element)
    with code.loop(batch) as b:
        _write_unit(code, Part(unit, (b,)), code.number)
    _substitute(code, factorized, unit, inverse)


def _small_solve(
    code: Code, a: Buffer, right: Buffer, x: Buffer, factorized: Sequence[Buffer]
) -> None:
    """The solution for small matrices, with B beside A."""
    batch, n, m = x.shape
    with code.loop(batch) as b:
        given, beside, result = (Part(each, (b,)) for each in (a, right, x))
        factors, pivots, info = (Part(each, (b,)) for each in factorized)
        rows = code.array((n, n + m), a.element, batch, b)
        with code.loop(n) as i:
            with code.loop(n) as j:
                code.copy(given, (i, j), rows, (i, j))
            with code.loop(m) as j:
                code.copy(beside, (i, j), rows, (i, j + n))
        work = Elimination.of(code, rows, n, batch, b)
        eliminate(code, work)
        _substitute_back(code, rows, rows, n)
        with code.loop(n) as i:
            with code.loop(n) as j:
                code.copy(rows, (i, j), factors, (i, j))
            with code.loop(m) as j:
                code.copy(rows, (i, j + n), result, (i, j))
            code.copy(work.pivots, (i,), pivots, (i,))
        code.copy(work.failed, (0,), info, ())


def _small_inverse(code: Code, a: Buffer, inverse: Buffer, info: Buffer) -> None:
    """The inverses of small matrices."""
    batch, n, _ = a.shape
    with code.loop(batch) as b:
        given, result = Part(a, (b,)), Part(inverse, (b,))
        rows, x = (code.array((n, n), a.element, batch, b) for _ in range(2))
        order, found = (code.array((extent,), integer(32), batch, b) for extent in (n, 1))
        with code.loop(n) as i, code.loop(n) as j:
            code.copy(given, (i, j), rows, (i, j))
        work = Elimination.of(code, rows, n, batch, b)
        eliminate(code, work)
        write_order(code, work.pivots, order, found)
        _write_unit(code, x, lambda i: code.load(order, i))
        with code.loop(n) as i, code.loop(n, upper=i) as before:
            factor = code.load(rows, i, before)
            with code.loop(n) as j:
                code.subtract_from(code.multiply(factor, code.load(x, before, j)), x, i, j)
        _substitute_back(code, rows, x, 0)
        with code.loop(n) as i, code.loop(n) as j:
            code.copy(x, (i, j), result, (i, j))
        code.copy(work.failed, (0,), Part(info, (b,)), ())


def _substitute_back(code: Code, rows: Part, x: Part, first: int) -> None:
    """Solve U X = Y: columns of ``x`` from ``first`` on are Y before and X behind."""
    n, columns = x.shape
    with code.loop(n) as step:
        i = step * -1 + (n - 1)
        pivot = code.load(rows, i, i)
        lift = code.lift(code.magnitude(pivot))
        reciprocal = code.reciprocal(code.multiply(pivot, lift))
        with code.loop(columns - first) as j:
            y = code.multiply(code.load(x, i, j + first), lift)
            code.store(code.multiply(y, reciprocal), x, i, j + first)
        with code.loop(n, upper=i) as before:
            factor = code.load(rows, before, i)
            with code.loop(columns - first) as j:
                product = code.multiply(factor, code.load(x, i, j + first))
                code.subtract_from(product, x, before, j + first)


def _write_unit(code: Code, x: Part, one: Callable[[Expr], Value]) -> None:
    """Write a one to the column that ``one`` gives for each row, and zeros to the others."""
    n, columns = x.shape
    with code.loop(n) as i:
        column = one(i)
        with code.loop(columns) as j:
            here = code.same(column, code.number(j))
            number = code.select(here, code.constant(1.0, x.element), code.constant(0.0, x.element))
            code.store(number, x, i, j)


def _substitute(code: Code, factorized: Sequence[Buffer], right: Buffer, x: Buffer) -> None:
    """The solution of L U X = P B."""
    factors, pivots, _ = factorized
    batch, n, m = x.shape
    order, places = (_array((batch, n), integer(32)) for _ in range(2))
    permutation(code, [pivots], [order, places])
    permuted, half = (_array(x.shape, x.element) for _ in range(2))
    with code.loop(batch) as b, code.loop(n) as i:
        row = code.place(code.load(Part(order, (b,)), i))
        with code.loop(m) as j:
            code.store(code.load_at(Part(right, (b,)), row, j), Part(permuted, (b,)), i, j)
    triangular_solve(code, [factors, permuted], [half], upper=False, unit=True)
    triangular_solve(code, [factors, half], [x], upper=True, unit=False)


def _array(shape: Sequence[int], element: object) -> Buffer:
    return Buffer(tuple(shape), element, "alloc", bytes_per_element=element_bytes(element))
