"""Measures accesses of subgroups: sectors of device memory, banks of shared memory."""

from __future__ import annotations

import numpy as np

from polyblocks.simt.chip import Chip
from polyblocks.simt.counts import Counts
from polyblocks.simt.types import Array

#: Stands for a lane that does not take part; sorts behind all offsets.
_NONE = np.iinfo(np.int64).max


def _rows(offsets: Array, lanes: Array, total: int, width: int) -> Array:
    """Offsets with one row per subgroup."""
    if lanes.size == total:
        return np.sort(offsets.reshape(-1, width), axis=1)
    flat = np.full(total, _NONE)
    flat[lanes] = offsets
    table = flat.reshape(-1, width)
    return np.sort(table[table.min(axis=1) != _NONE], axis=1)


def _distinct(rows: Array) -> Array:
    """How many different entries each sorted row has."""
    here = rows != _NONE
    return here[:, 0] + (here[:, 1:] & (rows[:, 1:] != rows[:, :-1])).sum(axis=1)


class Traffic:
    """Adds up the traffic of one launch.

    Args:
        chip: widths of subgroup, sector and banks.
        counts: where the sums go.
    """

    def __init__(self, chip: Chip, counts: Counts) -> None:
        self.chip, self.counts = chip, counts
        self._read = np.zeros(0, bool)
        self._written = np.zeros(0, bool)

    def begin(self, global_bytes: int) -> None:
        """Make room to note the touched sectors of this much global memory."""
        sectors = global_bytes // self.chip.sector_bytes + 2
        self._read = np.zeros(sectors, bool)
        self._written = np.zeros(sectors, bool)

    def end(self) -> None:
        """Turn touched sectors into bytes."""
        unit = self.chip.sector_bytes
        self.counts.global_read_floor += int(self._read.sum()) * unit
        self.counts.global_write_floor += int(self._written.sum()) * unit

    def access(
        self, level: str, offsets: Array, lanes: Array, total: int, size: int, write: bool
    ) -> None:
        """Note one access of ``size`` bytes by each of some lanes.

        Args:
            level: ``global``, ``shared`` or ``private``.
            offsets: bytes, shape ``(n,)``.
            lanes: the accessing lanes, ascending, shape ``(n,)``.
            total: lanes that there are.
        """
        counts, asked = self.counts, size * offsets.size
        name = f"{level}_{'stored' if write else 'loaded'}"
        setattr(counts, name, getattr(counts, name) + asked)
        if level == "global":
            self._sectors(offsets, lanes, total, size, write)
        elif level == "shared":
            self._banks(offsets, lanes, total, size)

    def _sectors(self, offsets: Array, lanes: Array, total: int, size: int, write: bool) -> None:
        unit = self.chip.sector_bytes
        rows = _rows(offsets, lanes, total, self.chip.subgroup_width)
        asked = _distinct(rows) * size
        first = np.where(rows == _NONE, _NONE, rows // unit)
        end = np.where(rows == _NONE, 0, rows) + (size - 1)
        last = np.where(rows == _NONE, _NONE, end // unit)
        span = int((last - first).max()) + 1
        touched = self._written if write else self._read
        if span > 1:
            none = first == _NONE
            steps = [np.where(none, _NONE, np.minimum(first + s, last)) for s in range(span)]
            first = np.sort(np.concatenate(steps, axis=1), axis=1)
        touched[first[first != _NONE]] = True
        self.counts.global_accesses += len(rows)
        self.counts.sectors += int(_distinct(first).sum())
        self.counts.ideal_sectors += int((-(-asked // unit)).sum())

    def _banks(self, offsets: Array, lanes: Array, total: int, size: int) -> None:
        chip = self.chip
        words = max(1, size // chip.bank_bytes)
        # Wide accesses go in phases: as many lanes at once as fill all banks.
        phase = max(1, min(chip.subgroup_width, chip.banks // words))
        first = offsets // chip.bank_bytes
        table = np.full(total, _NONE)
        table[lanes] = first
        rows = table.reshape(-1, phase)
        rows = rows[(rows != _NONE).any(axis=1)]
        if words > 1:
            spread = rows[:, :, None] + np.arange(words)
            rows = np.where(rows[:, :, None] == _NONE, _NONE, spread).reshape(len(rows), -1)
        rows = np.sort(rows, axis=1)
        new = rows != _NONE
        new[:, 1:] &= rows[:, 1:] != rows[:, :-1]
        group = np.broadcast_to(np.arange(len(rows))[:, None], rows.shape)[new]
        bank = rows[new] % chip.banks
        load = np.bincount(group * chip.banks + bank, minlength=len(rows) * chip.banks)
        cycles = load.reshape(-1, chip.banks).max(axis=1)
        self.counts.shared_accesses += len(rows)
        self.counts.bank_conflicts += int(cycles.sum()) - len(rows)
