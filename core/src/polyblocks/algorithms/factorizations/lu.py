"""LU with partial pivoting: rows of a matrix in another order are L times U."""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Part


def lu(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that factorize matrices.

    In every column the pivot is the first of the largest magnitude, as LAPACK's ``getrf`` has it.

    Args:
        code: where to write.
        inputs: A, [batch, m, n].
        outputs: L below the diagonal, whose own is of ones, and U, [batch, m, n]; pivots,
            [batch, min(m, n)] of int32: the number (from 1) of the row that a row was exchanged
            with; info, [batch] of int32: 0, or the number (from 1) of the first pivot of zero.
    """
    batch, m, n = inputs[0].shape
    with code.loop(batch) as b:
        a, factors, pivots, info = (Part(each, (b,)) for each in (*inputs, *outputs))
        rows = code.array((m, n), a.element, batch, b)
        failed = code.array((1,), integer(32), batch, b)
        best = code.array((1,), a.element, batch, b)
        chosen = code.array((1,), integer(32), batch, b)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(a, (i, j), rows, (i, j))
        code.fill(0, failed, 0)
        with code.loop(min(m, n)) as k:
            row = _pivot_row(code, rows, k, best, chosen)
            code.store(code.plus(row, 1), pivots, k)
            _exchange(code, rows, k, row)
            _eliminate(code, rows, k, failed)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(rows, (i, j), factors, (i, j))
        code.copy(failed, (0,), info, ())


def _pivot_row(code: Code, rows: Part, k: Expr, best: Part, chosen: Part) -> Value:
    """The row from ``k`` on whose element in column ``k`` is the largest, an int32."""
    m, _ = rows.shape
    code.store(code.magnitude(code.load(rows, k, k)), best, 0)
    code.store(code.number(k), chosen, 0)
    with code.loop(m, lower=k + 1) as i:
        size, most = code.magnitude(code.load(rows, i, k)), code.load(best, 0)
        larger = code.greater(size, most)
        code.store(code.select(larger, size, most), best, 0)
        row = code.select(larger, code.number(i), code.load(chosen, 0))
        code.store(row, chosen, 0)
    return code.load(chosen, 0)


def _exchange(code: Code, rows: Part, k: Expr, row: Value) -> None:
    """Exchange two whole rows."""
    _, n = rows.shape
    there = code.place(row)
    with code.loop(n) as j:
        other, own = code.load_at(rows, there, j), code.load(rows, k, j)
        code.store_at(own, rows, there, j)
        code.store(other, rows, k, j)


def _eliminate(code: Code, rows: Part, k: Expr, failed: Part) -> None:
    """Subtract multiples of row ``k`` from the rows behind it, and keep the multipliers."""
    m, n = rows.shape
    pivot = code.load(rows, k, k)
    zero = code.equal_zero(pivot)
    code.note_first(zero, k + 1, failed)
    # A column of zeros stays one.
    lift = code.lift(code.magnitude(pivot))
    divisor = code.multiply(code.select(zero, code.like(1.0, pivot), pivot), lift)
    with code.loop(m, lower=k + 1) as i:
        factor = code.divide(code.multiply(code.load(rows, i, k), lift), divisor)
        code.store(factor, rows, i, k)
        with code.loop(n, lower=k + 1) as j:
            code.subtract_from(code.multiply(factor, code.load(rows, k, j)), rows, i, j)


def permutation(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that apply exchanges of rows to their numbers.

    Args:
        code: where to write.
        inputs: pivots, [batch, k] of int32, from 1.
        outputs: [batch, n] of int32: which row comes to each place, and the place of each row.
    """
    batch, n = outputs[0].shape
    with code.loop(batch) as b:
        given, rows, places = (Part(each, (b,)) for each in (*inputs, *outputs))
        with code.loop(n) as i:
            code.store(code.number(i), rows, i)
        with code.loop(given.shape[0]) as k:
            there = code.place(code.bounded(code.plus(code.load(given, k), -1), n))
            other, own = code.load_at(rows, there), code.load(rows, k)
            code.store_at(own, rows, there)
            code.store(other, rows, k)
        with code.loop(n) as i:
            code.store_at(code.number(i), places, code.place(code.load(rows, i)))
