"""Functions that flatten out, as 16 short polynomials, where a chip looks numbers up.

|x| plus an offset has pieces of an octave that are short where the function bends and long where
it is flat: the highest bits of the sum are the number of the piece, and without the others the sum
is where it begins. Of each piece a table has the function there, and the coefficients of a
polynomial in the distance from there. The first one begins at 0, which keeps the relative error of
odd functions small there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyblocks.codegen.builder import Builder, Val


@dataclass(frozen=True)
class Pieces:
    """Where the pieces of a function lie.

    Attributes:
        offset: what is added to the magnitude of the argument.
        shift: how many of the sum's lowest bits do not tell the piece.
        limit: from here on the function rounds to its value at this magnitude.
        first_from_x: whether the first piece is about what the function differs from x: its slope
            there is no float32.
    """

    offset: float
    shift: int
    limit: float
    first_from_x: bool = False


#: Quarters of an octave from 5/8 to 10.
TANH = Pieces(0.625, 21, 9.25)
#: Eighths of an octave from 2 to 6.
ERF = Pieces(2.0, 20, 3.99, first_from_x=True)
#: Quarters of an octave from 3/4 to 11.
ERFCX = Pieces(0.75, 21, 10.1)


def odd_by_pieces(
    b: Builder, x: Val, pieces: Pieces, tables: Sequence[Sequence[float]]
) -> Val | None:
    """An odd function of a float32.

    Args:
        b: the builder.
        x: the argument.
        pieces: the partition.
        tables: values, coefficients of the distance's first power, second, ...; each 16 numbers,
            in the order of the lowest four bits of the pieces' numbers.

    Returns:
        None where the target looks no numbers up.
    """
    found = _polynomials(b, abs(x), pieces, tables)
    if found is None:
        return None
    r, edge, value, p = found
    if pieces.first_from_x:
        value = b.select(edge.eq(0.0), r, value)
    return b.fma(p, r, value).copysign(x)


def by_pieces(
    b: Builder, magnitude: Val, pieces: Pieces, tables: Sequence[Sequence[float]]
) -> Val | None:
    """A function of a float32 that is not negative; see :func:`odd_by_pieces`."""
    found = _polynomials(b, magnitude, pieces, tables)
    if found is None:
        return None
    r, _, value, p = found
    return b.fma(p, r, value)


def _polynomials(
    b: Builder, magnitude: Val, pieces: Pieces, tables: Sequence[Sequence[float]]
) -> tuple[Val, Val, Val, Val] | None:
    """``r``, where the piece begins, the value there, and what ``r`` is multiplied by."""
    if not b.has_fma:
        return None
    picks = [pick for pick in map(b.table, tables) if pick is not None]
    if not picks:
        return None
    magnitude = b.clamp(magnitude, None, pieces.limit)
    bits = (magnitude + pieces.offset).bits()
    # Exact: both have few digits.
    edge = (bits & -(1 << pieces.shift)).as_float() - pieces.offset
    number = bits.shr_u(pieces.shift)
    value, *coefficients = (pick(number) for pick in picks)
    r = magnitude - edge
    p = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        p = b.fma(p, r, coefficient)
    return r, edge, value, p
