"""Bulk copies and barriers, simulated: bytes arrive when the end of their phase is asked for.

A thread that asks for the end of a phase is ordered behind all that its block did before that end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from polyblocks.runtime.device.tensor_map import IM2COL, TensorMap
from polyblocks.simt.memory import PENDING, WRITTEN
from polyblocks.simt.types import Array

if TYPE_CHECKING:
    from polyblocks.simt.accesses import Accesses, Place

#: Bytes of a barrier and of a piece, pieces of a line, and the address space of shared memory.
_BARRIER, _PIECE, _PIECES, _SHARED = 8, 16, 8, 3
#: Questions without an answer, one after the other, after which nothing is expected any more.
_PATIENCE = 1000


@dataclass
class _Flight:
    place: Place
    words: Array
    site: int


@dataclass
class _Barrier:
    """Attributes:
    count: threads that arrive in a phase.
    pending: those that have not in this one.
    expected: bytes.
    phase: its number.
    ended: the tick at which the one before ended.
    flights: copies that count their bytes here.
    of_peers: whether threads of another block have arrived, or copied to here, in this phase.
    peers_ended: the tick at which the last phase ended that other blocks had a part in.
    used: the tick and the place of the last arrival of another block.
    """

    count: int
    pending: int
    expected: int = 0
    phase: int = 0
    ended: int = 0
    flights: list[_Flight] = field(default_factory=list)
    of_peers: bool = False
    peers_ended: int = 0
    used: tuple[int, int] = (0, 0)

    @property
    def on_the_way(self) -> int:
        """Bytes of copies that were started."""
        return sum(flight.words.nbytes for flight in self.flights)


class BulkCopies:
    """The barriers of the blocks that run, and the copies that these wait for."""

    def __init__(self) -> None:
        self._barriers: dict[int, _Barrier] = {}
        #: Tick of the last bulk copy that filled each granule of shared memory.
        self.filled: Array | None = None
        self._asked = 0
        self._given_up = False

    def prepare(self, machine: Accesses, address: Array, count: Array) -> None:
        """Make barriers at which ``count`` threads arrive."""
        counts = np.broadcast_to(count, (machine.lanes,))
        for place in machine.places(address, _BARRIER, _BARRIER, _SHARED, "prepares"):
            machine.note(place, _BARRIER, write=True, count=False)
            for offset, lane in zip(place.offsets.tolist(), place.lanes.tolist(), strict=True):
                number = int(counts[lane])
                self._barriers[offset] = _Barrier(number, number)

    def arrive(
        self,
        machine: Accesses,
        address: Array,
        expected: Array | None = None,
        rank: Array | None = None,
    ) -> None:
        """The executing lanes arrive, and expect bytes.

        Args:
            machine: that executes.
            address: of a barrier.
            expected: bytes.
            rank: the number of the barrier's block in the cluster; None: the lane's own.
        """
        bytes_ = np.broadcast_to(0 if expected is None else expected, (machine.lanes,))
        self._asked = 0
        for barrier, lanes in self._of_lanes(machine, address, rank):
            barrier.expected += int(bytes_[lanes].sum())
            barrier.pending -= lanes.size
            if barrier.pending < 0:
                message = f"arrives where {barrier.count} threads have arrived before in the phase"
                machine.report_lane("wrong barrier", message, int(lanes[0]), lanes.size)

    def start(
        self,
        machine: Accesses,
        to: Array,
        barrier: Array,
        map_: TensorMap,
        first: tuple[Array, ...],
        blocks: int | None = None,
    ) -> None:
        """Start the copy of a box for each executing lane.

        Args:
            to: where in shared memory.
            barrier: that counts the bytes.
            map_: of the array.
            first: of each dimension the first element, the innermost one first; of pixels the
                offsets, too.
            blocks: those of the cluster that get it, as bits; None: the lane's own.
        """
        self._asked = 0
        if blocks is None:
            self._start(machine, to, barrier, map_, first, None)
            return
        for rank in range(blocks.bit_length()):
            if blocks >> rank & 1:
                self._start(machine, to, barrier, map_, first, np.full(1, rank))

    def _start(
        self,
        machine: Accesses,
        to: Array,
        barrier: Array,
        map_: TensorMap,
        first: tuple[Array, ...],
        rank: Array | None,
    ) -> None:
        size = map_.element_bytes * int(np.prod(map_.box))
        line = map_.element_bytes * map_.box[0]
        begins = [np.broadcast_to(each, (machine.lanes,)) for each in first]
        barriers = {
            lane: at
            for at, lanes in self._of_lanes(machine, barrier, rank)
            for lane in lanes.tolist()
        }
        whole = np.broadcast_to(to, (machine.lanes,))
        for own in machine.places(to, size, _PIECES * _PIECE, _SHARED, "copies"):
            place = own if rank is None else in_cluster(machine, own, rank)
            for offset, lane in zip(place.offsets.tolist(), place.lanes.tolist(), strict=True):
                corner = [int(each[lane]) for each in begins]
                box = _pixels if map_.kind == IM2COL else _box
                words = box(machine, map_, corner, lane, line)
                address = int(whole[lane]) + np.arange(0, size, _PIECE)
                swizzled = address ^ (address // (_PIECES * _PIECE) % _PIECES * _PIECE)
                offsets = offset + swizzled - int(whole[lane])
                found = type(place)("shared", offsets, np.full(offsets.size, lane))
                machine.note(found, _PIECE, write=True, count=False)
                machine.memories["shared"].mark(offsets + np.arange(_PIECE)[:, None], PENDING)
                if lane in barriers:
                    barriers[lane].flights.append(_Flight(found, words, machine.site))

    def is_over(self, machine: Any, address: Array, parity: Array) -> Array:
        """Whether the last phase of a parity has ended, of each executing lane's barrier."""
        parities = np.broadcast_to(parity, (machine.lanes,))
        over = np.zeros(machine.lanes, bool)
        since = machine.clock.block_since
        for barrier, lanes in self._of_lanes(machine, address):
            wanted = parities[lanes] & 1
            if (wanted == barrier.phase & 1).any() and not barrier.pending:
                self._end(machine, barrier, int(lanes[0]))
            over[lanes] = wanted != barrier.phase & 1
            done = lanes[over[lanes]]
            since[done] = np.maximum(since[done], barrier.ended)
            of_peers = machine.clock.cluster_since
            of_peers[done] = np.maximum(of_peers[done], barrier.peers_ended)
            if done.size < lanes.size and self._asked > _PATIENCE:
                self._give_up(machine, barrier, int(lanes[0]))
        over |= self._given_up
        if (machine.mask & ~over).any():
            self._asked += 1
            machine.gives_turn = True
        return over

    def _end(self, machine: Any, barrier: _Barrier, lane: int) -> None:
        """End the phase at whose end everything is there, if it is under way."""
        if barrier.on_the_way < barrier.expected:
            return
        if barrier.on_the_way > barrier.expected:
            message = (
                f"waits for {barrier.expected} bytes, and copies bring {barrier.on_the_way}: it "
                "may go on before they are there"
            )
            machine.report_lane("wrong barrier", message, lane, 1)
        for flight in barrier.flights:
            self._land(machine, flight)
        barrier.flights, barrier.expected, barrier.pending = [], 0, barrier.count
        barrier.phase += 1
        barrier.ended = machine.clock.tick()
        if barrier.of_peers:
            barrier.of_peers, barrier.peers_ended = False, barrier.ended
        self._asked = 0

    def _land(self, machine: Any, flight: _Flight) -> None:
        """Bytes arrive."""
        place, site = flight.place, machine.site
        machine.memories["shared"].store(
            place.offsets + np.arange(0, _PIECE, 4)[:, None], flight.words
        )
        machine.site = flight.site
        machine.note(place, _PIECE, write=True, count=False)
        machine.site = site
        shadow = machine.shadows["shared"]
        if self.filled is None:
            self.filled = np.zeros(shadow.write_tick.size, np.int32)
        granules = place.offsets // machine.granule + np.arange(_PIECE // machine.granule)[:, None]
        self.filled[granules] = shadow.write_tick[granules]

    def needs_fence(self, granules: Array, ticks: Array) -> Array:
        """Whether what was written last, at these ticks, was written by threads."""
        if self.filled is None:
            return np.ones(granules.shape, bool)
        return self.filled[granules] != ticks

    def _give_up(self, machine: Any, barrier: _Barrier, lane: int) -> None:
        missing = [f"{barrier.pending} of {barrier.count} threads"] * bool(barrier.pending)
        if barrier.on_the_way != barrier.expected:
            missing.append(
                f"{barrier.expected - barrier.on_the_way} of {barrier.expected} expected bytes"
            )
        what = " and ".join(missing) or "nothing"
        message = f"waits for a phase that never ends: {what} missing"
        machine.report_lane("wrong barrier", message, lane, 1)
        self._given_up = True

    def finish(self, machine: Any) -> None:
        """Report copies that nothing has waited for when all threads have ended.

        And what another block does at a barrier after all blocks of the cluster have met last.
        """
        for offset, barrier in self._barriers.items():
            tick, site = barrier.used
            block = offset // machine.windows["shared"].used
            if tick and tick >= machine.met[block]:
                machine.site = site
                message = "is at a barrier of another block of the cluster, which may have ended"
                machine.report_lane("wrong barrier", message, block * machine.block_lanes, 1)
                break
        for barrier in self._barriers.values():
            if barrier.flights:
                flight = barrier.flights[0]
                machine.site = flight.site
                message = "is not waited for: it may write when the memory is another block's"
                machine.report_lane("unwaited copy", message, int(flight.place.lanes[0]), 1)
                return

    def _of_lanes(
        self, machine: Any, address: Array, rank: Array | None = None
    ) -> Iterator[tuple[_Barrier, Array]]:
        """Barriers, and the executing lanes that use each; reports places that are none."""
        for own in machine.places(address, _BARRIER, _BARRIER, _SHARED, "uses"):
            place = own if rank is None else in_cluster(machine, own, rank)
            machine.note(place, _BARRIER, write=False, count=False)
            for offset in np.unique(place.offsets).tolist():
                lanes = place.lanes[place.offsets == offset]
                barrier = self._barriers.get(offset)
                if barrier is None:
                    message = "uses a place in shared memory that was not prepared as a barrier"
                    machine.report_lane("wrong barrier", message, int(lanes[0]), lanes.size)
                    self._given_up = True
                    continue
                block = offset // machine.windows["shared"].used
                if (machine.block_of_lane[lanes] != block).any():
                    barrier.of_peers, barrier.used = True, (machine.clock.now, machine.site)
                yield barrier, lanes


def in_cluster(machine: Any, place: Place, rank: Array) -> Place:
    """The same place in the shared memory of blocks of the lanes' clusters.

    Args:
        machine: that executes.
        place: in the lanes' own blocks.
        rank: numbers of the blocks in their clusters, one of each lane, or of all; those that there
            are not are reported.
    """
    size, own = machine.clock.cluster, machine.block_of_lane[place.lanes]
    ranks = np.broadcast_to(rank, (machine.lanes,))[place.lanes]
    there = ranks < size
    if not there.all():
        message = f"is for block {int(ranks.max())} of a cluster of {size}"
        machine.report_lane("out of bounds", message, int(place.lanes[~there][0]), 1)
    blocks = own // size * size + np.where(there, ranks, 0)
    offsets = place.offsets + (blocks - own) * machine.windows["shared"].used
    return type(place)(place.level, offsets, place.lanes)


def _box(machine: Any, map_: TensorMap, corner: list[int], lane: int, line: int) -> Array:
    """The words of a box, zeros outside of the array: shape (4, pieces)."""
    rows = np.indices(map_.box[:0:-1]).reshape(len(map_.box) - 1, -1)[::-1]
    return _lines(
        machine, map_, rows + np.array(corner[1:], np.int64)[:, None], corner[0], lane, line
    )


def _pixels(machine: Any, map_: TensorMap, given: list[int], lane: int, line: int) -> Array:
    """The words of pixels one after the other: shape (4, pieces).

    Each is the place of a window's first element, which goes from the lower corner to the upper one
    along each dimension, and begins again along the next one; offsets move all of them.
    """
    rank, count = len(map_.extents), map_.box[1]
    places, offsets = np.array(given[1:rank]), np.array(given[rank:], np.int64) & 0xFFFF
    lower = np.array(map_.lower, np.int64)
    last = np.array(map_.extents[1:-1], np.int64) - 1 + np.array(map_.upper)
    steps = np.array(map_.steps, np.int64)
    begins = places[:-1] - lower
    if (begins % steps).any() or (begins < 0).any() or (places[:-1] > last).any():
        message = (
            f"copies pixels from {places[:-1].tolist()} on, outside of steps of "
            f"{steps.tolist()} from {lower.tolist()} to {last.tolist()}"
        )
        machine.report_lane("out of bounds", message, lane, 1)
        return np.zeros((4, count * line // _PIECE), np.uint32)
    rest = np.arange(count, dtype=np.int64)
    rows = []
    for begin, low, end, step in zip(begins, lower, last, steps, strict=True):
        windows = (end - low) // step + 1
        rest = rest + begin // step
        rows.append(low + rest % windows * step)
        rest = rest // windows
    moved = [row + offset for row, offset in zip(rows, offsets, strict=True)]
    return _lines(machine, map_, np.array([*moved, places[-1] + rest]), given[0], lane, line)


def _lines(
    machine: Any, map_: TensorMap, places: Array, column: int, lane: int, line: int
) -> Array:
    """The words of lines at places of all dimensions but the innermost one: shape (4, pieces)."""
    ends = np.array(map_.extents[1:], np.int64)[:, None]
    there = ((places >= 0) & (places < ends)).all(axis=0)
    begins = map_.place + (places * np.array(map_.strides, np.int64)[:, None]).sum(axis=0)
    size = map_.element_bytes
    inner = column + np.arange(line // size)
    inside = (inner >= 0) & (inner < map_.extents[0])
    found = np.zeros((there.size, line), np.uint8)
    if there.any() and inside.any():
        first, count = int(inner[inside][0]), int(inside.sum())
        at = begins[there] + first * size
        offsets, located = machine.windows["global"].locate(at, count * size)
        if located is not None:
            message = f"copies {count * size} bytes of an array from where it is not"
            machine.report_lane("out of bounds", message, lane, int((~located).sum()))
        else:
            spread = offsets[:, None] + np.arange(count * size)
            memory = machine.memories["global"]
            if (memory.state[spread] != WRITTEN).any():
                message = "copies what nothing has written"
                machine.report_lane("unwritten read", message, lane, 1)
            begin = int(inside.argmax()) * size
            part = found[there]
            part[:, begin : begin + count * size] = memory.data[spread]
            found[there] = part
    return found.reshape(-1, _PIECE).view(np.uint32).T.copy()
