"""QR by Householder reflections, in the form that LAPACK gives it."""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer
from polyblocks.algorithms.code import Code, Part


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
        with code.loop(min(m, n)) as k:
            _reflection(code, rows, k, total, scales)
            _reflect(code, rows, rows, k, k + 1, scales, sums)
        with code.loop(m) as i, code.loop(n) as j:
            code.copy(rows, (i, j), packed, (i, j))


def _reflection(code: Code, rows: Part, k: Expr, total: Part, scales: Part) -> None:
    """Replace column ``k`` from the diagonal on by its multiple and the reflection's vector."""
    m, _ = rows.shape
    first = code.load(rows, k, k)
    # Squares of elements as they are could leave the type's range.
    code.fill(0.0, total, 0)
    with code.loop(m, lower=k) as i:
        size, most = code.magnitude(code.load(rows, i, k)), code.load(total, 0)
        code.store(code.maximum(size, most), total, 0)
    largest = code.load(total, 0)
    none = code.equal_zero(largest)
    lift = code.lift(largest)
    unit = code.multiply(code.select(none, code.like(1.0, largest), largest), lift)
    inverse = code.reciprocal(unit)
    code.fill(0.0, total, 0)
    with code.loop(m, lower=k + 1) as i:
        x = code.multiply(code.multiply(code.load(rows, i, k), lift), inverse)
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
        x = code.multiply(code.load(rows, i, k), lift)
        code.store(code.multiply(x, inverse), rows, i, k)
    code.store(code.select(nothing, first, length), rows, k, k)


def _reflect(
    code: Code, vectors: Part, rows: Part, k: Expr, start: Expr, scales: Part, sums: Part
) -> None:
    """Apply reflection ``k`` to columns of ``rows`` from ``start`` on."""
    m, n = rows.shape
    with code.loop(n, lower=start) as j:
        code.copy(rows, (k, j), sums, (j,))
    with code.loop(m, lower=k + 1) as i:
        v = code.load(vectors, i, k)
        with code.loop(n, lower=start) as j:
            code.add_to(code.multiply(v, code.load(rows, i, j)), sums, j)
    scale = code.load(scales, k)
    with code.loop(n, lower=start) as j:
        step = code.multiply(scale, code.load(sums, j))
        code.store(step, sums, j)
        code.subtract_from(step, rows, k, j)
    with code.loop(m, lower=k + 1) as i:
        v = code.load(vectors, i, k)
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
        with code.loop(count) as step:
            k = step * -1 + (count - 1)
            _reflect(code, vectors, rows, k, k, scales, sums)
        with code.loop(m) as i, code.loop(columns) as j:
            code.copy(rows, (i, j), q, (i, j))
