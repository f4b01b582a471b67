"""QR by Householder reflections, in the form that LAPACK gives it."""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer
from polyblocks.algorithms.code import Code, Part
from polyblocks.algorithms.factorizations.block_reflector import PANEL, BlockReflector

#: Columns from which on reflections are applied by panels of them.
_BY_PANELS = 64


def householder(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that reflect columns of matrices to multiples of unit vectors.

    A reflection is ``I - tau v v^T``, with a one in front of what is stored of ``v``.

    Args:
        code: where to write.
        inputs: A, [batch, m, n].
        outputs: R from the diagonal on, and below it the vectors, [batch, m, n]; tau,
            [batch, min(m, n)].
    """
    batch, m, n = inputs[0].shape
    with code.loop(batch) as b:
        a, packed, scales = (Part(each, (b,)) for each in (*inputs, *outputs))
        rows = code.array((m, n), a.element, batch, b)
        sums = code.array((n,), a.element, batch, b)
        total = code.array((1,), a.element, batch, b)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(a, (i, j), rows, (i, j))
        count = min(m, n)
        panels = count // PANEL if count >= _BY_PANELS else 0
        if panels:
            reflector = BlockReflector.of(code, m, scales, batch, b)
            with code.loop(panels) as panel:
                first = panel * PANEL
                _panel(code, rows, reflector.vectors, first, total, scales, sums)
                reflector.prepare(first)
                reflector.apply(rows, first, first + PANEL, transposed=True)
        with code.loop(count, lower=panels * PANEL) as k:
            _reflection(code, rows, k, k, total, scales)
            _reflect(code, rows, rows, k, k, k + 1, scales, sums)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(rows, (i, j), packed, (i, j))


def _panel(
    code: Code, rows: Part, panel: Part, first: Expr, total: Part, scales: Part, sums: Part
) -> None:
    """Reflect the columns of a panel, in an array of its own, and copy them back."""
    m, _ = rows.shape
    with code.loop(m, lower=first) as i, code.loop(PANEL) as u:
        code.copy(rows, (i, first + u), panel, (i, u))
    with code.loop(PANEL) as u:
        _reflection(code, panel, first + u, u, total, scales)
        _reflect(code, panel, panel, first + u, u, u + 1, scales, sums)
    with code.loop(m, lower=first) as i, code.loop(PANEL) as u:
        code.copy(panel, (i, u), rows, (i, first + u))


def _reflection(code: Code, rows: Part, k: Expr, column: Expr, total: Part, scales: Part) -> None:
    """Replace a column from row ``k`` on by its multiple and the reflection's vector."""
    m, _ = rows.shape
    first = code.load(rows, k, column)
    # Squares of elements as they are could leave the type's range.
    code.fill(0.0, total, 0)
    with code.loop(m, lower=k) as i:
        size, most = code.magnitude(code.load(rows, i, column)), code.load(total, 0)
        code.store(code.maximum(size, most), total, 0)
    largest = code.load(total, 0)
    none = code.equal_zero(largest)
    lift = code.lift(largest)
    unit = code.multiply(code.select(none, code.like(1.0, largest), largest), lift)
    inverse = code.reciprocal(unit)
    code.fill(0.0, total, 0)
    with code.loop(m, lower=k + 1) as i:
        x = code.multiply(code.multiply(code.load(rows, i, column), lift), inverse)
        code.add_to(code.multiply(x, x), total, 0)
    behind = code.load(total, 0)
    start = code.multiply(code.multiply(first, lift), inverse)
    norm = code.multiply(code.sqrt(code.add(behind, code.multiply(start, start))), largest)
    length = code.negate(code.with_sign_of(norm, first))
    # Without anything behind the first element there is nothing to reflect.
    nothing = code.equal_zero(behind)
    safe = code.select(nothing, code.like(1.0, length), length)
    scale = code.divide(code.subtract(safe, first), safe)
    code.store(code.select(nothing, code.like(0.0, scale), scale), scales, k)
    distance = code.subtract(first, safe)
    distance = code.select(nothing, code.like(1.0, distance), distance)
    # The distance is at least as long as any element: its reciprocal is finite once it is lifted.
    inverse = code.reciprocal(code.multiply(distance, lift))
    with code.loop(m, lower=k + 1) as i:
        x = code.multiply(code.load(rows, i, column), lift)
        code.store(code.multiply(x, inverse), rows, i, column)
    code.store(code.select(nothing, first, length), rows, k, column)


def _reflect(
    code: Code,
    vectors: Part,
    rows: Part,
    k: Expr,
    column: Expr,
    start: Expr,
    scales: Part,
    sums: Part,
) -> None:
    """Apply reflection ``k``, whose vector is in a column, to columns of ``rows``.

    Args:
        code: where to write.
        vectors: what has the column.
        rows: what is changed, from row ``k`` on.
        k: number of the reflection.
        column: where its vector is.
        start: the first column that is changed.
        scales: tau of all reflections.
        sums: an array of one number for each column.
    """
    m, n = rows.shape
    with code.loop(n, lower=start) as j:
        code.copy(rows, (k, j), sums, (j,))
    with code.loop(m, lower=k + 1) as i:
        v = code.load(vectors, i, column)
        with code.loop(n, lower=start) as j:
            code.add_to(code.multiply(v, code.load(rows, i, j)), sums, j)
    scale = code.load(scales, k)
    with code.loop(n, lower=start) as j:
        step = code.multiply(scale, code.load(sums, j))
        code.store(step, sums, j)
        code.subtract_from(step, rows, k, j)
    with code.loop(m, lower=k + 1) as i:
        v = code.load(vectors, i, column)
        with code.loop(n, lower=start) as j:
            code.subtract_from(code.multiply(v, code.load(sums, j)), rows, i, j)


def reflections(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that multiply reflections: the first columns of an orthogonal matrix.

    Args:
        code: where to write.
        inputs: vectors below the diagonal, [batch, m, n]; tau, [batch, count].
        outputs: Q, [batch, m, columns].
    """
    batch, m, _ = inputs[0].shape
    count = inputs[1].shape[1]
    with code.loop(batch) as b:
        vectors, scales, q = (Part(each, (b,)) for each in (*inputs, *outputs))
        columns = q.shape[1]
        rows = code.array((m, columns), q.element, batch, b)
        sums = code.array((columns,), q.element, batch, b)
        with code.loop(m) as i, code.loop(columns) as j:
            code.fill(0.0, rows, i, j)
        with code.loop(min(m, columns)) as i:
            code.fill(1.0, rows, i, i)
        panels = count // PANEL if count >= _BY_PANELS else 0
        rest = count - panels * PANEL
        with code.loop(rest) as step:
            k = step * -1 + (count - 1)
            _reflect(code, vectors, rows, k, k, k, scales, sums)
        if panels:
            reflector = BlockReflector.of(code, m, scales, batch, b)
            with code.loop(panels) as step:
                first = (step * -1 + (panels - 1)) * PANEL
                with code.loop(m, lower=first) as i, code.loop(PANEL) as u:
                    code.copy(vectors, (i, first + u), reflector.vectors, (i, u))
                reflector.prepare(first)
                reflector.apply(rows, first, first, transposed=False)
        with code.loop(m) as i, code.loop(columns) as j:
            code.copy(rows, (i, j), q, (i, j))
