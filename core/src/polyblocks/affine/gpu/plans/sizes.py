"""The sizes of a contraction's tiles: of a block, and of a thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from polyblocks.affine.analysis.contractions import Contraction, Operand
from polyblocks.affine.element import dtype_of
from polyblocks.affine.expr import Var
from polyblocks.affine.model import AffineAccess, Value


class Grid(NamedTuple):
    """Sizes of a product: how many matrices, and theirs."""

    matrices: int
    rows: int
    columns: int


@dataclass(frozen=True, eq=False)
class TileSizes:
    """How a contraction is cut into tiles, and these into the elements of threads.

    Attributes:
        parts: of the nest.
        of_thread: rows and columns of a thread.
        across: threads of a block along rows and along columns.
        depth: steps of the reduction whose operands are in shared memory at a time.
    """

    parts: Contraction
    of_thread: tuple[int, int]
    across: tuple[int, int]
    depth: int

    @property
    def tile(self) -> tuple[int, ...]:
        """Rows, columns and steps of a block."""
        (r, c), (rows, columns) = self.of_thread, self.across
        return r * rows, c * columns, self.depth

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """Rows, columns and steps that there are."""
        parts = self.parts
        return extent(parts.rows), extent(parts.columns), parts.reduction.trips

    @property
    def grid(self) -> tuple[int, int]:
        """Tiles along rows and along columns."""
        (rows, columns, _), (height, width, _) = self.counts, self.tile
        return -(-rows // height), -(-columns // width)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(self.across)

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return extent(self.parts.batch) * prod(self.grid)

    def copied_bytes(self, operands: Iterable[Operand]) -> int:
        """Bytes of memory that a step of a tile takes."""
        return sum(o.load.buffer.bytes_per_element * self.tile[o.side] for o in operands)

    @property
    def ragged(self) -> bool:
        """Whether tiles reach beyond the last row or column."""
        return any(n % size for n, size in zip(self.counts[:2], self.tile[:2], strict=True))

    def decision(self) -> dict[str, Any]:
        """The numbers of a plan of tiles for reports: no threads of it are a group.

        ``extents`` are rows, columns and steps of the contraction, and how many there are of it.
        """
        return {
            "group": 1,
            "tile": list(self.tile),
            "extents": [*self.counts, extent(self.parts.batch)],
            "width": 1,
            "strided": False,
            "barriers": 0,
        }


@dataclass(frozen=True, eq=False)
class TilePlan:
    """How blocks compute tiles of a contraction: what plans of lanes and of units share.

    Attributes:
        sizes: of the tiles.
        row_tiles: rows of tiles, a divisor of all of them, whose tiles of the same columns are
            computed by blocks that follow each other.
    """

    sizes: TileSizes
    row_tiles: int = field(default=1, kw_only=True)

    @property
    def order(self) -> tuple[int, int]:
        """Rows, and columns, of tiles that follow each other in the order of blocks."""
        return self.row_tiles, 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.sizes.threads

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.sizes.blocks

    @property
    def tile(self) -> tuple[int, ...]:
        """Rows, columns and steps of a block."""
        return self.sizes.tile


def extent(variables: list[Var]) -> int:
    """Values of variables together."""
    return prod(v.extent for v in variables)


def bytes_around(parts: Contraction) -> int:
    """Bytes that are loaded and stored for an element around its sum."""
    touched = [*parts.before, *parts.after]
    return sum(n.buffer.bytes_per_element for n in touched if isinstance(n, AffineAccess))


def words_of(values: Iterable[Value]) -> int:
    """Registers of values; indices and 64-bit types take two."""
    return sum(2 if dtype_of(v.type).bits == 64 else 1 for v in values)
