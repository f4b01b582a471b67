"""LU with partial pivoting: rows of a matrix in another order are L times U."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Index, Part
from polyblocks.algorithms.factorizations.grid import lu as on_grid
from polyblocks.algorithms.factorizations.limits import MOST_SELECTED, by_grid

#: Columns that are eliminated behind each other before the ones behind them are changed, once for
#: all of these.
_PANEL = 32
#: Rows and columns from which on a matrix is factorized by panels; smaller ones stay in a cache.
_BY_PANELS = 64
#: Rows that are changed together, and rows that are subtracted from them at a time: their factors
#: are in registers.
_TOGETHER = 4
#: Columns that are changed at a time: rows of a panel stay in a cache.
_COLUMNS = 128
#: Columns behind a matrix: a line of a cache and more.
_UNUSED = 16


@dataclass(frozen=True)
class _Work:
    """Arrays of a factorization.

    Attributes:
        rows: what is left of the matrix, [m, n], and columns that are not used.
        columns: n.
        pivots: as :func:`lu` returns them.
        failed: the first pivot of zero, [1].
        best, chosen: the largest magnitude of a column so far, and its row, [1].
    """

    rows: Part
    columns: int
    pivots: Part
    failed: Part
    best: Part
    chosen: Part


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
    if is_small(batch, m, n):
        _small_lu(code, inputs, outputs)
        return
    if by_grid(min(m, n)):
        on_grid.lu(code, inputs, outputs)
        return
    with code.loop(batch) as b:
        a, factors, pivots, info = (Part(each, (b,)) for each in (*inputs, *outputs))
        # Elements of a column could be a power of two apart, and meet in one set of a cache.
        unused = _UNUSED if n % _COLUMNS == 0 else 0
        rows = code.array((m, n + unused), a.element, batch, b)
        failed = code.array((1,), integer(32), batch, b)
        best = code.array((1,), a.element, batch, b)
        chosen = code.array((1,), integer(32), batch, b)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(a, (i, j), rows, (i, j))
        code.fill(0, failed, 0)
        work = _Work(rows, n, pivots, failed, best, chosen)
        steps = min(m, n)
        whole = steps // _PANEL if steps >= _BY_PANELS else 0
        with code.loop(whole) as panel:
            _panel(code, work, panel * _PANEL, _PANEL)
            _update(code, work, panel * _PANEL)
        _panel(code, work, Expr(whole * _PANEL), steps - whole * _PANEL)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(rows, (i, j), factors, (i, j))
        code.copy(failed, (0,), info, ())


def is_small(batch: int, m: int, n: int) -> bool:
    """Whether there are many matrices, and rows can be chosen by going through all of them.

    No index depends on the elements then, and a lane of a vector can be a matrix.
    """
    return batch > 1 and max(m, n) <= MOST_SELECTED


def _small_lu(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """:func:`lu` of small matrices."""
    batch, m, n = inputs[0].shape
    with code.loop(batch) as b:
        a, factors, pivots, info = (Part(each, (b,)) for each in (*inputs, *outputs))
        rows = code.array((m, n), a.element, batch, b)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(a, (i, j), rows, (i, j))
        work = Elimination.of(code, rows, min(m, n), batch, b)
        eliminate(code, work)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(rows, (i, j), factors, (i, j))
        with code.loop(min(m, n)) as k:
            code.copy(work.pivots, (k,), pivots, (k,))
        code.copy(work.failed, (0,), info, ())


@dataclass(frozen=True)
class Elimination:
    """Arrays of an elimination that chooses rows by going through all of them.

    Attributes:
        rows: what is left of the matrix, and of what stands beside it, [m, columns].
        pivots: as :func:`lu` returns them.
        failed: the first pivot of zero, [1].
        best, chosen: the largest magnitude of a column so far, and its row, [1].
        held, picked: the pivot's row before the exchange and after it, [columns].
    """

    rows: Part
    pivots: Part
    failed: Part
    best: Part
    chosen: Part
    held: Part
    picked: Part

    @staticmethod
    def of(code: Code, rows: Part, steps: int, batch: int, b: Index) -> Elimination:
        """With new arrays for all but the rows, see :meth:`Code.array`."""
        _, columns = rows.shape
        pivots, failed, chosen = (
            code.array((extent,), integer(32), batch, b) for extent in (steps, 1, 1)
        )
        best, held, picked = (
            code.array((extent,), rows.element, batch, b) for extent in (1, columns, columns)
        )
        return Elimination(rows, pivots, failed, best, chosen, held, picked)


def eliminate(code: Code, work: Elimination) -> None:
    """Factorize as many columns as there are pivots, and change those behind them accordingly."""
    (steps,) = work.pivots.shape
    rows, held, picked = work.rows, work.held, work.picked
    m, columns = rows.shape
    code.fill(0, work.failed, 0)
    with code.loop(steps) as k:
        row = _pivot_row(code, rows, k, work.best, work.chosen)
        code.store(code.plus(row, 1), work.pivots, k)
        with code.loop(columns) as j:
            x = code.load(rows, k, j)
            code.store(x, held, j)
            code.store(x, picked, j)
        with code.loop(m, lower=k + 1) as i:
            here = code.same(row, code.number(i))
            with code.loop(columns) as j:
                x = code.select(here, code.load(rows, i, j), code.load(picked, j))
                code.store(x, picked, j)
        with code.loop(columns) as j:
            code.copy(picked, (j,), rows, (k, j))
        lift, divisor = code.divisor(code.load(picked, k), k + 1, work.failed)
        # As LAPACK has it: in vectors a division takes as long as ten products and more.
        reciprocal = code.reciprocal(divisor)
        with code.loop(m, lower=k + 1) as i:
            here = code.same(row, code.number(i))

            def exchanged(j: Expr, i: Expr = i, here: Value = here) -> Value:
                return code.select(here, code.load(held, j), code.load(rows, i, j))

            factor = code.multiply(code.multiply(exchanged(k), lift), reciprocal)
            with code.loop(columns, upper=k) as j:
                code.store(exchanged(j), rows, i, j)
            code.store(factor, rows, i, k)
            with code.loop(columns, lower=k + 1) as j:
                product = code.multiply(factor, code.load(picked, j))
                code.store(code.subtract(exchanged(j), product), rows, i, j)


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


def _exchange(code: Code, rows: Part, n: int, k: Expr, row: Value) -> None:
    """Exchange two rows of ``n`` columns."""
    there = code.place(row)
    with code.loop(n) as j:
        other, own = code.load_at(rows, there, j), code.load(rows, k, j)
        code.store_at(own, rows, there, j)
        code.store(other, rows, k, j)


def _panel(code: Code, work: _Work, first: Expr, size: int) -> None:
    """Factorize some columns, and compute the rows of U that they give.

    Args:
        code: where to write.
        work: the arrays.
        first: the first of the columns.
        size: how many there are.
    """
    rows, n = work.rows, work.columns
    with code.loop(size) as step:
        k = first + step
        row = _pivot_row(code, rows, k, work.best, work.chosen)
        code.store(code.plus(row, 1), work.pivots, k)
        _exchange(code, rows, n, k, row)
        _eliminate(code, work, k, first + size)
    with code.loop(size) as step, code.loop(size, upper=step) as before:
        factor = code.load(rows, first + step, first + before)
        with code.loop(n, lower=first + size) as j:
            product = code.multiply(factor, code.load(rows, first + before, j))
            code.subtract_from(product, rows, first + step, j)


def _eliminate(code: Code, work: _Work, k: Expr, end: Index) -> None:
    """Subtract multiples of row ``k`` from the rows behind it, up to a column; keep the factors."""
    rows, n = work.rows, work.columns
    m, _ = rows.shape
    lift, divisor = code.divisor(code.load(rows, k, k), k + 1, work.failed)
    with code.loop(m, lower=k + 1) as i:
        factor = code.divide(code.multiply(code.load(rows, i, k), lift), divisor)
        code.store(factor, rows, i, k)
        with code.loop(n, lower=k + 1, upper=end) as j:
            code.subtract_from(code.multiply(factor, code.load(rows, k, j)), rows, i, j)


def _update(code: Code, work: _Work, first: Expr) -> None:
    """Subtract the product of a panel's columns and its rows from what is behind both."""
    rows, n = work.rows, work.columns
    m, _ = rows.shape
    behind = first + _PANEL
    with code.loop(-(-n // _COLUMNS), lower=behind // _COLUMNS) as block:
        start = block * _COLUMNS
        for step, count in ((_TOGETHER, m // _TOGETHER), (1, m)):
            lower = behind // _TOGETHER if step > 1 else Expr(m // _TOGETHER * _TOGETHER)
            with code.loop(count, lower=lower) as group, code.loop(_PANEL // _TOGETHER) as part:
                mine = [group * step + a for a in range(step)]
                others = [part * _TOGETHER + first + u for u in range(_TOGETHER)]
                factors = [[code.load(rows, i, k) for k in others] for i in mine]
                with code.loop(_COLUMNS, lower=behind - start, upper=start * -1 + n) as j:
                    known = [code.load(rows, k, start + j) for k in others]
                    for i, row in zip(mine, factors, strict=True):
                        value = code.load(rows, i, start + j)
                        for factor, x in zip(row, known, strict=True):
                            value = code.subtract(value, code.multiply(factor, x))
                        code.store(value, rows, i, start + j)


def permutation(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that apply exchanges of rows to their numbers.

    Args:
        code: where to write.
        inputs: pivots, [batch, k] of int32, from 1.
        outputs: [batch, n] of int32: which row comes to each place, and the place of each row.
    """
    batch, n = outputs[0].shape
    if is_small(batch, n, n):
        _small_permutation(code, inputs, outputs)
        return
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


def _small_permutation(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """:func:`permutation` of few rows."""
    batch, n = outputs[0].shape
    with code.loop(batch) as b:
        given, rows, places = (Part(each, (b,)) for each in (*inputs, *outputs))
        order = code.array((n,), integer(32), batch, b)
        found = code.array((1,), integer(32), batch, b)
        write_order(code, given, order, found)
        with code.loop(n) as i:
            code.copy(order, (i,), rows, (i,))
            code.fill(0, found, 0)
            with code.loop(n) as k:
                here = code.same(code.load(order, k), code.number(i))
                place = code.select(here, code.number(k), code.load(found, 0))
                code.store(place, found, 0)
            code.copy(found, (0,), places, (i,))


def write_order(code: Code, pivots: Part, order: Part, found: Part) -> None:
    """Apply exchanges of rows to their numbers, going through all of them each time.

    Args:
        code: where to write.
        pivots: as :func:`lu` returns them.
        order: which row comes to each place, [n] of int32.
        found: an array of one int32 to work with.
    """
    (n,) = order.shape
    with code.loop(n) as i:
        code.store(code.number(i), order, i)
    with code.loop(pivots.shape[0]) as k:
        there = code.bounded(code.plus(code.load(pivots, k), -1), n)
        own = code.load(order, k)
        code.store(own, found, 0)
        with code.loop(n) as i:
            here = code.same(there, code.number(i))
            other = code.load(order, i)
            code.store(code.select(here, other, code.load(found, 0)), found, 0)
            code.store(code.select(here, own, other), order, i)
        code.copy(found, (0,), order, (k,))
