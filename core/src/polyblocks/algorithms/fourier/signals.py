"""Where a transform's numbers come from and go to.

Arrays of numbers are [outer, n, inner]; a transform runs along n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from polyblocks.algorithms.fourier.butterflies import Number, multiply
from polyblocks.algorithms.fourier.loops import Code, Place


class Source(Protocol):
    """Complex numbers that can be read."""

    def load(self, at: Place, o: Any, t: Any, b: Any) -> Number:
        """The number at [o, t, b]; the indices are affine expressions or numbers."""


class Target(Protocol):
    """Complex numbers that can be stored."""

    def store(self, at: Place, value: Number, o: Any, t: Any, b: Any) -> None:
        """Store the number at [o, t, b]."""


@dataclass(frozen=True)
class Planes:
    """Real and imaginary parts in buffers of their own.

    Attributes:
        re: [outer, n, inner].
        im: the same; None if the parts are zero, or not wanted.
    """

    re: Any
    im: Any

    def load(self, at: Place, o: Any, t: Any, b: Any) -> Number:
        """One load per part."""
        return at.load(self.re, o, t, b), None if self.im is None else at.load(self.im, o, t, b)

    def store(self, at: Place, value: Number, o: Any, t: Any, b: Any) -> None:
        """One store per part."""
        at.store(value[0], self.re, o, t, b)
        if self.im is not None:
            assert value[1] is not None
            at.store(value[1], self.im, o, t, b)


@dataclass(frozen=True)
class Flat:
    """Real and imaginary parts in buffers of rows, whose order nothing changes.

    Attributes:
        re, im: [outer, n inner].
        inner: elements from one number of a transform to the next.
    """

    re: Any
    im: Any
    inner: int

    def load(self, at: Place, o: Any, t: Any, b: Any) -> Number:
        """One load per part."""
        place = t * self.inner + b
        return at.load(self.re, o, place), at.load(self.im, o, place)

    def store(self, at: Place, value: Number, o: Any, t: Any, b: Any) -> None:
        """One store per part."""
        place = t * self.inner + b
        at.store(value[0], self.re, o, place)
        at.store(value[1], self.im, o, place)


@dataclass(frozen=True)
class Halves:
    """Complex numbers made of neighbours of a real array, [outer, 2 n, inner]."""

    real: Any

    def load(self, at: Place, o: Any, t: Any, b: Any) -> Number:
        """The numbers at 2 t and 2 t + 1."""
        return at.load(self.real, o, 2 * t, b), at.load(self.real, o, 2 * t + 1, b)

    def store(self, at: Place, value: Number, o: Any, t: Any, b: Any) -> None:
        """To 2 t and 2 t + 1."""
        at.store(value[0], self.real, o, 2 * t, b)
        at.store(value[1], self.real, o, 2 * t + 1, b)


@dataclass(frozen=True)
class Weighted:
    """Numbers of a source or for a target, multiplied by a constant sequence along n.

    Attributes:
        code: the arithmetic.
        signal: the source or target.
        re, im: factors, [n].
    """

    code: Code
    signal: Any
    re: Any
    im: Any

    def load(self, at: Place, o: Any, t: Any, b: Any) -> Number:
        """The product."""
        return self._times(at, self.signal.load(at, o, t, b), t)

    def store(self, at: Place, value: Number, o: Any, t: Any, b: Any) -> None:
        """Store the product."""
        self.signal.store(at, self._times(at, value, t), o, t, b)

    def _times(self, at: Place, value: Number, t: Any) -> Number:
        return multiply(self.code, value, (at.load(self.re, t), at.load(self.im, t)))


@dataclass(frozen=True)
class Rows:
    """[outer, a b, 1] as [outer, a, b].

    Attributes:
        signal: the source or target.
        b: elements of a row.
    """

    signal: Any
    b: int

    def load(self, at: Place, o: Any, t: Any, b: Any) -> Number:
        """The number of row t and column b."""
        value: Number = self.signal.load(at, o, t * self.b + b, 0)
        return value

    def store(self, at: Place, value: Number, o: Any, t: Any, b: Any) -> None:
        """Store it."""
        self.signal.store(at, value, o, t * self.b + b, 0)


@dataclass(frozen=True)
class Strips:
    """[1, n, inner] as [inner / width, n, width]: columns beside each other in strips.

    Attributes:
        signal: the source or target.
        width: columns of a strip.
    """

    signal: Any
    width: int

    def load(self, at: Place, o: Any, t: Any, b: Any) -> Number:
        """The number in column b of strip o."""
        value: Number = self.signal.load(at, 0, t, o * self.width + b)
        return value

    def store(self, at: Place, value: Number, o: Any, t: Any, b: Any) -> None:
        """Store it."""
        self.signal.store(at, value, 0, t, o * self.width + b)
