"""Products of Householder reflections, applied at once: the compact WY form.

A product ``H_1 … H_k`` of reflections ``I - tau v v^T`` is ``I - V T V^T``, where T is upper
triangular. Its inverse has 1 / tau on the diagonal and above it the products of the vectors, so
that T is never formed: multiplying with it is solving a triangular system.

Schreiber and Van Loan, A Storage-Efficient WY Representation for Products of Householder
Transformations, 1989; Joffrain et al., Accumulating Householder Transformations, Revisited, 2006.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Value
from polyblocks.algorithms.code import Code, Index, Part

#: Reflections that are applied at once.
PANEL = 32
#: Rows, and reflections, that are combined at a time: their factors are in registers.
_TOGETHER = 4
#: Columns that are changed at a time, few enough for sums of all reflections to stay in a cache.
_COLUMNS = 128


@dataclass(frozen=True)
class BlockReflector:
    """The product of some consecutive reflections.

    Attributes:
        code: where to write.
        vectors: their vectors as columns, [m, reflections].
        products: of the vectors, [reflections, reflections].
        sums: an array to work with, [reflections, columns].
        scales: tau of all reflections.
    """

    code: Code
    vectors: Part
    products: Part
    sums: Part
    scales: Part

    @staticmethod
    def of(code: Code, m: int, scales: Part, batch: int, b: Index) -> BlockReflector:
        """With new arrays for vectors of ``m`` elements, see :meth:`Code.array`."""
        vectors, products, sums = (
            code.array(shape, scales.element, batch, b)
            for shape in ((m, PANEL), (PANEL, PANEL), (PANEL, _COLUMNS))
        )
        return BlockReflector(code, vectors, products, sums, scales)

    def prepare(self, first: Expr) -> None:
        """Complete the vectors of reflections from ``first`` on, and multiply them.

        Before, the array of vectors holds something else on and above the diagonal, which begins
        in row ``first``.
        """
        code, (m, _) = self.code, self.vectors.shape
        with code.loop(PANEL) as u:
            with code.loop(PANEL, upper=u) as r:
                code.fill(0.0, self.vectors, first + r, u)
            code.fill(1.0, self.vectors, first + u, u)
        with code.loop(PANEL) as u, code.loop(PANEL) as v:
            code.fill(0.0, self.products, u, v)
        with code.loop(m, lower=first) as i, code.loop(PANEL) as u:
            factor = code.load(self.vectors, i, u)
            with code.loop(PANEL) as v:
                product = code.multiply(factor, code.load(self.vectors, i, v))
                code.add_to(product, self.products, u, v)

    def apply(self, rows: Part, first: Expr, start: Expr, *, transposed: bool) -> None:
        """Multiply columns with the product, or with its transpose, from the left.

        Args:
            rows: what is changed, from row ``first`` on.
            first: number of the first reflection.
            start: the first column that is changed.
            transposed: whether it is the transpose.
        """
        code, (m, n) = self.code, rows.shape
        with code.loop(-(-n // _COLUMNS), lower=start // _COLUMNS) as block:
            origin = block * _COLUMNS

            @contextmanager
            def columns(origin: Expr = origin) -> Iterator[Expr]:
                with code.loop(_COLUMNS, lower=start - origin, upper=origin * -1 + n) as j:
                    yield j

            with code.loop(PANEL) as u, columns() as j:
                code.fill(0.0, self.sums, u, j)
            for step, count in ((_TOGETHER, m // _TOGETHER), (1, m)):
                lower = first // _TOGETHER if step > 1 else Expr(m // _TOGETHER * _TOGETHER)
                with code.loop(count, lower=lower) as group, code.loop(PANEL // _TOGETHER) as us:
                    factors = self._factors(group * step, step, us)
                    with columns() as j:
                        xs = [code.load(rows, group * step + a, origin + j) for a in range(step)]
                        for c in range(_TOGETHER):
                            value = code.load(self.sums, us * _TOGETHER + c, j)
                            for a, x in enumerate(xs):
                                value = code.add(value, code.multiply(factors[a][c], x))
                            code.store(value, self.sums, us * _TOGETHER + c, j)
            with code.loop(PANEL) as position:
                u = position if transposed else position * -1 + (PANEL - 1)
                before = {"upper": u} if transposed else {"lower": u + 1}
                with code.loop(PANEL, **before) as v:
                    factor = code.load(self.products, u, v)
                    with columns() as j:
                        product = code.multiply(factor, code.load(self.sums, v, j))
                        code.subtract_from(product, self.sums, u, j)
                scale = code.load(self.scales, first + u)
                with columns() as j:
                    code.store(code.multiply(scale, code.load(self.sums, u, j)), self.sums, u, j)
            for step, count in ((_TOGETHER, m // _TOGETHER), (1, m)):
                lower = first // _TOGETHER if step > 1 else Expr(m // _TOGETHER * _TOGETHER)
                with code.loop(count, lower=lower) as group, code.loop(PANEL // _TOGETHER) as us:
                    factors = self._factors(group * step, step, us)
                    with columns() as j:
                        sums = [
                            code.load(self.sums, us * _TOGETHER + c, j) for c in range(_TOGETHER)
                        ]
                        for a in range(step):
                            at = group * step + a, origin + j
                            value = code.load(rows, *at)
                            for c, x in enumerate(sums):
                                value = code.subtract(value, code.multiply(factors[a][c], x))
                            code.store(value, rows, *at)

    def _factors(self, i: Expr, count: int, us: Expr) -> list[list[Value]]:
        """Elements of the vectors in some rows, of as many reflections as go together."""
        return [
            [self.code.load(self.vectors, i + a, us * _TOGETHER + c) for c in range(_TOGETHER)]
            for a in range(count)
        ]
