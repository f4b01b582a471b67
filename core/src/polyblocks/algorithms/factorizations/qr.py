"""QR by Householder reflections, in the form that LAPACK gives it."""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer
from polyblocks.algorithms.code import Code, Part
from polyblocks.algorithms.factorizations.block_reflector import PANEL, BlockReflector
from polyblocks.algorithms.factorizations.lu import is_small

#: Columns from which on reflections are applied by panels of them.
_BY_PANELS = 64
#: The most columns, fewer than lanes, and the fewest rows for each column of a matrix whose columns
#: are vectors themselves.
_FEW, _MANY = 16, 4


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
    if _is_tall(batch, m, n):
        _tall_householder(code, inputs, outputs)
        return
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


def _is_tall(batch: int, m: int, n: int) -> bool:
    """Whether a matrix has few columns, and long ones that are not scalars of lanes."""
    return n <= _FEW and m >= _MANY * n and m >= _FEW and not is_small(batch, m, n)


def _tall_householder(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """:func:`householder` of few long columns, which are rows of an array."""
    batch, m, n = inputs[0].shape
    with code.loop(batch) as b:
        a, packed, scales = (Part(each, (b,)) for each in (*inputs, *outputs))
        columns = code.array((n, m), a.element, batch, b)
        total = code.array((1,), a.element, batch, b)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(a, (i, j), columns, (j, i))
        with code.loop(n) as k:
            _reflection(code, columns, k, k, total, scales, turned=True)
            _reflect_columns(code, columns, columns, k, k + 1, scales, total)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(columns, (j, i), packed, (i, j))


def _reflect_columns(
    code: Code, vectors: Part, columns: Part, k: Expr, start: Expr, scales: Part, total: Part
) -> None:
    """:func:`_reflect` of columns that are rows of an array, as the vectors are.

    Args:
        code: where to write.
        vectors: what has the vector, as row ``k``.
        columns: what is changed, from ``start`` and from element ``k`` of each on.
        k: number of the reflection.
        start: the first column that is changed.
        scales: tau of all reflections.
        total: an array of one number.
    """
    n, m = columns.shape
    scale = code.load(scales, k)
    with code.loop(n, lower=start) as j:
        code.copy(columns, (j, k), total, (0,))
        with code.loop(m, lower=k + 1) as i:
            product = code.multiply(code.load(vectors, k, i), code.load(columns, j, i))
            code.add_to(product, total, 0)
        step = code.multiply(scale, code.load(total, 0))
        code.subtract_from(step, columns, j, k)
        with code.loop(m, lower=k + 1) as i:
            code.subtract_from(code.multiply(code.load(vectors, k, i), step), columns, j, i)


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


def _reflection(
    code: Code,
    rows: Part,
    k: Expr,
    column: Expr,
    total: Part,
    scales: Part,
    *,
    turned: bool = False,
) -> None:
    """Replace a column from row ``k`` on by its multiple and the reflection's vector.

    Columns are rows of the array if it is ``turned``.
    """
    m = rows.shape[1 if turned else 0]

    def at(i: Expr) -> tuple[Expr, Expr]:
        return (column, i) if turned else (i, column)

    first = code.load(rows, *at(k))
    # Squares of elements as they are could leave the type's range.
    code.fill(0.0, total, 0)
    with code.loop(m, lower=k) as i:
        size, most = code.magnitude(code.load(rows, *at(i))), code.load(total, 0)
        code.store(code.maximum(size, most), total, 0)
    largest = code.load(total, 0)
    none = code.equal_zero(largest)
    lift = code.lift(largest)
    unit = code.multiply(code.select(none, code.like(1.0, largest), largest), lift)
    inverse = code.reciprocal(unit)
    code.fill(0.0, total, 0)
    with code.loop(m, lower=k + 1) as i:
        x = code.multiply(code.multiply(code.load(rows, *at(i)), lift), inverse)
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
        x = code.multiply(code.load(rows, *at(i)), lift)
        code.store(code.multiply(x, inverse), rows, *at(i))
    code.store(code.select(nothing, first, length), rows, *at(k))


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
    if _is_tall(batch, m, outputs[0].shape[2]) and _is_tall(batch, m, inputs[0].shape[2]):
        _tall_reflections(code, inputs, outputs)
        return
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


def _tall_reflections(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """:func:`reflections` for few long columns, which are rows of an array."""
    batch, m, n = inputs[0].shape
    count = inputs[1].shape[1]
    with code.loop(batch) as b:
        given, scales, q = (Part(each, (b,)) for each in (*inputs, *outputs))
        width = q.shape[1]
        vectors = code.array((n, m), q.element, batch, b)
        columns = code.array((width, m), q.element, batch, b)
        total = code.array((1,), q.element, batch, b)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(given, (i, j), vectors, (j, i))
        with code.loop(width) as j, code.loop(m) as i:
            code.fill(0.0, columns, j, i)
        with code.loop(width) as j:
            code.fill(1.0, columns, j, j)
        with code.loop(count) as step:
            k = step * -1 + (count - 1)
            _reflect_columns(code, vectors, columns, k, k, scales, total)
        with code.loop(m) as i, code.loop(width) as j:
            code.copy(columns, (j, i), q, (i, j))
