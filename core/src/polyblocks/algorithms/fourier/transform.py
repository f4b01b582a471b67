"""Transforms along one dimension of [outer, n, inner], of complex and of real numbers.

Stockham's autosort (W. T. Cochran et al., What is the fast Fourier transform?, 1967) in stages of
radix up to 8, every one a nest whose innermost loop walks memory in order. Where ``inner`` is too
short for vectors, a long row ``n = a b`` is an [a, b] matrix: transforms of its columns, which are
contiguous, factors, a transposition, and columns again (D. H. Bailey, FFTs in external or
hierarchical memory, 1990). Short rows are transposed, so that lanes are rows. Other lengths than
products of primes up to 17 are circular convolutions (L. I. Bluestein, 1970).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks.algorithms.fourier import factors
from polyblocks.algorithms.fourier.butterflies import Number, butterfly, multiply
from polyblocks.algorithms.fourier.loops import Code, Place, nest
from polyblocks.algorithms.fourier.roots import roots
from polyblocks.algorithms.fourier.signals import (
    Flat,
    Halves,
    Planes,
    Rows,
    Source,
    Strips,
    Target,
    Weighted,
)
from polyblocks.mlir import ir


class Kind(enum.Enum):
    """Types of input and output."""

    COMPLEX = "complex to complex"
    #: Of n real numbers the first n / 2 + 1 results; the others are their conjugates.
    REAL = "real to half complex"
    #: The inverse of that.
    HALF = "half complex to real"


@dataclass(frozen=True)
class Shape:
    """Of the array whose second dimension is transformed."""

    outer: int
    n: int
    inner: int


def transform(
    kind: Kind, re: Any, im: Any, n: int, sign: int, scale: float = 1.0
) -> tuple[Any, Any]:
    """``scale * sum(x[j] exp(sign 2 pi i j k / n))`` along the second dimension.

    Operations are appended at the insertion point, with the current location.

    Args:
        kind: of the transform.
        re: real parts, a tensor [outer, n, inner] of f32 or f64 without an extent of 0; of
            :attr:`Kind.HALF` [outer, n / 2 + 1, inner], the first half of a Hermitian sequence.
            Imaginary parts of its ends do not count.
        im: imaginary parts; None if they are zero.
        n: length of the transform.
        sign: of the exponent.
        scale: factor of all results.

    Returns:
        Tensors of real and imaginary parts, [outer, n, inner]; of :attr:`Kind.REAL`
        [outer, n / 2 + 1, inner]; of :attr:`Kind.HALF` None for the imaginary parts.
    """
    outer, _, inner = ir.RankedTensorType(re.type).shape
    code = Code(ir.RankedTensorType(re.type).element_type)
    writer = _Writer(code, sign, scale)
    source = Planes(code.buffer(re), None if im is None else code.buffer(im))
    shape = Shape(outer, n, inner)
    if kind is Kind.REAL:
        planes = writer.planes(Shape(outer, n // 2 + 1, inner))
        writer.real(shape, source, planes)
    elif kind is Kind.HALF:
        planes = Planes(code.alloc(outer, n, inner), None)
        writer.half(shape, source, planes)
    else:
        planes = writer.planes(shape)
        writer.complex(shape, source, planes)
    return code.tensor(planes.re), None if planes.im is None else code.tensor(planes.im)


class _Writer:
    """Writes the nests of one transform."""

    def __init__(self, code: Code, sign: int, scale: float) -> None:
        self.code = code
        self.sign = sign
        self.scale = scale

    def planes(self, shape: Shape) -> Planes:
        """Buffers for complex numbers, which are results."""
        extents = (shape.outer, shape.n, shape.inner)
        return Planes(self.code.alloc(*extents), self.code.alloc(*extents))

    def between(self, shape: Shape) -> Any:
        """Buffers for complex numbers between two nests, whose tiles may be columns."""
        return self.planes(shape) if shape.inner >= factors.LANES else self.flat(shape)

    def flat(self, shape: Shape) -> Flat:
        """The same, whose tiles are whole rows."""
        extents = (shape.outer, shape.n * shape.inner)
        return Flat(self.code.alloc(*extents), self.code.alloc(*extents), shape.inner)

    # Kinds

    def complex(self, shape: Shape, source: Source, target: Target) -> None:
        """Of complex numbers."""
        if not factors.is_smooth(shape.n):
            self._convolution(shape, source, target)
            return
        if shape.inner >= factors.LANES or shape.n == 1:
            self._columns(shape, source, target, self.scale)
        elif shape.inner > 1:
            self._inner_rows(shape, source, target)
        elif (cut := factors.split(shape.n, few=shape.outer < factors.LANES)) is not None:
            self._matrix(shape, *cut, source, target)
        elif shape.outer > 1:
            self._rows_as_lanes(shape, source, target)
        else:
            self._columns(shape, source, target, self.scale)

    def real(self, shape: Shape, source: Planes, target: Planes) -> None:
        """Of real numbers: neighbours are the parts of half as many complex ones."""
        n, code = shape.n, self.code
        if n % 2:
            whole = self.between(shape)
            self.complex(shape, source, whole)
            self._copy(Shape(shape.outer, n // 2 + 1, shape.inner), whole, target)
            return
        m = n // 2
        packed = self.between(Shape(shape.outer, m, shape.inner))
        self.complex(Shape(shape.outer, m, shape.inner), Halves(source.re), packed)
        half = code.number

        def ends(at: Place) -> None:
            o, b = at.indices
            re, im = packed.load(at, o, 0, b)
            zero = code.number(0.0)
            target.store(at, (code.add(re, im), zero), o, 0, b)
            target.store(at, (code.sub(re, im), zero), o, m, b)

        nest([shape.outer, shape.inner], ends)
        # x[k] = (z[k] + conj z[m - k]) / 2 + w^k (z[k] - conj z[m - k]) / 2i
        turns = roots(np.arange(m), n)
        cosine, sine = code.table(turns.real / 2), code.table(self.sign * turns.imag / 2)

        def combine(at: Place) -> None:
            o, k, b = at.indices
            here, there = packed.load(at, o, k, b), packed.load(at, o, m - k, b)
            half_ = half(0.5)
            even = (
                code.mul(half_, code.add(here[0], there[0])),
                code.mul(half_, code.sub(here[1], there[1])),
            )
            odd = (code.add(here[1], there[1]), code.sub(there[0], here[0]))
            c, s = at.load(cosine, k), at.load(sine, k)
            odd = multiply(code, odd, (c, s))
            target.store(at, (code.add(even[0], odd[0]), code.add(even[1], odd[1])), o, k, b)

        nest([shape.outer, m, shape.inner], combine, [0, 1, 0])

    def half(self, shape: Shape, source: Planes, target: Planes) -> None:
        """Of half of a Hermitian sequence, to real numbers."""
        n, code = shape.n, self.code
        m = n // 2
        if n % 2:
            self._odd_half(shape, source, target)
            return
        packed = self.between(Shape(shape.outer, m, shape.inner))

        def ends(at: Place) -> None:
            o, b = at.indices
            first, last = at.load(source.re, o, 0, b), at.load(source.re, o, m, b)
            packed.store(at, (code.add(first, last), code.sub(first, last)), o, 0, b)

        nest([shape.outer, shape.inner], ends)
        # z[k] = x[k] + conj x[m - k] + i w^k (x[k] - conj x[m - k])
        turns = 1j * roots(np.arange(m), n).conj() if self.sign < 0 else 1j * roots(np.arange(m), n)
        cosine, sine = code.table(turns.real), code.table(turns.imag)

        def combine(at: Place) -> None:
            o, k, b = at.indices
            here, there = source.load(at, o, k, b), source.load(at, o, m - k, b)
            here_im = here[1] if here[1] is not None else code.number(0.0)
            there_im = there[1] if there[1] is not None else code.number(0.0)
            even = code.add(here[0], there[0]), code.sub(here_im, there_im)
            odd = code.sub(here[0], there[0]), code.add(here_im, there_im)
            odd = multiply(code, odd, (at.load(cosine, k), at.load(sine, k)))
            packed.store(at, (code.add(even[0], odd[0]), code.add(even[1], odd[1])), o, k, b)

        nest([shape.outer, m, shape.inner], combine, [0, 1, 0])
        self.complex(Shape(shape.outer, m, shape.inner), packed, Halves(target.re))

    def _odd_half(self, shape: Shape, source: Planes, target: Planes) -> None:
        """The other half is the conjugate of this one, backwards."""
        n, code = shape.n, self.code
        whole = self.between(shape)

        def first(at: Place) -> None:
            o, b = at.indices
            whole.store(at, (at.load(source.re, o, 0, b), code.number(0.0)), o, 0, b)

        def both(at: Place) -> None:
            o, k, b = at.indices
            re, im = source.load(at, o, k, b)
            im = im if im is not None else code.number(0.0)
            whole.store(at, (re, im), o, k, b)
            whole.store(at, (re, code.neg(im)), o, n - k, b)

        nest([shape.outer, shape.inner], first)
        nest([shape.outer, n // 2 + 1, shape.inner], both, [0, 1, 0])
        self.complex(shape, whole, target)

    # Forms

    def _columns(
        self,
        shape: Shape,
        source: Source,
        target: Target,
        scale: float,
        *,
        rows: bool = False,
    ) -> None:
        """Stages along n.

        Args:
            shape: of the array.
            source, target: what is read and written.
            scale: factor of the results.
            rows: whether the columns are those of one row, which stays in one piece.
        """
        between = self.flat if rows else self.between
        stages = factors.radices(shape.n) or [1]
        done = 1
        for i, r in enumerate(stages):
            last = i == len(stages) - 1
            place = target if last else between(shape)
            left = shape.n // (done * r)
            self._stage(shape, r, left, done, source, place, scale if last else 1.0)
            source, done = place, done * r  # type: ignore[assignment]

    def _stage(
        self, shape: Shape, r: int, m: int, s: int, source: Source, target: Target, scale: float
    ) -> None:
        """[outer, r, m, s, inner] -> [outer, m, r, s, inner], and factors of the second one."""
        code = self.code
        if m > 1:
            turns = roots(np.outer(np.arange(m), np.arange(1, r)), r * m)
            re, im = code.table(turns.real), code.table(self.sign * turns.imag)

        def body(at: Place) -> None:
            o, p, q, b = at.indices
            x = [source.load(at, o, (j * m + p) * s + q, b) for j in range(r)]
            y = butterfly(code, x, self.sign)
            for k, value in enumerate(y):
                if m > 1 and k:
                    factor = at.load(re, p, k - 1), at.load(im, p, k - 1)
                    value = multiply(code, value, factor)
                target.store(at, self._scaled(value, scale), o, (p * r + k) * s + q, b)

        nest([shape.outer, m, s, shape.inner], body)

    def _scaled(self, value: Number, scale: float) -> Number:
        code = self.code
        re, im = value
        if scale != 1.0:
            factor = code.number(scale)
            re, im = code.mul(re, factor), None if im is None else code.mul(im, factor)
        return re, code.number(0.0) if im is None else im

    def _matrix(self, shape: Shape, a: int, b: int, source: Source, target: Target) -> None:
        """Rows as [a, b] matrices: columns, factors, a transposition, columns."""
        code = self.code
        first, second = Shape(shape.outer, a, b), Shape(shape.outer, b, a)
        mixed, turned = self.flat(first), self.flat(second)
        turns = roots(np.outer(np.arange(a), np.arange(b)), shape.n) * self.scale
        re, im = code.table(turns.real), code.table(self.sign * turns.imag)
        self._matrix_columns(first, Rows(source, b), mixed)

        def transpose(at: Place) -> None:
            o, k, j = at.indices
            value = mixed.load(at, o, k, j)
            value = multiply(code, value, (at.load(re, k, j), at.load(im, k, j)))
            turned.store(at, value, o, j, k)

        nest([shape.outer, a, b], transpose)
        self._matrix_columns(second, turned, Rows(target, a))

    def _matrix_columns(self, shape: Shape, source: Source, target: Target) -> None:
        """Columns of matrices; of a single large one in strips, which are what threads share."""
        width = factors.strip(shape.n, shape.inner) if shape.outer == 1 else None
        if width is not None:
            source, target = Strips(source, width), Strips(target, width)
            shape = Shape(shape.inner // width, shape.n, width)
        self._columns(shape, source, target, 1.0, rows=True)

    def _rows_as_lanes(self, shape: Shape, source: Source, target: Target) -> None:
        """Rows side by side: [n, outer]."""
        flat = Shape(1, shape.n, shape.outer)
        before, behind = self.between(flat), self.between(flat)

        def gather(at: Place) -> None:
            o, t = at.indices
            before.store(at, self._scaled(source.load(at, o, t, 0), 1.0), 0, t, o)

        def scatter(at: Place) -> None:
            o, t = at.indices
            target.store(at, behind.load(at, 0, t, o), o, t, 0)

        nest([shape.outer, shape.n], gather)
        self._columns(flat, before, behind, self.scale)
        nest([shape.outer, shape.n], scatter)

    def _inner_rows(self, shape: Shape, source: Source, target: Target) -> None:
        """Rows that lie across few others: they are copied one behind the other."""
        rows = Shape(shape.outer * shape.inner, shape.n, 1)
        before, behind = self.between(rows), self.between(rows)

        def gather(at: Place) -> None:
            o, b, t = at.indices
            value = self._scaled(source.load(at, o, t, b), 1.0)
            before.store(at, value, o * shape.inner + b, t, 0)

        def scatter(at: Place) -> None:
            o, b, t = at.indices
            target.store(at, behind.load(at, o * shape.inner + b, t, 0), o, t, b)

        extents = [shape.outer, shape.inner, shape.n]
        nest(extents, gather)
        self.complex(rows, before, behind)
        nest(extents, scatter)

    def _convolution(self, shape: Shape, source: Source, target: Target) -> None:
        """``j k = (j^2 + k^2 - (k - j)^2) / 2``: a convolution with a chirp."""
        code, n = self.code, shape.n
        m = factors.convolution_length(n)
        long = Shape(shape.outer, m, shape.inner)
        squares = np.array([j * j % (2 * n) for j in range(n)])
        chirp = roots(squares, 2 * n)
        if self.sign < 0:
            chirp = chirp.conj()
        kernel = np.zeros(m, complex)
        kernel[:n] = chirp.conj()
        kernel[m - n + 1 :] = chirp.conj()[:0:-1]
        spectrum = np.fft.fft(kernel) / m
        padded, convolved = self.between(long), self.between(long)

        def fill(at: Place) -> None:
            o, t, b = at.indices
            zero = code.number(0.0)
            padded.store(at, (zero, zero), o, t, b)

        def weighted(signal: Any, weights: Any) -> Weighted:
            return Weighted(code, signal, code.table(weights.real), code.table(weights.imag))

        self._copy(shape, weighted(source, chirp), padded)
        nest([shape.outer, m, shape.inner], fill, [0, n, 0])
        middle = self.between(long)
        _Writer(code, -1, 1.0).complex(long, padded, weighted(middle, spectrum))
        _Writer(code, 1, 1.0).complex(long, middle, convolved)
        self._copy(shape, convolved, weighted(target, chirp * self.scale))

    def _copy(self, shape: Shape, source: Source, target: Target) -> None:
        def body(at: Place) -> None:
            o, t, b = at.indices
            value = source.load(at, o, t, b)
            target.store(at, self._scaled(value, 1.0), o, t, b)

        nest([shape.outer, shape.n, shape.inner], body)
