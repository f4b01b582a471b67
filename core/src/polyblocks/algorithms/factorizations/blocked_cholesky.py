"""Cholesky of large matrices, by squares that stay in a cache.

Rows of the transpose of L are computed from the first to the last, a square of them at a time:
what the rows before say is subtracted from all squares beside each other, the one on the diagonal
is factorized, and those beside it are solved for. Squares lie in one piece, so that none of their
rows meet in a set of a cache (Gustavson, Recursion leads to automatic variable blocking for dense
linear-algebra algorithms, 1997).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Index, Part
from polyblocks.algorithms.factorizations.rows import row_of_transpose
from polyblocks.algorithms.factorizations.triangular import Columns

#: Rows and columns of a square.
BLOCK = 64
#: Rows that are changed together, and rows that are subtracted from them at a time: their factors
#: are in registers.
_TOGETHER = 4


def blocked_cholesky(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """:func:`polyblocks.algorithms.factorizations.cholesky.cholesky` of large matrices.

    The steps of a single matrix are a loop of the program: threads share the squares of each.
    """
    batch, n, _ = inputs[0].shape
    with code.loop(batch) as b:
        a, lower, info = (Part(each, (b,)) for each in (*inputs, *outputs))
        work = _Squares.of(code, n, a, batch, b)
        work.load(a)
        with code.steps(work.count) if batch == 1 else code.loop(work.count) as step:
            work.subtract(step)
            work.factorize(step)
            work.solve(step)
        work.store(lower)
        code.copy(work.failed, (0,), info, ())


@dataclass(frozen=True)
class _Squares:
    """Arrays of a factorization.

    Attributes:
        code: where to write.
        n: rows of the matrix.
        rows: the transpose, [squares across, squares down, rows, columns]; ones on the diagonal
            and zeros where it ends within a square.
        changed: the squares of a step, [squares across, rows, columns].
        sums: of products of two squares, [squares across, rows, columns].
        factor: L of the square on the diagonal, [rows, columns].
        failed: the first minor that is not positive, [1].
    """

    code: Code
    n: int
    rows: Part
    changed: Part
    sums: Part
    factor: Part
    failed: Part

    @staticmethod
    def of(code: Code, n: int, a: Part, batch: int, b: Index) -> _Squares:
        """With new arrays for a matrix, see :meth:`Code.array`."""
        count, square = -(-n // BLOCK), (BLOCK, BLOCK)
        shapes = (count, count, *square), (count, *square), (count, *square), square
        rows, changed, sums, factor = (code.array(e, a.element, batch, b) for e in shapes)
        failed = code.array((1,), integer(32), batch, b)
        return _Squares(code, n, rows, changed, sums, factor, failed)

    @property
    def count(self) -> int:
        """Squares beside each other."""
        return self.rows.shape[0]

    def load(self, a: Part) -> None:
        """Transpose what is on and below the diagonal."""
        code, count = self.code, self.count
        code.fill(0, self.failed, 0)
        if self.n % BLOCK:
            last = count - 1
            with code.loop(count) as q, code.loop(BLOCK) as r, code.loop(BLOCK) as c:
                code.fill(0.0, self.rows, last, q, r, c)
            with code.loop(BLOCK, lower=self.n % BLOCK) as r:
                code.fill(1.0, self.rows, last, last, r, r)
        with code.loop(count) as j, code.loop(count, upper=j + 1) as q, self._in(j, q) as (c, r):
            code.copy(a, (j * BLOCK + c, q * BLOCK + r), self.rows, (j, q, r, c))

    def store(self, lower: Part) -> None:
        """Transpose back, with zeros above the diagonal."""
        code, count = self.code, self.count
        with code.loop(count) as j, code.loop(count, upper=j + 1) as q, self._in(j, q) as (c, r):
            code.copy(self.rows, (j, q, r, c), lower, (j * BLOCK + c, q * BLOCK + r))
        with code.loop(count) as j, code.loop(count, lower=j + 1) as q, self._in(j, q) as (c, r):
            code.fill(0.0, lower, j * BLOCK + c, q * BLOCK + r)

    @contextmanager
    def _in(self, j: Expr, q: Expr) -> Iterator[tuple[Expr, Expr]]:
        """Loops over the rows and columns of a square of the matrix."""
        ends = [e * -BLOCK + self.n if self.n % BLOCK else None for e in (j, q)]
        with self.code.loop(BLOCK, upper=ends[0]) as c, self.code.loop(BLOCK, upper=ends[1]) as r:
            yield c, r

    def subtract(self, step: Expr) -> None:
        """Take the squares of a step, less what the rows before say.

        Products of a square are added up on their own: few numbers are rounded as the sum of all.
        """
        code, rows = self.code, self.rows
        groups = BLOCK // _TOGETHER
        with self._shared(step) as j:
            with code.loop(BLOCK) as r, code.loop(BLOCK) as c:
                code.copy(rows, (j, step, r, c), self.changed, (j, r, c))
            with code.loop(self.count, upper=step) as q:
                with code.loop(BLOCK) as r, code.loop(BLOCK) as c:
                    code.fill(0.0, self.sums, j, r, c)
                with code.loop(groups) as before, code.loop(groups) as group:
                    self._multiply(step, j, q, before * _TOGETHER, group * _TOGETHER)
                with code.loop(BLOCK) as r, code.loop(BLOCK) as c:
                    code.subtract_from(code.load(self.sums, j, r, c), self.changed, j, r, c)

    def _multiply(self, step: Expr, j: Expr, q: Expr, before: Expr, first: Expr) -> None:
        """Add the products of some rows of a square and their factors to sums."""
        code, rows = self.code, self.rows
        mine, others = ([e + u for u in range(_TOGETHER)] for e in (first, before))
        factors = [[code.load(rows, step, q, k, i) for k in others] for i in mine]
        with code.loop(BLOCK) as c:
            known = [code.load(rows, j, q, k, c) for k in others]
            for i, row in zip(mine, factors, strict=True):
                value = code.load(self.sums, j, i, c)
                for factor, x in zip(row, known, strict=True):
                    value = code.add(value, code.multiply(factor, x))
                code.store(value, self.sums, j, i, c)

    def factorize(self, step: Expr) -> None:
        """Factorize the square on the diagonal."""
        code = self.code
        square = Part(self.changed.buffer, (*self.changed.at, step))
        with code.loop(BLOCK) as k:
            row_of_transpose(code, square, self.failed, k, step * BLOCK + k)
        with code.loop(BLOCK) as r:
            with code.loop(BLOCK, upper=r) as c:
                code.fill(0.0, self.rows, step, step, r, c)
            with code.loop(BLOCK, lower=r) as c:
                code.copy(square, (r, c), self.rows, (step, step, r, c))
        with code.loop(BLOCK) as i, code.loop(BLOCK, upper=i + 1) as k:
            code.copy(square, (k, i), self.factor, (i, k))

    def solve(self, step: Expr) -> None:
        """Solve for the squares beside the one on the diagonal."""
        code = self.code
        with self._shared(step + 1) as j:
            square = Part(self.changed.buffer, (*self.changed.at, j))
            Columns(code, self.factor, square, Expr(BLOCK), upper=False, unit=False).write()
            with code.loop(BLOCK) as r, code.loop(BLOCK) as c:
                code.copy(square, (r, c), self.rows, (j, step, r, c))

    @contextmanager
    def _shared(self, first: Expr) -> Iterator[Expr]:
        """Loops over the squares from ``first`` on, evenly distributed among any number of threads.

        The outer loops are the bits of a square's number, the lowest one outermost: threads, which
        take consecutive iterations, get squares that are far apart.
        """
        code, digits = self.code, self.count.bit_length() - 1
        size = 1 << digits
        with ExitStack() as loops:
            place = first
            for digit in range(digits):
                place = place + loops.enter_context(code.loop(2)) * (1 << digit)
            most = -(-self.count // size)
            end = (place * -1 + (self.count + size - 1)) // size
            yield place + loops.enter_context(code.loop(most, upper=end)) * size
