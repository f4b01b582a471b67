"""When the operands of a unit's calls are read, where copies go through registers.

The operands of products come from shared memory a few products ahead of them, and the products of
the last call of a tile go on behind the barrier, with operands that are in registers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product

#: Products of a unit that go on while the operands of the one behind them come from shared memory.
AHEAD = 4

#: One read: which of both operands, for which call, and for which units of the warp.
Read = tuple[int, int, tuple[int, ...]]


@dataclass(frozen=True)
class ReadSchedule:
    """The reads, the stores and the barrier before each product of a tile.

    Attributes:
        products: of a tile in their order: call, row and column of the warp's units.
        stored: the product before which the next tile is stored.
        barrier: the one before which the block waits. The products between hide the stores, those
            behind it the first reads of the next tile, and other warps.
        due: reads of the tile's operands, by the product before which they stand.
        early: those of the tile after it, that do not wait for that tile's first product.
    """

    products: list[tuple[int, int, int]]
    stored: int
    barrier: int
    due: dict[int, list[Read]]
    early: dict[int, list[Read]]

    @classmethod
    def of(cls, of_warp: tuple[int, int], calls: int, together: bool) -> ReadSchedule:
        """The schedule of a warp.

        Args:
            of_warp: units along rows and along columns.
            calls: of a unit for a tile.
            together: whether one read is for all units along a side.
        """
        rows, columns = of_warp
        products = list(product(range(calls), range(rows), range(columns)))
        count = len(products)
        stored = count - (rows * columns if calls > 1 else max(count // 2, 1))
        barrier = min(stored + AHEAD, max(stored, count - AHEAD))
        due: defaultdict[int, list[Read]] = defaultdict(list)
        early: defaultdict[int, list[Read]] = defaultdict(list)
        for call, side in product(range(calls), range(2)):
            for units in read_together(of_warp[side], together):
                # The first product that needs it, and where it is read.
                first = call * rows * columns + units[0] * (1 if side else columns)
                at = first - AHEAD
                if at >= 0:
                    due[min(at, barrier)].append((side, call, units))
                else:
                    early[max(count + at, barrier)].append((side, call, units))
        return cls(products, stored, barrier, dict(due), dict(early))

    @property
    def early_reads(self) -> list[Read]:
        """The reads of ``early`` in their order."""
        return [read for at in sorted(self.early) for read in self.early[at]]


def read_together(units: int, together: bool) -> list[tuple[int, ...]]:
    """The units of a warp along a side whose operands one read is for."""
    return [tuple(range(units))] if together else [(unit,) for unit in range(units)]
