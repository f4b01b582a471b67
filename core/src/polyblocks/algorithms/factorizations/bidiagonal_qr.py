"""Singular values and vectors by the implicit QR algorithm of Golub and Kahan.

Reflections make the matrix bidiagonal; sweeps of rotations from both sides then annihilate what is
beside its diagonal, from the last element on. That takes a third of the operations of Jacobi's
method, which is left for very small matrices.

The number of sweeps is fixed, so that matrices can be lanes: each has its own active block, and
rotations outside of it are identities. A block with a zero on its diagonal is swept without a
shift, with the angles of Demmel and Kahan: one such sweep annihilates its last element.

Golub and Van Loan, Matrix Computations, 4th edition, 8.6; Demmel and Kahan, Accurate Singular
Values of Bidiagonal Matrices, 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from polyblocks.affine.element import dtype_of
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Buffer, Value
from polyblocks.affine.ops import integer
from polyblocks.algorithms.code import Code, Index, Part
from polyblocks.algorithms.factorizations.implicit_qr import (
    Sweep,
    angle,
    is_inside,
    rotate_rows,
    write_permuted,
)
from polyblocks.algorithms.factorizations.jacobi import (
    in_order,
    orthogonalize,
    ranks,
    rounding_of,
    tiny,
    write_in_order,
)
from polyblocks.algorithms.factorizations.reductions import (
    Reduction,
    Reflections,
    make_bidiagonal,
    make_lower,
    multiply_reflections,
)

#: Sweeps for each singular value.
_SWEEPS = 3
#: Values more than there are, by bits. Of 30,000 matrices of each of 13 kinds, among them clustered
#: spectra and random bidiagonal matrices, float32 takes 4.7 at most, and float64 6.7.
_MORE = {32: 6, 64: 9}
#: Elements beside the diagonal that are as good as zero, in roundings of the norm: with less,
#: sweeps of clustered values make as much as they annihilate. LAPACK takes 10 to 100.
_NEGLIGIBLE = 8
#: The fewest rows from which on that is faster than Jacobi's method.
LEAST = 5


def singular_vectors(code: Code, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write loops that find singular values and vectors.

    Args:
        code: where to write.
        inputs: A, [batch, n, m], n at most m.
        outputs: singular values in descending order, [batch, n]; left vectors as rows,
            [batch, n, n]; the first right ones as rows, [batch, n … m, m]. The vectors of fewer
            than :data:`LEAST` rows can be missing.
    """
    batch, n, m = inputs[0].shape
    with code.loop(batch) as b:
        a, values, *vectors = (Part(each, (b,)) for each in (*inputs, *outputs))
        work = Reduction.of(code, n, m, a.element, batch, b)
        work.take(a)
        if n < LEAST:
            _by_jacobi(code, work, values, vectors, batch, b)
        else:
            _by_qr(code, work, values, vectors, batch, b)


def _by_jacobi(
    code: Code, work: Reduction, values: Part, vectors: Sequence[Part], batch: int, b: Index
) -> None:
    """Rotate rows until they are orthogonal: reflections from the right make these unit vectors."""
    rows = work.rows
    n, m = rows.shape
    turned = [code.array((n, n), rows.element, batch, b) for _ in vectors[:1]]
    orthogonalize(code, rows, turned, batch, b)
    squares = work.diagonal
    with code.loop(n) as i:
        code.fill(0.0, squares, i)
        with code.loop(m) as j:
            x = code.load(rows, i, j)
            code.add_to(code.multiply(x, x), squares, i)
    places = code.array((n,), integer(32), batch, b)
    ranks(code, lambda i: code.load(squares, i), n, places, descending=True)
    # Lengths that are zero beside the largest one, whose squares may be inexact.
    least = code.constant(tiny(rows.element), rows.element)
    zero = code.constant(0.0, rows.element)
    in_place = code.array((n,), rows.element, batch, b)
    in_order(code, places, lambda i, _: code.load(squares, i), in_place)
    with code.loop(n) as i:
        square = code.load(in_place, i)
        length = code.multiply(code.sqrt(square), code.load(work.largest, 0))
        code.store(code.select(code.greater(square, least), length, zero), values, i)
    for source, to in zip(turned, vectors, strict=False):
        write_in_order(code, places, source, code.array((n, n), rows.element, batch, b), to)
    for right in vectors[1:]:
        with code.loop(n) as i, code.loop(m) as j:
            matters = code.greater(code.load(squares, i), least)
            code.store(code.select(matters, code.load(rows, i, j), zero), rows, i, j)
        sorted_rows = code.array((n, m), rows.element, batch, b)
        in_order(code, places, lambda i, j: code.load(rows, i, j[0]), sorted_rows, (m,))
        work = replace(work, rows=sorted_rows)
        scales = code.array((n,), rows.element, batch, b)
        make_lower(code, work, scales)
        product = code.array(right.shape, rows.element, batch, b)
        multiply_reflections(code, work, Reflections(scales), product)
        with code.loop(right.shape[0]) as i, code.loop(m) as j:
            code.copy(product, (i, j), right, (i, j))
        with code.loop(n) as i:
            length = code.load(work.diagonal, i)
            sign = code.with_sign_of(code.like(1.0, length), length)
            with code.loop(m) as j:
                code.store(code.multiply(sign, code.load(product, i, j)), right, i, j)


def _by_qr(
    code: Code, work: Reduction, values: Part, vectors: Sequence[Part], batch: int, b: Index
) -> None:
    n, _ = work.rows.shape
    turned = [code.array(each.shape, values.element, batch, b) for each in vectors]
    left, right = turned
    of_columns, of_rows = (code.array((n,), values.element, batch, b) for _ in range(2))
    make_bidiagonal(code, work, (of_columns, of_rows))
    multiply_reflections(code, work, Reflections(of_columns, in_columns=True, below=1), left)
    multiply_reflections(code, work, Reflections(of_rows), right)
    sweep = _Sweep.of(code, work, batch, b)
    more = _MORE[dtype_of(values.element).bits]
    with code.loop(n - 1 + more) as k, code.loop(_SWEEPS):
        end = k * -1 + (n - 1 + more)
        sweep.find_block(end)
        sweep.rotate(end, left, right)
    with code.loop(n) as i:
        value = code.load(work.diagonal, i)
        code.store(code.magnitude(value), work.diagonal, i)
        sign = code.with_sign_of(code.like(1.0, value), value)
        with code.loop(right.shape[1]) as j:
            code.store(code.multiply(sign, code.load(right, i, j)), right, i, j)
    places = code.array((n,), integer(32), batch, b)
    in_place = code.array((n,), values.element, batch, b)
    ranks(code, lambda i: code.load(work.diagonal, i), n, places, descending=True)
    in_order(code, places, lambda i, _: code.load(work.diagonal, i), in_place)
    work.write(in_place, values)
    for source, to in zip(turned, vectors, strict=True):
        write_permuted(code, places, source, work.rows, to, batch)


def _exact_angle(code: Code, x: Value, z: Value, inside: Value) -> tuple[Value, Value, Value]:
    """:func:`angle` with the sum of the squares of sine and cosine closer to one.

    Else vectors of 100 rows are three times as far from orthogonal as those of LAPACK, which
    rotates fewer times; with it they are as close.
    """
    cosine, sine, length = angle(code, x, z, inside)
    excess = code.subtract(code.multiply(cosine, cosine), code.like(1.0, cosine))
    excess = code.add(code.multiply(sine, sine), excess)
    half = code.like(0.5, cosine)

    def corrected(x: Value) -> Value:
        return code.subtract(x, code.multiply(code.multiply(half, x), excess))

    return corrected(cosine), corrected(sine), length


@dataclass(frozen=True)
class _Sweep(Sweep):
    """Sweeps of rotations of an upper bidiagonal matrix, the transpose of the reduced one.

    The block has the smallest magnitude on its diagonal, the first element there, and the three
    elements a, b, c of its last two rows ``[[a, b], [0, c]]`` behind its rows; chased are the
    element and the bulge that the next rotation of columns annihilates, with the sine of the last
    one of rows.
    """

    sizes: ClassVar[tuple[int, int]] = (7, 3)
    roundings: ClassVar[int] = _NEGLIGIBLE

    def _cleaned(self, part: Part, i: Index) -> tuple[Value, Value]:
        """An element, zero if it is negligible, and whether it is not."""
        code, value = self.code, self.code.load(part, i)
        matters = code.greater(code.magnitude(value), code.load(self.negligible, 0))
        value = code.select(matters, value, code.like(0.0, value))
        code.store(value, part, i)
        return value, matters

    def find_block(self, end: Expr) -> None:
        """Find the last block up to row ``end``, and set negligible elements to zero."""
        code, block = self.code, self.block
        n = self.diagonal.shape[0]
        for number in range(7):
            code.fill(0.0, block, number)
        self._cleaned(self.diagonal, 0)
        with code.loop(n - 1, upper=end) as i:
            beside, matters = self._cleaned(self.beside, i + 1)
            second, _ = self._cleaned(self.diagonal, i + 1)
            first = code.load(self.diagonal, i)
            begins = code.both(matters, code.equal_zero(code.load(self.beside, i)))
            size, other = code.magnitude(first), code.magnitude(second)
            least = code.select(begins, size, code.load(block, 2))
            least = code.select(code.greater(other, least), least, other)
            marks = [
                (begins, code.real(i, beside.type)),
                (matters, code.real(i + 1, beside.type)),
                (matters, least),
                (begins, first),
                *((matters, value) for value in (first, beside, second)),
            ]
            self.mark(marks)

    def _begun(self) -> tuple[Value, Value]:
        """Whether a sweep has no shift, and what its first rotation of columns annihilates with.

        The shift is the smaller singular value of the last two rows. Where it is nothing beside the
        first element, squared, it would only add roundings.
        """
        code = self.code
        least, start, a, beside, c = (code.load(self.block, number) for number in range(2, 7))
        a, c, size = code.magnitude(a), code.magnitude(c), code.magnitude(start)
        one, zero = code.like(1.0, a), code.like(0.0, a)
        square = code.multiply(beside, beside)

        def root(x: Value) -> Value:
            return code.sqrt(code.add(code.multiply(x, x), square))

        divisor = code.add(root(code.add(a, c)), root(code.subtract(a, c)))
        divisor = code.select(code.equal_zero(divisor), one, divisor)
        product = code.multiply(a, c)
        shift = code.divide(code.add(product, product), divisor)
        unshifted = code.equal_zero(least)
        ratio = code.divide(shift, code.select(unshifted, one, start))
        rounding = code.like(rounding_of(a.type), ratio)
        small = code.greater(rounding, code.multiply(ratio, ratio))
        unshifted = code.either(unshifted, small)
        factor = code.add(code.with_sign_of(one, start), code.select(unshifted, zero, ratio))
        begun = code.multiply(code.subtract(size, code.select(unshifted, zero, shift)), factor)
        return unshifted, begun

    def rotate(self, end: Expr, left: Part, right: Part) -> None:
        """One sweep of the block; rows of left and right vectors are rotated alike."""
        code, n = self.code, self.diagonal.shape[0]
        unshifted, begun = self._begun()
        for number in range(3):
            code.fill(0.0, self.chased, number)
        with code.loop(n - 1, upper=end) as i:
            first, inside = is_inside(code, self.block, i)
            p, q = code.load(self.diagonal, i), code.load(self.diagonal, i + 1)
            beside, before = code.load(self.beside, i + 1), code.load(self.beside, i)
            chased = code.load(self.chased, 0), code.load(self.chased, 1)
            x, z = code.select(first, begun, chased[0]), code.select(first, beside, chased[1])
            cosine, sine, length = _exact_angle(code, x, z, inside)
            scaled = code.multiply(code.load(self.chased, 2), length)
            length = code.select(unshifted, scaled, length)
            keeps = code.both(inside, code.negated(first))
            code.store(code.select(keeps, length, before), self.beside, i)
            rotate_rows(code, left, i, cosine, sine)
            f = code.add(code.multiply(cosine, p), code.multiply(sine, beside))
            rest = code.subtract(code.multiply(cosine, beside), code.multiply(sine, p))
            rest = code.select(code.both(unshifted, inside), code.like(0.0, rest), rest)
            g, q = code.multiply(sine, q), code.multiply(cosine, q)
            cosine, sine, length = _exact_angle(code, f, g, inside)
            code.store(code.select(inside, length, f), self.diagonal, i)
            self._turn(i, (rest, q), (cosine, sine), unshifted)
            rotate_rows(code, right, i, cosine, sine)

    def _turn(
        self, i: Expr, elements: tuple[Value, Value], turn: tuple[Value, Value], unshifted: Value
    ) -> None:
        """Rotate what rows ``i`` and ``i + 1`` have behind column ``i``."""
        code = self.code
        rest, q = elements
        cosine, sine = turn
        after = code.load(self.beside, i + 2)
        up = code.add(code.multiply(cosine, rest), code.multiply(sine, q))
        down = code.subtract(code.multiply(cosine, q), code.multiply(sine, rest))
        code.store(up, self.beside, i + 1)
        code.store(down, self.diagonal, i + 1)
        code.store(code.multiply(cosine, after), self.beside, i + 2)
        # Without a shift what would be chased is a multiple of these, which may vanish.
        bulge = code.multiply(sine, after)
        code.store(code.select(unshifted, q, up), self.chased, 0)
        code.store(code.select(unshifted, after, bulge), self.chased, 1)
        code.store(sine, self.chased, 2)
