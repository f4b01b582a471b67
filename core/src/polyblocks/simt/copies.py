"""Asynchronous copies: bytes arrive when their thread waits for them, not before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyblocks.simt.memory import PENDING
from polyblocks.simt.types import Array

if TYPE_CHECKING:
    from polyblocks.simt.accesses import Accesses, Place


@dataclass
class _Flight:
    place: Place
    words: Array
    size: int
    group: Array
    site: int


class Copies:
    """The copies under way of the lanes that run, in groups that each lane closes.

    Args:
        lanes: how many lanes run.
    """

    def __init__(self, lanes: int) -> None:
        #: Groups that each lane has closed.
        self.closed = np.zeros(lanes, np.int64)
        self._flights: list[_Flight] = []

    def start(
        self,
        machine: Accesses,
        to: Array,
        to_space: int,
        source: Array,
        source_space: int,
        size: int,
        source_bytes: Array | None = None,
    ) -> None:
        """Start a copy of ``size`` bytes per executing lane into the open group.

        Args:
            to, source: addresses.
            size: a multiple of 4, and the alignment of both addresses.
            source_bytes: bytes to read per lane; the rest arrives as zeros. All if None.
        """
        words = self._read(machine, source, source_space, size, source_bytes)
        for place in machine.places(to, size, size, to_space, "copies"):
            machine.note(place, size, write=True)
            spread = place.offsets + np.arange(size)[:, None]
            machine.memories[place.level].mark(spread, PENDING)
            group = self.closed[place.lanes]
            self._flights.append(_Flight(place, words[:, place.lanes], size, group, machine.site))

    def _read(
        self, machine: Accesses, source: Array, space: int, size: int, source_bytes: Array | None
    ) -> Array:
        if source_bytes is None:
            return machine.load(source, 4, size // 4, size, space)
        whole = np.broadcast_to(source_bytes, (machine.lanes,))
        if (whole[machine.mask] == size).all():
            return machine.load(source, 4, size // 4, size, space)
        outer, count = machine.mask, machine.active
        words = np.zeros((size // 4, machine.lanes), np.uint32)
        for index in range(size // 4):
            some = outer & (whole > 4 * index)
            active = int(np.count_nonzero(some))
            if active:
                machine.set_mask(some, active)
                words[index] = machine.load(source + 4 * index, 4, 0, 4, space)
        machine.set_mask(outer, count)
        return words

    def close(self, machine: Accesses) -> None:
        """The executing lanes close their open groups."""
        self.closed[machine.positions] += 1

    def wait(self, machine: Accesses, keep: int | None) -> None:
        """The executing lanes wait until at most ``keep`` closed groups are under way.

        Args:
            keep: None waits for everything, closed or not.
        """
        left = []
        for flight in self._flights:
            lanes = flight.place.lanes
            done = machine.mask[lanes]
            if keep is not None:
                done = done & (flight.group < self.closed[lanes] - keep)
            if done.any():
                self._arrive(machine, flight, done)
            if not done.all():
                left.append(_part(flight, ~done))
        self._flights = left

    def _arrive(self, machine: Accesses, flight: _Flight, done: Array) -> None:
        part = _part(flight, done)
        offsets = part.place.offsets + np.arange(0, part.size, 4)[:, None]
        machine.memories[part.place.level].store(offsets, part.words)
        # The write happens now, and only for the waiting thread: others need a barrier after it.
        site, machine.site = machine.site, part.site
        machine.note(part.place, part.size, write=True, count=False)
        machine.site = site


def _part(flight: _Flight, some: Array) -> _Flight:
    place = flight.place
    chosen = type(place)(place.level, place.offsets[some], place.lanes[some])
    return _Flight(chosen, flight.words[:, some], flight.size, flight.group[some], flight.site)
