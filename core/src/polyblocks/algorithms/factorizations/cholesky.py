"""Cholesky: a symmetric positive-definite matrix is L times its transpose."""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Part

#: Rows that are subtracted from another one at a time, which is stored once for all of them.
_TOGETHER = 4


def cholesky(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that factorize matrices.

    Rows of the transpose of L are computed from the first to the last, from all rows before.

    Args:
        code: where to write.
        inputs: A, [batch, n, n]; its part above the diagonal is not used.
        outputs: L, [batch, n, n], zero above the diagonal; info, [batch] of int32: 0, or the
            number (from 1) of the first leading minor that is not positive.
    """
    batch, n, _ = inputs[0].shape
    with code.loop(batch) as b:
        a, lower, info = (Part(each, (b,)) for each in (*inputs, *outputs))
        rows = code.array((n, n), a.element, batch, b)
        failed = code.array((1,), integer(32), batch, b)
        with code.loop(n) as i, code.loop(n) as j:
            code.copy(a, (i, j), rows, (j, i))
        code.fill(0, failed, 0)
        with code.loop(n) as k:
            _row(code, rows, failed, k, n)
        # Only the part of the transpose from the diagonal on was computed.
        with code.loop(n) as i, code.loop(n, upper=i) as j:
            code.fill(0.0, rows, i, j)
        with code.loop(n) as i, code.loop(n) as j:
            code.copy(rows, (j, i), lower, (i, j))
        code.copy(failed, (0,), info, ())


def _row(code: Code, rows: Part, failed: Part, k: Expr, n: int) -> None:
    """Row ``k`` from the diagonal on."""
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
    code.note_first(code.negated(positive), k + 1, failed)
    root = code.sqrt(pivot)
    factor = code.reciprocal(root)
    with code.loop(n, lower=k + 1) as j:
        code.store(code.multiply(code.load(rows, k, j), factor), rows, k, j)
    code.store(root, rows, k, k)
