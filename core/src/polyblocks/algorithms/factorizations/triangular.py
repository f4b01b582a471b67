"""Systems of linear equations with a triangular matrix."""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer
from polyblocks.algorithms.code import Code, Part

#: Rows that are subtracted from another one at a time, which is stored once for all of them.
_TOGETHER = 4

#: Columns that threads share, few enough to stay in a cache.
_COLUMNS = 128


def triangular_solve(
    code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer], *, upper: bool, unit: bool
) -> None:
    """Write loops that solve T X = B, one row of X after the other.

    Args:
        code: where to write.
        inputs: T, [batch, n, n], and B, [batch, n, m].
        outputs: X, [batch, n, m].
        upper: whether T has its elements above the diagonal; those on the other side are not used.
        unit: whether the diagonal is of ones, whatever it holds.
    """
    batch, n, m = inputs[1].shape
    blocks = -(-m // _COLUMNS)
    with code.loop(batch) as b, code.loop(blocks) as block:
        t, right, x = (Part(each, (b,)) for each in (*inputs, *outputs))
        start = block * _COLUMNS
        width = min(m, _COLUMNS)
        end = start * -1 + m if m % width else Expr(width)
        rows = x
        if blocks > 1:
            # Rows of all columns could be a power of two apart, and meet in one set of a cache.
            rows = code.array((n, width), x.element, batch * blocks, b * blocks + block)
        with code.loop(n) as i, code.loop(width, upper=end) as j:
            code.copy(right, (i, start + j), rows, (i, j))
        with code.loop(n) as step:
            i = step * -1 + (n - 1) if upper else step
            for first, count in code.groups(n, step, _TOGETHER):
                with first as before:
                    ks = [before + u for u in range(count)]
                    ks = [k * -1 + (n - 1) for k in ks] if upper else ks
                    factors = [code.load(t, i, k) for k in ks]
                    with code.loop(width, upper=end) as j:
                        value = code.load(rows, i, j)
                        for factor, k in zip(factors, ks, strict=True):
                            product = code.multiply(factor, code.load(rows, k, j))
                            value = code.subtract(value, product)
                        code.store(value, rows, i, j)
            if not unit:
                pivot = code.load(t, i, i)
                with code.loop(width, upper=end) as j:
                    code.store(code.divide(code.load(rows, i, j), pivot), rows, i, j)
        if blocks > 1:
            with code.loop(n) as i, code.loop(width, upper=end) as j:
                code.copy(rows, (i, j), x, (i, start + j))
