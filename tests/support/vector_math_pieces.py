"""The tables of polyblocks.codegen.vector_math.pieces that vector_math_coefficients.py writes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from mpmath import mp, mpf
from vector_math_remez import Spec, near_zero, polished, remez, rounded

from polyblocks.codegen.vector_math.pieces import ERF, ERFCX, TANH, Pieces

_MARGIN = mpf("1e-6")


@dataclass(frozen=True)
class Table:
    """One function by pieces, odd or not 0 at 0.

    Attributes:
        name: in coefficients.py.
        about: the comment written above it.
        function: what is approximated.
        pieces: the partition.
        degree: of the polynomials.
    """

    name: str
    about: str
    function: Callable[[mpf], mpf]
    pieces: Pieces
    degree: int

    def rows(self) -> tuple[list[list[float]], mpf]:
        """Values, first coefficients, second, ..., 16 each; and the largest error."""
        rows = [[0.0] * 16 for _ in range(self.degree + 1)]
        worst = mpf(0)
        first = _bits(self.pieces.offset) >> self.pieces.shift
        last = _bits(self.pieces.offset + self.pieces.limit) >> self.pieces.shift
        if last - first > 15:
            raise ValueError(f"{self.name} has {last - first + 1} pieces, more than 16")
        for number in range(first, last + 1):
            begin, end = self._edge(number), self._edge(number + 1)
            # A rounded sum may lie a little beyond.
            low, high = -_MARGIN, end - begin + _MARGIN
            if number == first and not self.function(mpf(0)):
                column, error = self._at_zero(high)
            else:
                column, error = self._piece(begin, low, high)
            worst = max(worst, error)
            for row, entry in zip(rows, column, strict=True):
                row[number & 15] = entry
        return rows, worst

    def _edge(self, number: int) -> mpf:
        return mpf(_float(number << self.pieces.shift)) - self.pieces.offset

    def _at_zero(self, high: mpf) -> tuple[list[float], mpf]:
        """The first coefficient is right to the last bit: results may be denormal."""
        f, whole = self.function, int(self.pieces.first_from_x)
        first = rounded(mp.diff(f, 0) - whole, "f32")
        spec = Spec(
            self.name,
            self.about,
            near_zero(lambda r: (f(r) / r - whole - first) / r, mpf(0)),
            near_zero(lambda r: r * r / f(r), mpf(0)),
            mpf(0),
            high,
            self.degree - 2,
        )
        fitted, error = remez(spec)
        return [0.0, first, *polished(spec, fitted)], error

    def _piece(self, begin: mpf, low: mpf, high: mpf) -> tuple[list[float], mpf]:
        value, slope = self.function(begin), mp.diff(self.function, begin)
        spec = Spec(
            self.name,
            self.about,
            near_zero(lambda r: (self.function(begin + r) - value) / r, slope),
            lambda r: abs(r) / self.function(begin + r),
            low,
            high,
            self.degree - 1,
        )
        fitted, error = remez(spec)
        return [rounded(value, "f32"), *polished(spec, fitted)], error


def _bits(number: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


def _float(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def _erfcx(t: mpf) -> mpf:
    return mp.exp(t * t) * mp.erfc(t)


TABLES = [
    Table("TANH_PIECES_F32", "tanh", mp.tanh, TANH, 5),
    Table("ERF_PIECES_F32", "erf", mp.erf, ERF, 5),
    Table("ERFCX_PIECES_F32", "exp(t^2) erfc(t)", _erfcx, ERFCX, 6),
]
