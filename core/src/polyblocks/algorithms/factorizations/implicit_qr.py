"""Eigenvalues and eigenvectors of symmetric matrices by the implicit QR algorithm.

Reflections make the matrix tridiagonal; sweeps of rotations with Wilkinson's shift then annihilate
its subdiagonal, from the last element on. That takes a third of the operations of Jacobi's method.

The number of sweeps is fixed, so that matrices can be lanes: each has its own active block, and
rotations outside of it are identities.

Golub and Van Loan, Matrix Computations, 4th edition, 8.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Index, Part
from polyblocks.algorithms.factorizations.jacobi import (
    in_order,
    ranks,
    rotate_symmetric,
    rounding_of,
    tiny,
    write_in_order,
)
from polyblocks.algorithms.factorizations.lu import is_small
from polyblocks.algorithms.factorizations.reductions import (
    Reduction,
    Reflections,
    make_tridiagonal,
    multiply_reflections,
)

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
            multiply_reflections(code, work, Reflections(scales, below=1), each)
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
            write_permuted(code, places, source, work.rows, to, batch)


def write_permuted(
    code: Code, places: Part, rows: Part, sorted_rows: Part, to: Part, batch: int
) -> None:
    """Write the first rows to their places, and the others as they are.

    Args:
        code: where to write.
        places: of the first rows, [n].
        rows: [n …, m].
        sorted_rows: an array to use, at least [n, m].
        to: the rows in order.
        batch: how many matrices there are.
    """
    (n,), (count, m) = places.shape, rows.shape
    with code.loop(count, lower=n) as i, code.loop(m) as j:
        code.copy(rows, (i, j), to, (i, j))
    if is_small(batch, n, m):
        write_in_order(code, places, rows, sorted_rows, to)
        return
    with code.loop(n) as i:
        place = code.place(code.load(places, i))
        with code.loop(m) as j:
            code.store_at(code.load(rows, i, j), to, place, j)


def angle(code: Code, x: Value, z: Value, inside: Value) -> tuple[Value, Value, Value]:
    """The rotation that turns ``(x, z)`` into ``(length, 0)``.

    Args:
        code: where to write.
        x: a number.
        z: another one.
        inside: whether there is a rotation, not the identity.

    Returns:
        Its cosine and sine, and the length, also where there is no rotation.
    """
    # Squares that are inexact are nothing beside the matrix.
    square = code.add(code.multiply(x, x), code.multiply(z, z))
    matters = code.greater(square, code.like(tiny(x.type), square))
    one, zero = code.like(1.0, x), code.like(0.0, x)
    length = code.select(matters, code.sqrt(square), zero)
    matters = code.both(matters, inside)
    inverse = code.reciprocal(code.select(matters, length, one))
    cosine = code.select(matters, code.multiply(x, inverse), one)
    return cosine, code.select(matters, code.multiply(z, inverse), zero), length


def is_inside(code: Code, block: Part, i: Expr) -> tuple[Value, Value]:
    """Whether row ``i`` is the first one of a block, and whether it is in it but not its last one.

    Args:
        code: where to write.
        block: its first and its last row.
        i: a row.
    """
    first, last = code.load(block, 0), code.load(block, 1)
    row = code.real(i, first.type)
    inside = code.both(code.negated(code.greater(first, row)), code.greater(last, row))
    return code.same_number(row, first), inside


def rotate_rows(code: Code, rows: Part, i: Expr, cosine: Value, sine: Value) -> None:
    """Rotate rows ``i`` and ``i + 1``."""
    with code.loop(rows.shape[1]) as j:
        y, w = code.load(rows, i, j), code.load(rows, i + 1, j)
        up = code.add(code.multiply(cosine, y), code.multiply(sine, w))
        down = code.subtract(code.multiply(cosine, w), code.multiply(sine, y))
        code.store(up, rows, i, j)
        code.store(down, rows, i + 1, j)


@dataclass(frozen=True)
class Sweep:
    """Sweeps of rotations: the arrays of a matrix, and of its active block.

    Attributes:
        code: where to write.
        diagonal: [n].
        beside: the elements beside the diagonal, between zeros, [n + 1].
        negligible: magnitudes that are as good as zero, at most, [1].
        block: of the active block; first and last row, and what a sweep takes of its elements.
        chased: what the next rotation annihilates, and what else it takes.
    """

    #: Elements of ``block`` and of ``chased``, and roundings of the norm that are negligible.
    sizes: ClassVar[tuple[int, int]]
    roundings: ClassVar[int] = 1

    code: Code
    diagonal: Part
    beside: Part
    negligible: Part
    block: Part
    chased: Part

    @classmethod
    def of(cls, code: Code, work: Reduction, batch: int, b: Index) -> Self:
        element = work.rows.element
        arrays = (code.array((size,), element, batch, b) for size in (1, *cls.sizes))
        sweep = cls(code, work.diagonal, work.beside, *arrays)
        bound = work.bound()
        rounding = code.constant(cls.roundings * rounding_of(element), element)
        code.store(code.multiply(bound, rounding), sweep.negligible, 0)
        return sweep

    def mark(self, marks: Iterable[tuple[Value, Value]]) -> None:
        """Put values into the block's array, one behind the other, where conditions hold."""
        code = self.code
        for number, (condition, value) in enumerate(marks):
            before = code.load(self.block, number)
            code.store(code.select(condition, value, before), self.block, number)


@dataclass(frozen=True)
class _Sweep(Sweep):
    """Sweeps of rotations of a tridiagonal matrix.

    The block has the three elements a, b, c of its last two rows ``[[a, b], [b, c]]`` behind its
    rows; chased are the element beside the diagonal and the bulge.
    """

    sizes: ClassVar[tuple[int, int]] = (5, 2)

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
            self.mark(marks)

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
            first, inside = is_inside(code, self.block, i)
            begun = code.add(code.subtract(p, last), offset)
            x = code.select(first, begun, code.load(self.chased, 0))
            z = code.select(first, beside, code.load(self.chased, 1))
            cosine, sine, length = angle(code, x, z, inside)
            before = code.load(self.beside, i)
            keeps = code.both(inside, code.negated(first))
            code.store(code.select(keeps, length, before), self.beside, i)
            self._turn(i, (p, q, beside), cosine, sine)
            for each in turned:
                rotate_rows(code, each, i, cosine, sine)

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
