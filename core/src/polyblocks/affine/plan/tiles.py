"""The sizes of a contraction's tiles as a schedule has them: of cores, of lanes and of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.affine.plan.schedule import Schedule


@dataclass(frozen=True)
class Tiles:
    """Sizes of a contraction's tiles, in elements; see :data:`polyblocks.affine.plan.keys.KEYS`.

    Attributes:
        register_tile: M x N whose sums are in registers, of a thread or of a warp.
        block_tile: M x N that are worked on together, of a core or of a block of threads.
        k_block: steps of one pass over a block.
    """

    register_tile: tuple[int, int]
    block_tile: tuple[int, int]
    k_block: int

    @classmethod
    def read(cls, schedule: Schedule) -> Tiles:
        """The sizes of a schedule.

        Raises:
            UnsupportedError: one is not given, or is no size.
        """
        pairs = schedule.pair("register_tile"), schedule.pair("block_tile")
        return cls(*pairs, schedule.number("k_block"))

    def schedule(self) -> dict[str, Any]:
        """The sizes as keys of a schedule."""
        return {
            "register_tile": list(self.register_tile),
            "block_tile": list(self.block_tile),
            "k_block": self.k_block,
        }

    def in_a_block(self, schedule: Schedule) -> tuple[int, int]:
        """Register tiles of a block along M and along N.

        Raises:
            UnsupportedError: they are not whole.
        """
        (m, n), (rows, columns) = self.register_tile, self.block_tile
        schedule.multiple("block_tile", rows, m, "register tiles along M")
        schedule.multiple("block_tile", columns, n, "register tiles along N")
        return rows // m, columns // n
