"""Eigenvalues and eigenvectors of symmetric matrices by the implicit QR algorithm.

Reflections make the matrix tridiagonal; sweeps of rotations with Wilkinson's shift then annihilate
its subdiagonal, from the last element on. That takes a third of the operations of Jacobi's method.

The number of sweeps is fixed, so that matrices can be lanes: each has its own active block, and
rotations outside of it are identities.

Golub and Van Loan, Matrix Computations, 4th edition, 8.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Index, Part
from polyblocks.algorithms.factorizations.jacobi import (
    identity,
    in_order,
    ranks,
    rotate_symmetric,
    rounding_of,
    tiny,
    write_in_order,
)
from polyblocks.algorithms.factorizations.lu import is_small
from polyblocks.algorithms.factorizations.reductions import Reduction, make_tridiagonal

#: Sweeps for each eigenvalue, and eigenvalues more than there are. Of random matrices, clustered
#: and graded spectra, float32 takes 2.1 for each and 6 for the first, float64 2.6 and 7.
_SWEEPS, _MORE = 3, 2
#: The fewest rows from which on that is faster than Jacobi's method.
_LEAST = 5


def symmetric_eigen(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that find eigenvalues and eigenvectors.

    Args:
        code: where to write.
        inputs: A, [batch, n, n]; its part above the diagonal is not used.
        outputs: eigenvalues in ascending order, [batch, n]; the eigenvector of each as a row,
            [batch, n, n], which can be missing.
    """
    batch, n, _ = inputs[0].shape
    if n < _LEAST:
        rotate_symmetric(code, inputs, outputs)
        return
    with code.loop(batch) as b:
        a, values, *vectors = (Part(each, (b,)) for each in (*inputs, *outputs))
        work = Reduction.of(code, n, n, a.element, batch, b)
        turned = [code.array((n, n), a.element, batch, b) for _ in vectors]
        scales = code.array((n,), a.element, batch, b)
        work.take_symmetric(a)
        make_tridiagonal(code, work, scales)
        for each in turned:
            _multiply_reflections(code, work, scales, each)
        sweep = _Sweep.of(code, work, batch, b)
        with code.loop(n - 1 + _MORE) as k, code.loop(_SWEEPS):
            end = k * -1 + (n - 1 + _MORE)
            sweep.find_block(end)
            sweep.rotate(end, turned)
        places = code.array((n,), integer(32), batch, b)
        sorted_values = code.array((n,), a.element, batch, b)
        ranks(code, lambda i: code.load(work.diagonal, i), n, places)
        in_order(code, places, lambda i, _: code.load(work.diagonal, i), sorted_values)
        work.write(sorted_values, values)
        for source, to in zip(turned, vectors, strict=True):
            if is_small(batch, n, n):
                write_in_order(code, places, source, work.rows, to)
                continue
            with code.loop(n) as i:
                place = code.place(code.load(places, i))
                with code.loop(n) as j:
                    code.store_at(code.load(source, i, j), to, place, j)


def _multiply_reflections(code: Code, work: Reduction, scales: Part, product: Part) -> None:
    """Write the transpose of the product of the reflections of a reduction, [n, n]."""
    vectors, total = work.rows, work.total
    n, _ = vectors.shape
    identity(code, product)
    with code.loop(n - 1) as step:
        k = step * -1 + (n - 2)
        scale = code.load(scales, k)
        with code.loop(n, lower=k + 1) as i:
            code.fill(0.0, total, 0)
            with code.loop(n, lower=k + 1) as j:
                x = code.multiply(code.load(product, i, j), code.load(vectors, k, j))
                code.add_to(x, total, 0)
            factor = code.multiply(scale, code.load(total, 0))
            with code.loop(n, lower=k + 1) as j:
                code.subtract_from(code.multiply(factor, code.load(vectors, k, j)), product, i, j)


@dataclass(frozen=True)
class _Sweep:
    """Sweeps of rotations of a tridiagonal matrix.

    Attributes:
        code: where to write.
        diagonal: [n].
        beside: the subdiagonal between zeros, [n + 1].
        negligible: magnitudes of the subdiagonal that are as good as zero, at most, [1].
        block: first and last row of the active block, and the three elements a, b, c of its last
            two rows ``[[a, b], [b, c]]``, [5].
        chased: the element beside the diagonal and the bulge that the next rotation annihilates,
            [2].
    """

    code: Code
    diagonal: Part
    beside: Part
    negligible: Part
    block: Part
    chased: Part

    @staticmethod
    def of(code: Code, work: Reduction, batch: int, b: Index) -> _Sweep:
        element = work.rows.element
        arrays = (code.array((size,), element, batch, b) for size in (1, 5, 2))
        sweep = _Sweep(code, work.diagonal, work.beside, *arrays)
        bound = work.bound()
        rounding = code.constant(rounding_of(element), element)
        code.store(code.multiply(bound, rounding), sweep.negligible, 0)
        return sweep

    def find_block(self, end: Expr) -> None:
        """Find the last block up to row ``end``, and set negligible elements to zero."""
        code, block = self.code, self.block
        n = self.diagonal.shape[0]
        negligible = code.load(self.negligible, 0)
        for number in range(5):
            code.fill(0.0, block, number)
        with code.loop(n - 1, upper=end) as i:
            beside = code.load(self.beside, i + 1)
            matters = code.greater(code.magnitude(beside), negligible)
            beside = code.select(matters, beside, code.like(0.0, beside))
            code.store(beside, self.beside, i + 1)
            begins = code.both(matters, code.equal_zero(code.load(self.beside, i)))
            ends = code.load(self.diagonal, i), beside, code.load(self.diagonal, i + 1)
            marks = [(begins, code.real(i, beside.type)), (matters, code.real(i + 1, beside.type))]
            marks += [(matters, value) for value in ends]
            for number, (condition, value) in enumerate(marks):
                before = code.load(block, number)
                code.store(code.select(condition, value, before), block, number)

    def _shifted(self) -> tuple[Value, Value]:
        """Wilkinson's shift in two parts: one to subtract from a diagonal element, one to add.

        Their sum would round away an offset that is small beside an eigenvalue.
        """
        code = self.code
        first, beside, last = (code.load(self.block, number) for number in (2, 3, 4))
        half = code.multiply(code.subtract(first, last), code.like(0.5, first))
        square = code.multiply(beside, beside)
        root = code.sqrt(code.add(code.multiply(half, half), square))
        divisor = code.add(half, code.with_sign_of(root, half))
        divisor = code.select(code.equal_zero(divisor), code.like(1.0, divisor), divisor)
        return last, code.divide(square, divisor)

    def rotate(self, end: Expr, turned: Sequence[Part]) -> None:
        """One sweep of the block; rows of ``turned`` are rotated alike."""
        code, n = self.code, self.diagonal.shape[0]
        first_row, last_row = code.load(self.block, 0), code.load(self.block, 1)
        last, offset = self._shifted()
        for number in range(2):
            code.fill(0.0, self.chased, number)
        with code.loop(n - 1, upper=end) as i:
            p, q, beside = (
                code.load(part, *at)
                for part, at in (
                    (self.diagonal, (i,)),
                    (self.diagonal, (i + 1,)),
                    (self.beside, (i + 1,)),
                )
            )
            row = code.real(i, p.type)
            first = code.same_number(row, first_row)
            inside = code.both(
                code.negated(code.greater(first_row, row)), code.greater(last_row, row)
            )
            begun = code.add(code.subtract(p, last), offset)
            x = code.select(first, begun, code.load(self.chased, 0))
            z = code.select(first, beside, code.load(self.chased, 1))
            # Squares that are inexact are nothing beside the matrix.
            square = code.add(code.multiply(x, x), code.multiply(z, z))
            matters = code.greater(square, code.like(tiny(p.type), square))
            one, zero = code.like(1.0, p), code.like(0.0, p)
            length = code.select(matters, code.sqrt(square), zero)
            before = code.load(self.beside, i)
            keeps = code.both(inside, code.negated(first))
            code.store(code.select(keeps, length, before), self.beside, i)
            matters = code.both(matters, inside)
            inverse = code.reciprocal(code.select(matters, length, one))
            cosine = code.select(matters, code.multiply(x, inverse), one)
            sine = code.select(matters, code.multiply(z, inverse), zero)
            self._turn(i, (p, q, beside), cosine, sine)
            for each in turned:
                with code.loop(n) as j:
                    y, w = code.load(each, i, j), code.load(each, i + 1, j)
                    up = code.add(code.multiply(cosine, y), code.multiply(sine, w))
                    down = code.subtract(code.multiply(cosine, w), code.multiply(sine, y))
                    code.store(up, each, i, j)
                    code.store(down, each, i + 1, j)

    def _turn(
        self, i: Expr, elements: tuple[Value, Value, Value], cosine: Value, sine: Value
    ) -> None:
        """Rotate rows and columns ``i`` and ``i + 1`` of the matrix."""
        code = self.code
        p, q, beside = elements

        twice = code.add(cosine, cosine)
        change = code.add(code.multiply(sine, code.subtract(q, p)), code.multiply(twice, beside))
        left = code.subtract(code.multiply(cosine, change), beside)
        change = code.multiply(sine, change)
        code.store(code.add(p, change), self.diagonal, i)
        code.store(code.subtract(q, change), self.diagonal, i + 1)
        code.store(left, self.beside, i + 1)
        code.store(left, self.chased, 0)
        after = code.load(self.beside, i + 2)
        code.store(code.multiply(sine, after), self.chased, 1)
        code.store(code.multiply(cosine, after), self.beside, i + 2)
