"""Swizzles: elements of a buffer that change places, so that accesses meet in no memory bank.

The layout of a buffer is linear in the bits of its indices: each set bit of one dimension flips
some bits of another one, or of its own lower bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Swizzle:
    """Dimension ``into`` is flipped by the bits of dimension ``of``.

    Attributes:
        of: the dimension whose bits decide.
        into: the one whose places are exchanged.
        masks: for each bit of ``of``, the lowest first, the bits of ``into`` that it flips; bits
            behind these flip none.
    """

    of: int
    into: int
    masks: tuple[int, ...]

    def flips(self, number: int) -> int:
        """The bits of ``into`` that are flipped where ``of`` is this number."""
        found = 0
        for bit, mask in enumerate(self.masks):
            if number >> bit & 1:
                found ^= mask
        return found

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """Bits of ``of`` whose masks double from bit to bit: the first, how many, its mask."""
        bit, masks = 0, self.masks
        while bit < len(masks):
            end = bit + 1
            if masks[bit]:
                while end < len(masks) and masks[end] == masks[bit] << (end - bit):
                    end += 1
                yield bit, end - bit, masks[bit]
            bit = end


def place_of(layout: Sequence[Swizzle], index: Sequence[int]) -> tuple[int, ...]:
    """The place of an element in its buffer; all swizzles are of the index before any of them."""
    place = list(index)
    for swizzle in layout:
        place[swizzle.into] ^= swizzle.flips(index[swizzle.of])
    return tuple(place)


def doubling(first: int, count: int) -> tuple[int, ...]:
    """Masks of the bits that count to ``count``, a power of two: the first one, doubled by each."""
    return tuple(first << bit for bit in range(count.bit_length() - 1))


def no_bits(count: int) -> tuple[int, ...]:
    """Masks of the bits that count to ``count``, a power of two, and flip nothing."""
    return (0,) * (count.bit_length() - 1)
