"""Boxes of shared memory that a thread stores to arrays, simulated: they are read late.

A box is read where it is started, and again where its thread waits for that; both must be the same,
and nothing else may write it in between. It is in its array when it has been waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks.runtime.device.tensor_map import TensorMap
from polyblocks.simt.types import Array

#: Bytes of a piece, pieces of a line, and the address space of shared memory.
_PIECE, _PIECES, _SHARED = 16, 8, 3


@dataclass
class _Flight:
    """Attributes:
    lane: that started it.
    group: of the lane's boxes.
    source: pieces of shared memory.
    words: what was there, shape (4, pieces).
    to: where each piece goes in the array; -1 for one outside.
    site: of the start.
    """

    lane: int
    group: int
    source: Any
    words: Array
    to: Array
    site: int


class BulkStores:
    """The boxes that are on their way to arrays, in groups that each thread closes."""

    def __init__(self) -> None:
        self._flights: list[_Flight] = []
        self._closed: dict[int, int] = {}

    def start(self, machine: Any, source: Array, map_: TensorMap, first: tuple[Array, ...]) -> None:
        """Start the store of a box for each executing lane.

        Args:
            machine: that executes.
            source: where in shared memory.
            map_: of the array.
            first: of each dimension the first element, the innermost one first.
        """
        size = map_.element_bytes * int(np.prod(map_.box))
        begins = [np.broadcast_to(each, (machine.lanes,)) for each in first]
        whole = np.broadcast_to(source, (machine.lanes,))
        for place in machine.places(source, size, _PIECES * _PIECE, _SHARED, "copies"):
            for offset, lane in zip(place.offsets.tolist(), place.lanes.tolist(), strict=True):
                address = int(whole[lane]) + np.arange(0, size, _PIECE)
                swizzled = address ^ (address // (_PIECES * _PIECE) % _PIECES * _PIECE)
                offsets = offset + swizzled - int(whole[lane])
                found = type(place)("shared", offsets, np.full(offsets.size, lane))
                words = self._read(machine, found)
                self._check_fences(machine, found)
                to = _places(machine, map_, [int(each[lane]) for each in begins], lane)
                group = self._closed.get(lane, 0)
                self._flights.append(_Flight(lane, group, found, words, to, machine.site))

    def close(self, machine: Any) -> None:
        """The boxes since the last call of this are a group."""
        for lane in machine.positions.tolist():
            self._closed[lane] = self._closed.get(lane, 0) + 1

    def wait(self, machine: Any, keep: int) -> None:
        """The executing lanes wait until at most ``keep`` groups have not been read."""
        lanes, site, left = set(machine.positions.tolist()), machine.site, []
        for flight in self._flights:
            if flight.lane not in lanes or flight.group >= self._closed.get(flight.lane, 0) - keep:
                left.append(flight)
                continue
            machine.site = flight.site
            if (self._read(machine, flight.source) != flight.words).any():
                message = "stores shared memory that was written before it was read"
                machine.report_lane("unwaited copy", message, flight.lane, 1)
            _land(machine, flight)
        self._flights, machine.site = left, site

    def finish(self, machine: Any) -> None:
        """Report boxes that nothing has waited for when all threads have ended."""
        for flight in self._flights[:1]:
            machine.site = flight.site
            message = "is not waited for: memory is left before it has been read"
            machine.report_lane("unwaited copy", message, flight.lane, len(self._flights))

    def _read(self, machine: Any, place: Any) -> Array:
        """The words of pieces, shape (4, pieces)."""
        machine.note(place, _PIECE, write=False, count=False)
        offsets = place.offsets + np.arange(0, _PIECE, 4)[:, None]
        words, states = machine.memories["shared"].load(offsets, 4)
        if states is not None:
            message = "stores shared memory that nothing has written"
            machine.report_lane("unwritten read", message, int(place.lanes[0]), 1)
        return np.array(words)

    def _check_fences(self, machine: Any, place: Any) -> None:
        """Report what was written by a thread that had no fence behind it."""
        shadow, at = machine.shadows["shared"], place.offsets // machine.granule
        first = place.lanes // machine.block_lanes * machine.block_lanes
        ticks = shadow.write_tick[at]
        writer = first + shadow.write_id[at] % machine.block_lanes
        late = (ticks >= machine.clock.start) & (machine.products.visible[writer] <= ticks)
        if late.any():
            message = "stores shared memory that a thread has written without a fence behind it"
            machine.report_lane("missing fence", message, int(place.lanes[0]), int(late.sum()))


def _places(machine: Any, map_: TensorMap, corner: list[int], lane: int) -> Array:
    """Addresses of the pieces of a box, -1 outside of the array; reports ends inside of pieces."""
    size, per = map_.element_bytes, _PIECE // map_.element_bytes
    rows = np.indices(map_.box[:0:-1]).reshape(len(map_.box) - 1, -1)[::-1]
    places = rows + np.array(corner[1:], np.int64)[:, None]
    ends = np.array(map_.extents[1:], np.int64)[:, None]
    there = np.all((places >= 0) & (places < ends), axis=0)
    begins = map_.place + (places * np.array(map_.strides, np.int64)[:, None]).sum(axis=0)
    column = corner[0] + np.arange(0, map_.box[0], per)
    inside = np.logical_and(there[:, None], column < map_.extents[0])
    past = inside & (column + per > map_.extents[0])
    if past.any():
        message = (
            f"stores past the end of a row of {map_.extents[0] * size} bytes, which is inside of a "
            f"piece of {_PIECE}"
        )
        machine.report_lane("out of bounds", message, lane, int(past.sum()))
    return np.where(inside, begins[:, None] + column * size, -1).ravel()


def _land(machine: Any, flight: _Flight) -> None:
    """A box arrives in its array."""
    inside = flight.to >= 0
    if not inside.any():
        return
    offsets, located = machine.windows["global"].locate(flight.to[inside], _PIECE)
    words = flight.words[:, inside]
    if located is not None:
        message = f"stores {_PIECE} bytes of an array to where it is not"
        machine.report_lane("out of bounds", message, flight.lane, int((~located).sum()))
        offsets, words = offsets[located], words[:, located]
    at = offsets + np.arange(0, _PIECE, 4)[:, None]
    machine.memories["global"].store(at, words)
    found = type(flight.source)("global", offsets, np.full(offsets.size, flight.lane))
    machine.note(found, _PIECE, write=True, count=False)
