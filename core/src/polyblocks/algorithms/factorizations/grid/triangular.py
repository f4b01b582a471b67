"""Systems of linear equations with a large triangular matrix, on a grid of threads.

Some rows of X at a time: groups of threads solve for some columns of these each, and all threads
subtract the product of what they have found and the columns of the matrix from the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer
from polyblocks.algorithms.code import Code, Index, Part

#: Rows of a step.
BLOCK = 64
#: Columns of a group of threads.
_COLUMNS = 32


def triangular_solve(
    code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer], *, upper: bool, unit: bool
) -> None:
    """As :func:`polyblocks.algorithms.factorizations.triangular.triangular_solve`."""
    (t, right), (x,) = inputs, outputs
    batch, n, m = right.shape
    size = element_bytes(x.element)
    rest = Buffer(right.shape, x.element, "alloc", bytes_per_element=size)
    with code.loop(batch) as b, code.loop(n) as i, code.loop(m) as j:
        code.copy(Part(right, (b,)), (i, j), Part(rest, (b,)), (i, j))
    systems = _Systems(code, t, rest, x, upper, unit)
    whole = n // BLOCK
    if whole:
        negated = Buffer((batch, BLOCK, m), x.element, "alloc", bytes_per_element=size)
        with code.steps(whole) as step:
            first = step * -BLOCK + (n - BLOCK) if upper else step * BLOCK
            systems.solve(first, BLOCK, negated)
            systems.subtract(first, negated)
    if n % BLOCK:
        systems.solve(Expr(0 if upper else whole * BLOCK), n % BLOCK, None)


@dataclass(frozen=True)
class _Systems:
    """Systems, partly solved.

    Attributes:
        code: where to write.
        t: the triangular matrices, [batch, n, n].
        rest: B, less the products of what is solved, [batch, n, m]; of no use where X is known.
        x: X, [batch, n, m].
        upper, unit: as :func:`triangular_solve` takes them.
    """

    code: Code
    t: Buffer
    rest: Buffer
    x: Buffer
    upper: bool
    unit: bool

    def solve(self, first: Expr, count: int, negated: Buffer | None) -> None:
        """Solve for ``count`` rows from ``first`` on, and store them with the other sign, too."""
        code, (batch, _, m) = self.code, self.x.shape
        width = min(m, _COLUMNS)
        # Local arrays stand in a loop over groups: there are two, though one has no columns.
        groups = max(-(-m // width), 1 if batch > 1 else 2)
        with code.loop(batch) as b, code.loop(groups) as group:
            start = group * width
            end = Expr(width) if groups * width == m else start * -1 + m
            square = code.local((count, count), self.x.element)
            rows = code.local((count, width), self.x.element)
            known = code.local((width,), self.x.element)
            with code.loop(count) as r, code.loop(count) as k:
                code.copy(Part(self.t, (b,)), (first + r, first + k), square, (r, k))
            with code.loop(count) as r, code.loop(width, upper=end) as j:
                code.copy(Part(self.rest, (b,)), (first + r, start + j), rows, (r, j))
            with code.loop(count) as step:
                k = step * -1 + (count - 1) if self.upper else step
                solve_row(code, square, rows, known, k, end, self.upper, self.unit)
            with code.loop(count) as r, code.loop(width, upper=end) as j:
                value = code.load(rows, r, j)
                code.store(value, Part(self.x, (b,)), first + r, start + j)
                if negated is not None:
                    code.store(code.negate(value), Part(negated, (b,)), r, start + j)

    def subtract(self, first: Expr, negated: Buffer) -> None:
        """Subtract the products of rows from ``first`` on from all rows."""
        code, (batch, n, m) = self.code, self.x.shape
        with (
            code.loop(batch) as b,
            code.loop(n) as i,
            code.loop(m) as j,
            code.loop(BLOCK) as k,
        ):
            factor = code.load(Part(self.t, (b,)), i, first + k)
            product = code.multiply(factor, code.load(Part(negated, (b,)), k, j))
            code.add_to(product, Part(self.rest, (b,)), i, j)


def solve_row(
    code: Code,
    square: Part,
    rows: Part,
    known: Part,
    k: Expr,
    end: Index,
    upper: bool,
    unit: bool,
) -> None:
    """Solve for a row, and subtract it from those that are solved later.

    Args:
        code: where to write.
        square: a triangular matrix, [n, n].
        rows: what is left of B, and X, [n, m].
        known: an array to work with, [m].
        k: the row.
        end: columns that are used.
        upper, unit: as :func:`triangular_solve` takes them.
    """
    count, width = rows.shape
    with code.loop(width, upper=end) as j:
        value = code.load(rows, k, j)
        if not unit:
            value = code.divide(value, code.load(square, k, k))
        code.store(value, rows, k, j)
        code.store(value, known, j)
    low, high = (0, k) if upper else (k + 1, count)
    with code.loop(count, lower=low, upper=high) as r, code.loop(width, upper=end) as j:
        product = code.multiply(code.load(square, r, k), code.load(known, j))
        code.subtract_from(product, rows, r, j)
