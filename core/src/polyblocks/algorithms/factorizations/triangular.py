"""Systems of linear equations with a triangular matrix."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.algorithms.code import Code, Index, Part
from polyblocks.algorithms.factorizations.grid import triangular as on_grid
from polyblocks.algorithms.factorizations.limits import by_grid

#: Rows that are solved together, and rows that are subtracted from them at a time: their factors
#: and vectors of all of them are in registers.
_TOGETHER = 4

#: Columns that threads share, few enough to stay in a cache.
_COLUMNS = 128

#: Rows whose sums are lanes of vectors, where there are fewer columns than lanes.
_SUMS = 16
#: Products that are added up before they are subtracted from a sum: a sum that is stored and loaded
#: again takes three times as long as an addition.
_AT_ONCE = 8
#: The most columns that count as few, and the fewest rows for which that is worth it.
_FEW, _MANY = 8, 64


def triangular_solve(
    code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer], *, upper: bool, unit: bool
) -> None:
    """Write loops that solve T X = B.

    Args:
        code: where to write.
        inputs: T, [batch, n, n], and B, [batch, n, m].
        outputs: X, [batch, n, m].
        upper: whether T has its elements above the diagonal; those on the other side are not used.
        unit: whether the diagonal is of ones, whatever it holds.
    """
    batch, n, m = inputs[1].shape
    if by_grid(n):
        on_grid.triangular_solve(code, inputs, outputs, upper=upper, unit=unit)
        return
    if m <= _FEW and n >= _MANY:
        with code.loop(batch) as b:
            t, right, x = (Part(each, (b,)) for each in (*inputs, *outputs))
            _FewColumns(code, t, right, x, upper, unit).write(batch, b)
        return
    blocks = -(-m // _COLUMNS)
    with code.loop(batch) as b, code.loop(blocks) as block:
        t, right, x = (Part(each, (b,)) for each in (*inputs, *outputs))
        start = block * _COLUMNS
        width = min(m, _COLUMNS)
        end = start * -1 + m if m % width else Expr(width)
        # Rows of all columns could be a power of two apart, and meet in one set of a cache.
        rows = code.array((n, width), x.element, batch * blocks, b * blocks + block)
        with code.loop(n) as i, code.loop(width, upper=end) as j:
            code.copy(right, (i, start + j), rows, (i, j))
        Columns(code, t, rows, end, upper, unit).write()
        with code.loop(n) as i, code.loop(width, upper=end) as j:
            code.copy(rows, (i, j), x, (i, start + j))


@dataclass(frozen=True)
class Columns:
    """Solves for some columns in place, some rows after the other.

    Rows are counted in the order in which they are solved.

    Attributes:
        code: where to write.
        t: the triangular matrix, [n, n].
        rows: B before and X behind, [n, width].
        end: columns of it that are used.
        upper, unit: as :func:`triangular_solve` takes them.
    """

    code: Code
    t: Part
    rows: Part
    end: Expr
    upper: bool
    unit: bool

    def write(self) -> None:
        code, (n, _) = self.code, self.rows.shape
        whole = n // _TOGETHER
        with code.loop(whole) as block:
            first = block * _TOGETHER
            with code.loop(whole, upper=block) as before:
                self._subtract(first, before * _TOGETHER)
            self._solve(first)
        with code.loop(n, lower=whole * _TOGETHER) as step:
            with code.loop(n, upper=step) as before:
                self._subtract(step, before, 1)
            self._solve(step, 1)

    def _row(self, step: Expr) -> Expr:
        """The row that is solved at a step."""
        return step * -1 + (self.rows.shape[0] - 1) if self.upper else step

    def _rows(self, first: Expr, count: int) -> list[Expr]:
        return [self._row(first + u) for u in range(count)]

    def _subtract(self, first: Expr, before: Expr, count: int = _TOGETHER) -> None:
        """Subtract multiples of rows that are solved from as many others."""
        code, mine, others = self.code, self._rows(first, count), self._rows(before, count)
        factors = [[code.load(self.t, i, k) for k in others] for i in mine]
        with code.loop(self.rows.shape[1], upper=self.end) as j:
            solved = [code.load(self.rows, k, j) for k in others]
            for i, row in zip(mine, factors, strict=True):
                value = code.load(self.rows, i, j)
                for factor, x in zip(row, solved, strict=True):
                    value = code.subtract(value, code.multiply(factor, x))
                code.store(value, self.rows, i, j)

    def _solve(self, first: Expr, count: int = _TOGETHER) -> None:
        """Solve for rows from which all before the first one are subtracted."""
        code, mine = self.code, self._rows(first, count)
        factors = [[code.load(self.t, i, k) for k in mine[: u + 1]] for u, i in enumerate(mine)]
        with code.loop(self.rows.shape[1], upper=self.end) as j:
            solved: list[Value] = []
            for i, row in zip(mine, factors, strict=True):
                value = code.load(self.rows, i, j)
                for factor, x in zip(row[:-1], solved, strict=True):
                    value = code.subtract(value, code.multiply(factor, x))
                if not self.unit:
                    value = code.divide(value, row[-1])
                code.store(value, self.rows, i, j)
                solved.append(value)


@dataclass(frozen=True)
class _FewColumns:
    """Solves for few columns: sums for several rows of T are lanes of vectors.

    Squares of T are transposed for that, which also reads it in order whichever way it is stored.

    Attributes:
        code: where to write.
        t: the triangular matrix, [n, n].
        right: B, [n, m].
        x: X, [n, m].
        upper, unit: as :func:`triangular_solve` takes them.
    """

    code: Code
    t: Part
    right: Part
    x: Part
    upper: bool
    unit: bool

    def write(self, batch: int, b: Index) -> None:
        code, (n, m) = self.code, self.x.shape
        square = code.array((_SUMS, _SUMS), self.x.element, batch, b)
        sums = code.array((m, _SUMS), self.x.element, batch, b)
        whole = n // _SUMS
        if self.upper:
            self._solve_rest(whole * _SUMS)
        with code.loop(whole) as step:
            block = step * -1 + (whole - 1) if self.upper else step
            with code.loop(m) as j, code.loop(_SUMS) as r:
                code.copy(self.right, (block * _SUMS + r, j), sums, (j, r))
            solved = (block + 1, whole) if self.upper else (0, block)
            with code.loop(whole, lower=solved[0], upper=solved[1]) as before:
                self._transpose(block, before, square)
                with code.loop(_SUMS // _AT_ONCE) as part, code.loop(m) as j:
                    ks = [part * _AT_ONCE + u for u in range(_AT_ONCE)]
                    elements = [code.load(self.x, before * _SUMS + k, j) for k in ks]
                    self._subtract(elements, square, ks, sums, j)
            if self.upper:
                with code.loop(n, lower=whole * _SUMS) as k, code.loop(m) as j:
                    known = code.load(self.x, k, j)
                    with code.loop(_SUMS) as r:
                        factor = code.load(self.t, block * _SUMS + r, k)
                        code.subtract_from(code.multiply(factor, known), sums, j, r)
            self._solve_block(block, square, sums)
        if not self.upper:
            self._solve_rest(whole * _SUMS)

    def _transpose(self, block: Expr, before: Expr, square: Part) -> None:
        """Copy a square of T, each of its columns to a row."""
        with self.code.loop(_SUMS) as k, self.code.loop(_SUMS) as r:
            at = block * _SUMS + r, before * _SUMS + k
            self.code.copy(self.t, at, square, (k, r))

    def _subtract(
        self, known: Sequence[Value], square: Part, ks: Sequence[Expr], sums: Part, j: Expr
    ) -> None:
        """Subtract the products of elements of X and as many columns of a square."""
        code = self.code
        with code.loop(_SUMS) as r:
            products = [
                code.multiply(x, code.load(square, k, r)) for x, k in zip(known, ks, strict=True)
            ]
            code.subtract_from(functools.reduce(code.add, products), sums, j, r)

    def _solve_block(self, block: Expr, square: Part, sums: Part) -> None:
        """Solve for the rows of a square on the diagonal."""
        code, m = self.code, self.x.shape[1]
        self._transpose(block, block, square)
        with code.loop(_SUMS) as step:
            k = step * -1 + (_SUMS - 1) if self.upper else step
            pivot = code.load(square, k, k)
            with code.loop(m) as j:
                known = code.load(sums, j, k)
                known = known if self.unit else code.divide(known, pivot)
                code.store(known, self.x, block * _SUMS + k, j)
                # Sums of rows that are solved already are not used any more.
                self._subtract([known], square, [k], sums, j)

    def _solve_rest(self, first: int) -> None:
        """Solve for the last rows, which fill no square."""
        code, (n, m) = self.code, self.x.shape
        with code.loop(n, lower=first) as step:
            i = step * -1 + (n - 1 + first) if self.upper else step
            with code.loop(m) as j:
                code.copy(self.right, (i, j), self.x, (i, j))
            before = (i + 1, n) if self.upper else (0, i)
            with code.loop(n, lower=before[0], upper=before[1]) as k:
                factor = code.load(self.t, i, k)
                with code.loop(m) as j:
                    product = code.multiply(factor, code.load(self.x, k, j))
                    code.subtract_from(product, self.x, i, j)
            if not self.unit:
                pivot = code.load(self.t, i, i)
                with code.loop(m) as j:
                    code.store(code.divide(code.load(self.x, i, j), pivot), self.x, i, j)
