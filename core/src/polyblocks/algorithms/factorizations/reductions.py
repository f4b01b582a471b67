"""Reflections that make a symmetric matrix tridiagonal, and any matrix bidiagonal.

Golub and Van Loan, Matrix Computations, 4th edition, 5.4.8 and 8.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Value
from polyblocks.algorithms.code import Code, Index, Part
from polyblocks.algorithms.factorizations.jacobi import identity, scale, tiny


def _size(code: Code, part: Part, i: Index) -> Value:
    return code.magnitude(code.load(part, i))


@dataclass(frozen=True)
class Reduction:
    """Arrays of a reduction.

    Attributes:
        code: where to write.
        rows: what is left of the matrix, divided by its largest magnitude, [n, m].
        vector: of a reflection, [m].
        sums: products with it, [m].
        diagonal: [n].
        beside: what is beside it, between zeros, [n + 1].
        largest: the largest magnitude of the matrix, [1].
        total: a sum, [1].
    """

    code: Code
    rows: Part
    vector: Part
    sums: Part
    diagonal: Part
    beside: Part
    largest: Part
    total: Part

    @staticmethod
    def of(code: Code, n: int, m: int, element: object, batch: int, b: Index) -> Reduction:
        shapes = (n, m), (m,), (m,), (n,), (n + 1,), (1,), (1,)
        work = Reduction(code, *(code.array(shape, element, batch, b) for shape in shapes))
        code.fill(0.0, work.largest, 0)
        with code.loop(n + 1) as i:
            code.fill(0.0, work.beside, i)
        return work

    def note_size(self, x: Value) -> None:
        """Note the magnitude of an element."""
        self.code.raise_to(self.code.magnitude(x), self.largest, 0)

    def take(self, a: Part) -> None:
        """Copy a matrix."""
        code = self.code
        n, m = a.shape
        with code.loop(n) as i, code.loop(m) as j:
            self.note_size(code.load(a, i, j))
        lift, factor = scale(code, code.load(self.largest, 0))
        with code.loop(n) as i, code.loop(m) as j:
            x = code.multiply(code.multiply(code.load(a, i, j), lift), factor)
            code.store(x, self.rows, i, j)

    def take_symmetric(self, a: Part) -> None:
        """Copy a symmetric matrix from its part on and below the diagonal."""
        code = self.code
        n, _ = a.shape
        with code.loop(n) as i, code.loop(n, upper=i + 1) as j:
            self.note_size(code.load(a, i, j))
        lift, factor = scale(code, code.load(self.largest, 0))
        with code.loop(n) as i, code.loop(n, upper=i + 1) as j:
            x = code.multiply(code.multiply(code.load(a, i, j), lift), factor)
            code.store(x, self.rows, i, j)
            code.store(x, self.rows, j, i)

    def bound(self) -> Value:
        """The largest sum of an element of the diagonal and the two beside it, in magnitude."""
        code = self.code
        code.fill(0.0, self.total, 0)
        with code.loop(self.diagonal.shape[0]) as i:
            beside = code.add(_size(code, self.beside, i), _size(code, self.beside, i + 1))
            code.raise_to(code.add(_size(code, self.diagonal, i), beside), self.total, 0)
        return code.load(self.total, 0)

    def square(self, part: Part) -> None:
        """Square the elements of an array."""
        code = self.code
        with code.loop(part.shape[0]) as i:
            x = code.load(part, i)
            code.store(code.multiply(x, x), part, i)

    def write(self, found: Part, values: Part, descending: bool = False) -> None:
        """Write values in the scale of the matrix as it was."""
        (n,) = found.shape
        with self.code.loop(n) as i:
            source = i * -1 + (n - 1) if descending else i
            x = self.code.multiply(self.code.load(found, source), self.code.load(self.largest, 0))
            self.code.store(x, values, i)

    def reflect(self, first: Expr, end: int) -> tuple[Value, Value]:
        """Turn a vector into that of the reflection which makes it a multiple of a unit vector.

        Args:
            first: of its elements; that of the result is one.
            end: behind its last element.

        Returns:
            tau, and the multiple.
        """
        code, v, total = self.code, self.vector, self.total
        code.fill(0.0, total, 0)
        with code.loop(end, lower=first + 1) as j:
            x = code.load(v, j)
            code.add_to(code.multiply(x, x), total, 0)
        alpha, behind = code.load(v, first), code.load(total, 0)
        norm = code.sqrt(code.add(behind, code.multiply(alpha, alpha)))
        # Elements that are nothing beside the largest one are not reflected: their squares
        # would be inexact.
        nothing = code.greater(code.like(tiny(v.element), behind), behind)
        length = code.negate(code.with_sign_of(norm, alpha))
        safe = code.select(nothing, code.like(1.0, length), length)
        tau = code.divide(code.subtract(safe, alpha), safe)
        tau = code.select(nothing, code.like(0.0, tau), tau)
        distance = code.subtract(alpha, safe)
        distance = code.select(nothing, code.like(1.0, distance), distance)
        inverse = code.reciprocal(distance)
        with code.loop(end, lower=first + 1) as j:
            code.store(code.multiply(code.load(v, j), inverse), v, j)
        code.fill(1.0, v, first)
        return tau, code.select(nothing, alpha, length)

    def reflect_row(self, k: Expr, first: Expr) -> tuple[Value, Value]:
        """:meth:`reflect` what row ``k`` has from column ``first`` on."""
        code, m = self.code, self.rows.shape[1]
        with code.loop(m, lower=first) as j:
            code.copy(self.rows, (k, j), self.vector, (j,))
        return self.reflect(first, m)

    def keep_row(self, k: Expr, first: Expr) -> None:
        """Keep the vector of a reflection in row ``k``, from column ``first`` on."""
        with self.code.loop(self.rows.shape[1], lower=first) as j:
            self.code.copy(self.vector, (j,), self.rows, (k, j))

    def sum_rows(self, first: Expr, column: Expr) -> None:
        """``sums``: rows from ``first`` on, each times its element of the vector.

        Args:
            first: the first row.
            column: the first column that is summed up.
        """
        code, sums = self.code, self.sums
        n, m = self.rows.shape
        with code.loop(m, lower=column) as j:
            code.fill(0.0, sums, j)
        with code.loop(n, lower=first) as i:
            factor = code.load(self.vector, i)
            with code.loop(m, lower=column) as j:
                code.add_to(code.multiply(factor, code.load(self.rows, i, j)), sums, j)


def make_tridiagonal(code: Code, work: Reduction, scales: Part | None = None) -> None:
    """Reflect rows and columns; what is beside the diagonal is element i + 1 of ``beside``.

    Args:
        code: where to write.
        work: has the matrix.
        scales: where tau of each reflection is kept, [n]; their vectors are then kept in the rows
            of ``work.rows``, right of the diagonal.
    """
    rows, v, sums, total = work.rows, work.vector, work.sums, work.total
    n, _ = rows.shape
    with code.loop(n - 1) as k:
        first = k + 1
        tau, length = work.reflect_row(k, first)
        code.store(length, work.beside, first)
        work.sum_rows(first, first)
        code.fill(0.0, total, 0)
        with code.loop(n, lower=first) as j:
            code.add_to(code.multiply(code.load(sums, j), code.load(v, j)), total, 0)
        # tau A v - tau^2 / 2 (v^T A v) v
        half = code.multiply(code.multiply(tau, tau), code.load(total, 0))
        half = code.multiply(half, code.like(0.5, half))
        with code.loop(n, lower=first) as j:
            x = code.multiply(tau, code.load(sums, j))
            code.store(code.subtract(x, code.multiply(half, code.load(v, j))), sums, j)
        with code.loop(n, lower=first) as i:
            one, other = code.load(v, i), code.load(sums, i)
            with code.loop(n, lower=first) as j:
                x = code.load(rows, i, j)
                x = code.subtract(x, code.multiply(one, code.load(sums, j)))
                x = code.subtract(x, code.multiply(other, code.load(v, j)))
                code.store(x, rows, i, j)
        if scales is not None:
            code.store(tau, scales, k)
            work.keep_row(k, first)
    with code.loop(n) as i:
        code.copy(rows, (i, i), work.diagonal, (i,))


def make_bidiagonal(code: Code, work: Reduction, scales: Sequence[Part] = ()) -> None:
    """Reflect columns from the left and rows from the right: what is left is lower bidiagonal.

    Args:
        code: where to write.
        work: has the matrix.
        scales: where tau of the reflections of columns, and of rows, is kept, [n] each; their
            vectors are then kept where they make elements zero, and in the element before.
    """
    n, _ = work.rows.shape
    of_columns, of_rows = scales or (None, None)
    with code.loop(n - 1) as k:
        _reflect_row(code, work, k, of_rows)
        _reflect_column(code, work, k, of_columns)
    _reflect_row(code, work, Expr(n - 1), of_rows)


def make_lower(code: Code, work: Reduction, scales: Part) -> None:
    """Reflect rows from the right: what is left is lower triangular.

    Args:
        code: where to write.
        work: has the matrix.
        scales: where tau of each reflection is kept, [n]; their vectors are kept in the rows of
            ``work.rows``, from the diagonal on.
    """
    with code.loop(work.rows.shape[0]) as k:
        _reflect_row(code, work, k, scales)


def _reflect_row(code: Code, work: Reduction, k: Expr, scales: Part | None) -> None:
    """Make row ``k`` zero behind the diagonal."""
    rows = work.rows
    tau, length = work.reflect_row(k, k)
    code.store(length, work.diagonal, k)
    with code.loop(rows.shape[0], lower=k + 1) as i:
        _reflect_one(code, work, rows, tau, i, k)
    if scales is not None:
        code.store(tau, scales, k)
        work.keep_row(k, k)


def _reflect_column(code: Code, work: Reduction, k: Expr, scales: Part | None) -> None:
    """Make column ``k`` zero but for the element below the diagonal."""
    rows, v, sums = work.rows, work.vector, work.sums
    (n, m), first = rows.shape, k + 1
    with code.loop(n, lower=first) as i:
        code.copy(rows, (i, k), v, (i,))
    tau, length = work.reflect(first, n)
    code.store(length, work.beside, first)
    work.sum_rows(first, first)
    with code.loop(n, lower=first) as i:
        factor = code.multiply(tau, code.load(v, i))
        with code.loop(m, lower=first) as j:
            code.subtract_from(code.multiply(factor, code.load(sums, j)), rows, i, j)
    if scales is not None:
        code.store(tau, scales, k)
        with code.loop(n, lower=first) as i:
            code.copy(v, (i,), rows, (i, k))


def _reflect_one(code: Code, work: Reduction, rows: Part, tau: Value, i: Expr, first: Expr) -> None:
    """Multiply a row with the reflection of the vector, which begins in column ``first``."""
    v, total, m = work.vector, work.total, rows.shape[1]
    code.fill(0.0, total, 0)
    with code.loop(m, lower=first) as j:
        code.add_to(code.multiply(code.load(rows, i, j), code.load(v, j)), total, 0)
    factor = code.multiply(tau, code.load(total, 0))
    with code.loop(m, lower=first) as j:
        code.subtract_from(code.multiply(factor, code.load(v, j)), rows, i, j)


@dataclass(frozen=True)
class Reflections:
    """Reflections of a reduction.

    Attributes:
        scales: tau of each, [n].
        in_columns: whether their vectors are in columns, not in rows.
        below: how far behind the diagonal they begin.
    """

    scales: Part
    in_columns: bool = False
    below: int = 0


def multiply_reflections(code: Code, work: Reduction, kept: Reflections, product: Part) -> None:
    """Write the first rows of the transpose of the product of reflections, [n …, m].

    Args:
        code: where to write.
        work: has their vectors.
        kept: the reflections.
        product: where to write.
    """
    count, m = product.shape
    number = work.rows.shape[0] - kept.below
    identity(code, product)
    with code.loop(number) as step:
        k = step * -1 + (number - 1)
        first = k + kept.below
        with code.loop(m, lower=first) as j:
            where = (j, k) if kept.in_columns else (k, j)
            code.copy(work.rows, where, work.vector, (j,))
        tau = code.load(kept.scales, k)
        with code.loop(count, lower=first) as i:
            _reflect_one(code, work, product, tau, i, first)
