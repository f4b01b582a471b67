"""Where the words lie that describe an array of a framework, for code that compares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Word(NamedTuple):
    """Eight bytes of an array.

    Attributes:
        part: which of the array's parts, see :class:`ArrayLayout`.
        offset: of the word in it, in bytes.
    """

    part: int
    offset: int


@dataclass(frozen=True)
class ArrayLayout:
    """The words that say all about an array: as long as none of them changes, nor does the array.

    Part 0 is the Python object. Part ``k + 1`` is the memory that ``pointers[k]`` points to, a word
    of an earlier part: as long as the pointer is the same and the array is alive, so is the part.

    Attributes:
        pointers: of the parts after the first.
        own: words that mostly differ between arrays, such as the data pointer.
        shared: words that arrays of one kind have in common: dtype, flags, offset.
        of_rank: further such words of arrays of each rank: rank, extents, strides. Arrays of larger
            rank have no such layout.
    """

    pointers: tuple[Word, ...]
    own: tuple[Word, ...]
    shared: tuple[Word, ...]
    of_rank: tuple[tuple[Word, ...], ...]

    def words(self, rank: int) -> tuple[Word, ...]:
        """All of them, of an array of a rank: the pointers, then its own, then the shared ones."""
        return (*self.pointers, *self.own, *self.shared, *self.of_rank[rank])
