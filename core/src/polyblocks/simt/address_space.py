"""One flat virtual address space: where buffers, shared arrays and private arrays lie.

Shared and private arrays have the same addresses in every block and thread; they lie in windows
of their own below 4 GiB, so that their pointers fit 32 bits. Everything is followed by a gap
that no access may touch.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from polyblocks.simt.types import Array

SHARED_BASE = 1 << 30
PRIVATE_BASE = 1 << 31
#: Where the shared array lies whose size a launch gives.
DYNAMIC_BASE = SHARED_BASE + (1 << 29)
WINDOW_END = 1 << 32
GLOBAL_BASE = 1 << 36
#: Least distance from the end of one array to the next.
GLOBAL_GAP = 1 << 30
LOCAL_GAP = 1 << 16


@dataclass(frozen=True)
class Region:
    """One array.

    Attributes:
        name: as findings call it.
        base: first virtual address.
        size: bytes.
        offset: of the first byte in its memory (in one block's or thread's part of it).
    """

    name: str
    base: int
    size: int
    offset: int


class Window:
    """The arrays of one memory level in order of their addresses.

    Attributes:
        name: ``global``, ``shared`` or ``private``.
        regions: the arrays.
        used: bytes of memory that they take, in each block or thread.
    """

    def __init__(self, name: str, base: int, gap: int, alignment: int) -> None:
        self.name = name
        self.regions: list[Region] = []
        self.used = 0
        self._next, self._gap, self._alignment = base, gap, alignment
        self._bases: list[int] = []
        self._table: tuple[Array, Array, Array] | None = None

    def add(self, name: str, size: int, base: int = 0) -> Region:
        """Place an array of ``size`` bytes after the others, or at ``base`` behind them."""
        step = self._alignment
        self._next = max(self._next, base)
        region = Region(name, self._next, size, self.used)
        self.used += -(-size // step) * step
        self._next += -(-(size + self._gap) // self._gap) * self._gap
        self.regions.append(region)
        self._bases.append(region.base)
        self._table = None
        return region

    def truncate(self, count: int) -> None:
        """Forget all arrays after the first ``count``."""
        if count < len(self.regions):
            first = self.regions[count]
            self.used, self._next = first.offset, first.base
            del self.regions[count:], self._bases[count:]
            self._table = None

    def resize(self, region: Region, size: int) -> Region:
        """Give the last placed array another size."""
        assert region is self.regions[-1]
        self.truncate(len(self.regions) - 1)
        return self.add(region.name, size)

    def locate(self, addresses: Array, size: int) -> tuple[Array, Array | None]:
        """Offsets in the memory of accesses of ``size`` bytes.

        Returns:
            (offsets, None), or (offsets, which accesses lie inside an array).
        """
        if not self.regions:
            return np.zeros_like(addresses), np.zeros(addresses.shape, bool)
        low, high = int(addresses.min()), int(addresses.max())
        at = bisect_right(self._bases, low) - 1
        if at >= 0:
            region = self.regions[at]
            if high + size <= region.base + region.size:
                return addresses + (region.offset - region.base), None
        if self._table is None:
            self._table = (
                np.array(self._bases, np.int64),
                np.array([r.base + r.size for r in self.regions], np.int64),
                np.array([r.offset - r.base for r in self.regions], np.int64),
            )
        bases, ends, shifts = self._table
        index = np.maximum(np.searchsorted(bases, addresses, side="right") - 1, 0)
        inside = (addresses >= bases[index]) & (addresses + size <= ends[index])
        return np.where(inside, addresses + shifts[index], 0), None if inside.all() else inside

    def describe(self, address: int, size: int) -> str:
        """Where an address lies, for a message."""
        at = max(bisect_right(self._bases, address) - 1, 0)
        if not self.regions:
            return f"there is no {self.name} memory"
        region = self.regions[at]
        distance = address - region.base
        if distance < 0:
            return f"{-distance} bytes before {region.name} ({region.size} bytes)"
        return f"byte {distance} of {region.name} ({region.size} bytes)"


def window_of(space: int, address: int) -> str:
    """The memory level that an address belongs to; empty where none."""
    if address >= GLOBAL_BASE:
        found = "global"
    elif PRIVATE_BASE <= address < WINDOW_END:
        found = "private"
    elif SHARED_BASE <= address < PRIVATE_BASE:
        found = "shared"
    else:
        found = ""
    expected = {1: "global", 4: "global", 3: "shared", 5: "private"}.get(space, found)
    return found if found == expected else ""


def global_window() -> Window:
    """For buffers and constants."""
    return Window("global", GLOBAL_BASE, GLOBAL_GAP, 256)


def shared_window() -> Window:
    """For the shared arrays of one kernel; each starts at the first bank."""
    return Window("shared", SHARED_BASE, LOCAL_GAP, 1024)


def private_window() -> Window:
    """For the private arrays of one kernel."""
    return Window("private", PRIVATE_BASE, LOCAL_GAP, 16)
