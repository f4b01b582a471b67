"""Rows of triangular factors, each computed from those before it."""

from __future__ import annotations

from polyblocks.affine.expr import Expr
from polyblocks.algorithms.code import Code, Part

#: Rows that are subtracted from another one at a time, which is stored once for all of them.
_TOGETHER = 4


def row_of_transpose(code: Code, rows: Part, failed: Part, k: Expr, number: Expr) -> None:
    """Row ``k`` of the transpose of a Cholesky factor, from the diagonal on.

    Args:
        code: where to write.
        rows: those before ``k`` are of the transpose, the others of the matrix, [n, n].
        failed: the first minor that is not positive, [1] of int32; 0 if all are.
        k: the row.
        number: how many minors there are before the one that ends in this row.
    """
    n, _ = rows.shape
    for first, count in code.groups(n, k, _TOGETHER):
        with first as r:
            factors = [code.load(rows, r + u, k) for u in range(count)]
            with code.loop(n, lower=k) as j:
                value = code.load(rows, k, j)
                for u, factor in enumerate(factors):
                    value = code.subtract(value, code.multiply(factor, code.load(rows, r + u, j)))
                code.store(value, rows, k, j)
    pivot = code.load(rows, k, k)
    positive = code.greater(pivot, code.like(0.0, pivot))
    code.note_first(code.negated(positive), number + 1, failed)
    root = code.sqrt(pivot)
    factor = code.reciprocal(root)
    with code.loop(n, lower=k + 1) as j:
        code.store(code.multiply(code.load(rows, k, j), factor), rows, k, j)
    code.store(root, rows, k, k)
