"""Systems of linear equations with a triangular matrix."""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.model import Buffer
from polyblocks.algorithms.code import Code, Part


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
    with code.loop(batch) as b:
        t, right, x = (Part(each, (b,)) for each in (*inputs, *outputs))
        with code.loop(n) as i, code.loop(m) as j:
            code.copy(right, (i, j), x, (i, j))
        with code.loop(n) as step:
            i = step * -1 + (n - 1) if upper else step
            with code.loop(n, upper=step) as before:
                k = before * -1 + (n - 1) if upper else before
                factor = code.load(t, i, k)
                with code.loop(m) as j:
                    code.subtract_from(code.multiply(factor, code.load(x, k, j)), x, i, j)
            if not unit:
                pivot = code.load(t, i, i)
                with code.loop(m) as j:
                    code.store(code.divide(code.load(x, i, j), pivot), x, i, j)
