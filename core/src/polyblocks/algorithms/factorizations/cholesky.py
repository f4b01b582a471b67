"""Cholesky: a symmetric positive-definite matrix is L times its transpose."""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.model import Buffer
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Part
from polyblocks.algorithms.factorizations.blocked_cholesky import blocked_cholesky
from polyblocks.algorithms.factorizations.grid import cholesky as on_grid
from polyblocks.algorithms.factorizations.limits import by_grid
from polyblocks.algorithms.factorizations.rows import row_of_transpose

#: Rows from which on a matrix is factorized by squares; smaller ones stay in a cache.
_BY_SQUARES = 192


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
    if by_grid(n):
        on_grid.cholesky(code, inputs, outputs)
        return
    if n >= _BY_SQUARES:
        blocked_cholesky(code, inputs, outputs)
        return
    with code.loop(batch) as b:
        a, lower, info = (Part(each, (b,)) for each in (*inputs, *outputs))
        rows = code.array((n, n), a.element, batch, b)
        failed = code.array((1,), integer(32), batch, b)
        with code.loop(n) as i, code.loop(n) as j:
            code.copy(a, (i, j), rows, (j, i))
        code.fill(0, failed, 0)
        with code.loop(n) as k:
            row_of_transpose(code, rows, failed, k, k)
        # Only the part of the transpose from the diagonal on was computed.
        with code.loop(n) as i, code.loop(n, upper=i) as j:
            code.fill(0.0, rows, i, j)
        with code.loop(n) as i, code.loop(n) as j:
            code.copy(rows, (j, i), lower, (i, j))
        code.copy(failed, (0,), info, ())
