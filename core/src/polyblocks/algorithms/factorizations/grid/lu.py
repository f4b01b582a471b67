"""LU of large matrices with partial pivoting, on a grid of threads.

Some columns at a time: a group of threads eliminates these in a copy that lies column by column,
and all threads exchange rows of the other columns, solve for the rows of U, and subtract the
product of both from the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Part
from polyblocks.algorithms.factorizations.grid.triangular import solve_row

#: Columns of a step.
_PANEL = 32
#: Columns of the rest that a group of threads solves for.
_COLUMNS = 32
#: Parts of a column in which a pivot is sought, and those of the pivots that are found.
_PARTS, _FEW = 256, 16


def lu(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """As :func:`polyblocks.algorithms.factorizations.lu.lu`."""
    (a,), (factors, pivots, info) = inputs, outputs
    batch, m, n = a.shape
    failed = _array((batch, 1), integer(32))
    rest = _array(a.shape, a.element)
    with code.loop(batch) as b, code.loop(m) as i, code.loop(n) as j:
        code.copy(Part(a, (b,)), (i, j), Part(rest, (b,)), (i, j))
    with code.loop(batch) as b:
        code.fill(0, Part(failed, (b,)), 0)
    steps = min(m, n)
    whole = steps // _PANEL
    work = _Work.of(code, rest, factors, pivots, failed, _PANEL)
    with code.steps(whole) as step:
        first = step * _PANEL
        work.eliminate(first)
        work.exchange(first)
        work.solve(first)
        work.subtract()
    if steps % _PANEL:
        work = _Work.of(code, rest, factors, pivots, failed, steps % _PANEL)
        first = Expr(whole * _PANEL)
        work.eliminate(first)
        work.exchange(first)
        work.solve(first)
    with code.loop(batch) as b:
        code.copy(Part(failed, (b,)), (0,), Part(info), (b,))


@dataclass(frozen=True)
class _Work:
    """Arrays of a factorization.

    Attributes:
        code: where to write.
        rest: what is left of the matrices, [batch, m, n]; of no use where L or U are known.
        factors, pivots: as :func:`polyblocks.algorithms.factorizations.lu.lu` returns them.
        failed: the first pivot of zero, [batch, 1].
        panel: the columns of a step, [batch, columns, m].
        column, row: of the panel: the factors of a pivot, [batch, m], its row, [batch, columns].
        best, chosen: the largest magnitudes of parts of a column, and their rows, [batch, parts].
        left: the columns when they are factorized, [batch, m, columns].
        negated: the rows of U behind the columns with the other sign, [batch, columns, n].
    """

    code: Code
    rest: Buffer
    factors: Buffer
    pivots: Buffer
    failed: Buffer
    panel: Buffer
    column: Buffer
    row: Buffer
    best: Buffer
    chosen: Buffer
    left: Buffer
    negated: Buffer

    @staticmethod
    def of(
        code: Code, rest: Buffer, factors: Buffer, pivots: Buffer, failed: Buffer, size: int
    ) -> _Work:
        """With new arrays for steps of ``size`` columns."""
        (batch, m, n), element = factors.shape, factors.element
        shapes = (size, m), (m,), (size,), (_PARTS,), (m, size), (size, n)
        arrays = (_array((batch, *shape), element) for shape in shapes)
        panel, column, row, best, left, negated = arrays
        chosen = _array((batch, _PARTS), integer(32))
        own = panel, column, row, best, chosen, left, negated
        return _Work(code, rest, factors, pivots, failed, *own)

    @property
    def size(self) -> int:
        """Columns of a step."""
        return self.panel.shape[1]

    def eliminate(self, first: Expr) -> None:
        """Factorize the columns from ``first`` on."""
        code, (batch, m, _), size = self.code, self.factors.shape, self.size
        with code.loop(batch) as b, code.loop(m) as i, code.loop(size) as c:
            code.copy(Part(self.rest, (b,)), (i, first + c), Part(self.panel, (b,)), (c, i))
        with code.loop(batch) as b, code.loop(size) as step:
            row = self._pivot_row(b, first, step)
            code.store(code.plus(row, 1), Part(self.pivots, (b,)), first + step)
            self._eliminate_column(b, first, step, row)
        with code.loop(batch) as b, code.loop(m, lower=first) as i, code.loop(size) as k:
            code.copy(Part(self.panel, (b,)), (k, i), Part(self.factors, (b,)), (i, first + k))
        with code.loop(batch) as b, code.loop(m) as i, code.loop(size) as k:
            code.copy(Part(self.panel, (b,)), (k, i), Part(self.left, (b,)), (i, k))

    def _pivot_row(self, b: Expr, first: Expr, step: Expr) -> Value:
        """The first row from the diagonal on with the largest magnitude of a column, an int32.

        Some threads go through a part of the rows each, and fewer through what these have found.
        """
        code, m, k = self.code, self.factors.shape[1], first + step
        panel, best, chosen = (Part(each, (b,)) for each in (self.panel, self.best, self.chosen))

        def raise_best(place: Expr, size: Value, row: Value) -> None:
            # Nothing is larger than NaN, and NaN is not larger than anything.
            most, before = code.load(best, place), code.load(chosen, place)
            earlier = code.both(code.same_number(size, most), code.less_than(row, before))
            better = code.either(code.greater(size, most), earlier)
            code.store(code.select(better, size, most), best, place)
            code.store(code.select(better, row, before), chosen, place)

        with code.loop(_PARTS) as part:
            code.fill(-1.0, best, part)
            code.store(code.number(k), chosen, part)
            low, high = (((e - part) + (_PARTS - 1)) // _PARTS for e in (k, Expr(m)))
            with code.loop(-(-m // _PARTS), lower=low, upper=high) as group:
                i = group * _PARTS + part
                raise_best(part, code.magnitude(code.load(panel, step, i)), code.number(i))
        few = _PARTS // _FEW
        with code.loop(_FEW) as part, code.loop(few, lower=1) as other:
            place = part * few + other
            raise_best(part * few, code.load(best, place), code.load(chosen, place))
        with code.loop(_FEW, lower=1) as part:
            raise_best(Expr(0), code.load(best, part * few), code.load(chosen, part * few))
        # As LAPACK has it, NaN in the first row is a pivot.
        own = code.load(panel, step, k)
        return code.select(code.same_number(own, own), code.load(chosen, 0), code.number(k))

    def _eliminate_column(self, b: Expr, first: Expr, step: Expr, row: Value) -> None:
        """Exchange two rows of the columns, and subtract multiples of one from those behind it."""
        code, m, size, k = self.code, self.factors.shape[1], self.size, first + step
        panel, column, held = (Part(each, (b,)) for each in (self.panel, self.column, self.row))
        with code.loop(size) as c:
            there = code.place(row)
            other, own = code.load_at(panel, c, there), code.load(panel, c, k)
            code.store_at(own, panel, c, there)
            code.store(other, panel, c, k)
            code.store(other, held, c)
        lift, divisor = code.divisor(code.load(held, step), k + 1, Part(self.failed, (b,)))
        with code.loop(m, lower=k + 1) as i:
            factor = code.divide(code.multiply(code.load(panel, step, i), lift), divisor)
            code.store(factor, panel, step, i)
            code.store(factor, column, i)
        with code.loop(size, lower=step + 1) as c, code.loop(m, lower=k + 1) as i:
            product = code.multiply(code.load(column, i), code.load(held, c))
            code.subtract_from(product, panel, c, i)

    def exchange(self, first: Expr) -> None:
        """Exchange rows of the other columns."""
        code, (batch, _, n), size = self.code, self.factors.shape, self.size
        parts = (self.factors, None, first), (self.rest, first + size, None)
        for buffer, low, high in parts:
            with (
                code.loop(batch) as b,
                code.loop(n, lower=low, upper=high) as j,
                code.loop(size) as k,
            ):
                rows = Part(buffer, (b,))
                there = code.place(code.plus(code.load(Part(self.pivots, (b,)), first + k), -1))
                other, own = code.load_at(rows, there, j), code.load(rows, first + k, j)
                code.store_at(own, rows, there, j)
                code.store(other, rows, first + k, j)

    def solve(self, first: Expr) -> None:
        """Solve for the rows of U behind the columns."""
        code, (batch, _, n), size = self.code, self.factors.shape, self.size
        width = min(n, _COLUMNS)
        element = self.factors.element
        with code.loop(batch) as b, code.loop(-(-n // width)) as group:
            start = group * width
            end = start * -1 + n if n % width else Expr(width)
            square = code.local((size, size), element)
            rows = code.local((size, width), element)
            known = code.local((width,), element)
            with code.loop(size) as r, code.loop(size) as c:
                code.copy(Part(self.left, (b,)), (first + r, c), square, (r, c))
            with code.loop(size) as r, code.loop(width, upper=end) as j:
                code.copy(Part(self.rest, (b,)), (first + r, start + j), rows, (r, j))
            with code.loop(size) as k:
                solve_row(code, square, rows, known, k, end, upper=False, unit=True)
            with code.loop(size) as r, code.loop(width, upper=end) as j:
                x = code.load(rows, r, j)
                code.store(code.negate(x), Part(self.negated, (b,)), r, start + j)
        with (
            code.loop(batch) as b,
            code.loop(size) as r,
            code.loop(n, lower=first + size) as j,
        ):
            x = code.negate(code.load(Part(self.negated, (b,)), r, j))
            code.store(x, Part(self.factors, (b,)), first + r, j)

    def subtract(self) -> None:
        """Subtract the product of the columns and the rows from all of the rest."""
        code, (batch, m, n) = self.code, self.factors.shape
        with (
            code.loop(batch) as b,
            code.loop(m) as i,
            code.loop(n) as j,
            code.loop(self.size) as k,
        ):
            x = code.load(Part(self.left, (b,)), i, k)
            y = code.load(Part(self.negated, (b,)), k, j)
            code.add_to(code.multiply(x, y), Part(self.rest, (b,)), i, j)


def _array(shape: Sequence[int], element: object) -> Buffer:
    return Buffer(tuple(shape), element, "alloc", bytes_per_element=element_bytes(element))
