"""Eigenvalues of symmetric matrices, and singular values, without vectors.

Reflections make a symmetric matrix tridiagonal, and any matrix bidiagonal, with the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.algorithms.code import Code, Part
from polyblocks.algorithms.factorizations.bidiagonal_qr import LEAST, singular_vectors
from polyblocks.algorithms.factorizations.bisection import bisect
from polyblocks.algorithms.factorizations.implicit_qr import symmetric_eigen
from polyblocks.algorithms.factorizations.limits import are_many
from polyblocks.algorithms.factorizations.reductions import (
    Reduction,
    make_bidiagonal,
    make_tridiagonal,
)


def symmetric_values(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that find eigenvalues.

    Args:
        code: where to write.
        inputs: A, [batch, n, n]; its part above the diagonal is not used.
        outputs: eigenvalues in ascending order, [batch, n].
    """
    batch, n, _ = inputs[0].shape
    if are_many(batch, n, n):
        symmetric_eigen(code, inputs, outputs)
        return
    with code.loop(batch) as b:
        a, values = (Part(each, (b,)) for each in (*inputs, *outputs))
        work = Reduction.of(code, n, n, a.element, batch, b)
        work.take_symmetric(a)
        make_tridiagonal(code, work)
        # Gershgorin: no eigenvalue is farther from zero than a row is long.
        bound = work.bound()
        work.square(work.beside)

        def step(tried: Value, state: Value, i: Expr) -> tuple[Value, Callable[[Value], Value]]:
            pivot = code.subtract(code.subtract(code.load(work.diagonal, i), tried), state)
            square = code.load(work.beside, i + 1)
            return pivot, lambda pivot: code.divide(square, pivot)

        found = code.array((n,), a.element, batch, b)
        bounds = code.negate(bound), bound
        bisect(code, bounds, found, lambda x: code.like(0.0, x), step, batch, b)
        work.write(found, values)


def singular_values(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that find singular values.

    Args:
        code: where to write.
        inputs: A, [batch, n, m], n at most m.
        outputs: singular values in descending order, [batch, n].
    """
    batch, n, m = inputs[0].shape
    if are_many(batch, n, m) and n < LEAST:
        singular_vectors(code, inputs, outputs)
        return
    with code.loop(batch) as b:
        a, values = (Part(each, (b,)) for each in (*inputs, *outputs))
        work = Reduction.of(code, n, m, a.element, batch, b)
        work.take(a)
        make_bidiagonal(code, work)
        # Longer than any row and any column, whose product bounds the square of a value.
        bound = work.bound()
        work.square(work.diagonal)
        work.square(work.beside)

        def step(tried: Value, state: Value, i: Expr) -> tuple[Value, Callable[[Value], Value]]:
            # The matrix times its transpose is L D L^T; this is the stationary transform of it.
            pivot = code.add(code.load(work.diagonal, i), state)
            square = code.load(work.beside, i + 1)

            def following(pivot: Value) -> Value:
                ratio = code.multiply(code.divide(state, pivot), square)
                return code.subtract(ratio, code.multiply(tried, tried))

            return pivot, following

        found = code.array((n,), a.element, batch, b)
        bounds = code.like(0.0, bound), bound
        bisect(code, bounds, found, lambda x: code.negate(code.multiply(x, x)), step, batch, b)
        work.write(found, values, descending=True)
