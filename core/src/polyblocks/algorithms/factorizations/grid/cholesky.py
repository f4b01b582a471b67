"""Cholesky of large matrices, on a grid of threads.

Some columns of L at a time: a group of threads has some rows of these, and those of the block on
the diagonal, which all groups factorize for themselves; then all threads subtract the product of
the columns and their transpose from the rest (Volkov and Demmel, Benchmarking GPUs to tune dense
linear algebra, 2008).
"""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Part

#: Columns of a step, and rows of a group of threads.
BLOCK = 64


def cholesky(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """As :func:`polyblocks.algorithms.factorizations.cholesky.cholesky`."""
    (a,), (lower, info) = inputs, outputs
    batch, n, _ = a.shape
    count = -(-n // BLOCK)
    rest = _array((batch, count * BLOCK, count * BLOCK), a.element)
    panel, negated = (_array((batch, count * BLOCK, BLOCK), a.element) for _ in range(2))
    _load(code, a, rest)
    with code.steps(count) as step:
        with code.loop(batch) as b, code.loop(count) as group:
            columns = code.local((2 * BLOCK, BLOCK), a.element)
            factors = code.local((2 * BLOCK,), a.element)
            _load_rows(code, Part(rest, (b,)), columns, step, group)
            _factorize(code, columns, factors)
            _store_rows(code, columns, Part(lower, (b,)), n, step, group)
            below = code.less(step, group)
            with code.loop(BLOCK) as r, code.loop(BLOCK) as c:
                x = code.load(columns, r + BLOCK, c)
                x = code.select(below, x, code.like(0.0, x))
                code.store(x, Part(panel, (b,)), group * BLOCK + r, c)
                code.store(code.negate(x), Part(negated, (b,)), group * BLOCK + r, c)
        _add_product(code, negated, panel, rest)
    _first_failure(code, lower, info)


def _add_product(code: Code, first: Buffer, second: Buffer, total: Buffer) -> None:
    """Add the product of matrices and the transposes of others to a third array of them."""
    batch, m, depth = first.shape
    _, n, _ = second.shape
    with (
        code.loop(batch) as b,
        code.loop(m) as i,
        code.loop(n) as j,
        code.loop(depth) as k,
    ):
        x, y = code.load(Part(first, (b,)), i, k), code.load(Part(second, (b,)), j, k)
        code.add_to(code.multiply(x, y), Part(total, (b,)), i, j)


def _load(code: Code, a: Buffer, rest: Buffer) -> None:
    """Copy the matrices, with the columns and rows of a unit matrix behind them."""
    batch, n, _ = a.shape
    _, padded, _ = rest.shape
    with code.loop(batch) as b, code.loop(n) as i, code.loop(n) as j:
        code.copy(Part(a, (b,)), (i, j), Part(rest, (b,)), (i, j))
    if padded > n:
        with code.loop(batch) as b, code.loop(n) as i, code.loop(padded, lower=n) as j:
            code.fill(0.0, Part(rest, (b,)), i, j)
        with code.loop(batch) as b, code.loop(padded, lower=n) as i, code.loop(padded) as j:
            code.fill(0.0, Part(rest, (b,)), i, j)
        with code.loop(batch) as b, code.loop(padded, lower=n) as i:
            code.fill(1.0, Part(rest, (b,)), i, i)


def _load_rows(code: Code, rest: Part, columns: Part, step: Expr, group: Expr) -> None:
    """Copy the block on the diagonal, and the rows of a group below; zeros for one above."""
    above = code.less(group, step)
    with code.loop(BLOCK) as r, code.loop(BLOCK) as c:
        code.copy(rest, (step * BLOCK + r, step * BLOCK + c), columns, (r, c))
        x = code.load(rest, group * BLOCK + r, step * BLOCK + c)
        code.store(code.select(above, code.like(0.0, x), x), columns, r + BLOCK, c)


def _factorize(code: Code, columns: Part, factors: Part) -> None:
    """Make columns of L of those of a matrix, whose first rows are those of the diagonal."""
    rows, _ = columns.shape
    with code.loop(BLOCK) as k:
        root = code.sqrt(code.load(columns, k, k))
        with code.loop(rows) as r:
            x = code.divide(code.load(columns, r, k), root)
            code.store(x, columns, r, k)
            code.store(x, factors, r)
        with code.loop(rows) as r, code.loop(BLOCK, lower=k + 1) as c:
            product = code.multiply(code.load(factors, r), code.load(factors, c))
            code.subtract_from(product, columns, r, c)


def _store_rows(code: Code, columns: Part, lower: Part, n: int, step: Expr, group: Expr) -> None:
    """Copy the rows of a group to L, with zeros above the diagonal."""
    row_end, column_end = (e * -BLOCK + n if n % BLOCK else None for e in (group, step))
    with code.loop(BLOCK, upper=row_end) as r, code.loop(BLOCK, upper=column_end) as c:
        x = code.load(columns, r + BLOCK, c)
        outside = code.less(group * BLOCK + r, step * BLOCK + c)
        x = code.select(outside, code.like(0.0, x), x)
        code.store(x, lower, group * BLOCK + r, step * BLOCK + c)


def _first_failure(code: Code, lower: Buffer, info: Buffer) -> None:
    """Write the number (from 1) of the first root that is not positive, or 0."""
    batch, n, _ = lower.shape
    least = _array((batch,), integer(32))
    with code.loop(batch) as b:
        code.fill(n + 1, Part(least), b)
    with code.loop(batch) as b, code.loop(n) as k:
        root = code.load(Part(lower, (b,)), k, k)
        fine = code.greater(root, code.like(0.0, root))
        none = code.constant(n + 1, integer(32))
        number = code.select(fine, none, code.number(k + 1))
        code.store(code.smaller(number, code.load(Part(least), b)), Part(least), b)
    with code.loop(batch) as b:
        first = code.load(Part(least), b)
        failed = code.less_than(first, code.like(n + 1, first))
        code.store(code.select(failed, first, code.like(0, first)), Part(info), b)


def _array(shape: Sequence[int], element: object) -> Buffer:
    return Buffer(tuple(shape), element, "alloc", bytes_per_element=element_bytes(element))
