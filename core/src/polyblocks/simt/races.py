"""Finds accesses of two threads to one place that nothing orders.

A clock ticks at every barrier, fence and ordering atomic. Each place remembers who wrote and who
read it last and at which tick (the idea of Eraser's and FastTrack's shadow words, Flanagan and
Freund, PLDI 2009, reduced to what barriers need). An earlier access is ordered before one of
thread u

* of the same block, if it happened before the block's last barrier,
* of the same subgroup, also if before the subgroup's last barrier,
* of another block, if that block released (fence or atomic) after it and u acquired after that,
* of another block of the same cluster, also if before what u has waited for of that block.

The last rule does not ask whether the two met in the same atomic, so it may miss races of kernels
that synchronize blocks; it never reports an ordered access.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyblocks.simt.types import Array

#: Several threads of different blocks.
_MANY_BLOCKS = -1


class Clock:
    """Who is ordered after what, per lane of the blocks that run.

    Attributes:
        now: the tick.
        start: tick of the launch; older accesses are ordered.
        ids: number of each lane's thread in the launch (padded to whole subgroups).
        block_since, subgroup_since: tick of the last barrier, per lane.
        acquired: tick of the last acquire, per lane.
        released: tick of the last release, per block of the grid.
        cluster: blocks of a cluster.
        cluster_since: tick up to which a lane has waited for other blocks of its cluster.
    """

    def __init__(
        self, blocks: int, block_lanes: int, subgroup: int, now: int, cluster: int = 1
    ) -> None:
        self.now = self.start = now
        self.block_lanes = block_lanes
        self.subgroup, self.cluster = subgroup, cluster
        self.released = np.zeros(blocks, np.int32)
        self.ids = np.zeros(0, np.int32)
        self.block_since = self.subgroup_since = self.acquired = self.ids
        self.cluster_since = self.ids

    def begin(self, blocks: Array) -> None:
        """Start some blocks of the grid, given by their numbers."""
        inside = np.arange(self.block_lanes, dtype=np.int32)
        self.ids = (blocks[:, None].astype(np.int32) * self.block_lanes + inside).reshape(-1)
        lanes = self.ids.size
        self.now += 1
        self.block_since = np.full(lanes, self.start, np.int32)
        self.subgroup_since = self.block_since.copy()
        self.acquired = self.block_since.copy()
        self.cluster_since = self.block_since.copy()

    def tick(self) -> int:
        """Advance; returns the new tick."""
        self.now += 1
        return self.now


@dataclass
class Conflict:
    """A race.

    Attributes:
        lane: position among the accessing lanes, the first that races.
        other: thread number of the other one; negative where several threads.
        site: op of the earlier access.
        wrote: whether the earlier access wrote.
        lanes: how many accessing lanes race.
    """

    lane: int
    other: int
    site: int
    wrote: bool
    lanes: int


class Shadow:
    """Last writer and readers of every place of a memory.

    Args:
        places: how many.
        granule: bytes of a place.
    """

    def __init__(self, places: int, granule: int) -> None:
        self.granule = granule
        self.write_tick = np.zeros(places, np.int32)
        self.write_id = np.zeros(places, np.int32)
        self.write_site = np.zeros(places, np.int32)
        self.read_tick = np.zeros(places, np.int32)
        self.read_id = np.zeros(places, np.int32)
        self.read_site = np.zeros(places, np.int32)

    def grow(self, places: int) -> None:
        """Make room; what is known stays."""
        if places <= self.write_tick.size:
            return
        for name in ("write_tick", "write_id", "write_site", "read_tick", "read_id", "read_site"):
            bigger = np.zeros(places, np.int32)
            old = getattr(self, name)
            bigger[: old.size] = old
            setattr(self, name, bigger)

    def access(
        self,
        clock: Clock,
        lanes: Array,
        places: Array,
        site: int,
        write: bool,
        atomic: bool = False,
    ) -> Conflict | None:
        """Note the accesses of some lanes and return a conflict if there is one.

        Args:
            clock: the order.
            lanes: of the accessing threads, shape ``(n,)``.
            places: shape ``(n,)`` or ``(places per access, n)``.
            site: number of the op.
            write: whether it writes.
            atomic: whether it is an atomic; those do not race with each other.
        """
        if places.ndim == 2:
            lanes = np.broadcast_to(lanes, places.shape).reshape(-1)
            columns = places.shape[1]
            places = places.reshape(-1)
        else:
            columns = places.size
        ids = clock.ids[lanes]
        conflict = self._against_writers(clock, lanes, ids, places, atomic)
        if write:
            conflict = conflict or self._against_readers(clock, lanes, ids, places)
            self.write_id[places] = ids
            self.write_tick[places] = clock.now
            # The lowest bit says that it was atomic.
            self.write_site[places] = 2 * site + atomic
            if not atomic and conflict is None:
                clash = self.write_id[places] != ids
                if clash.any():
                    at = int(clash.argmax())
                    other = int(self.write_id[places[at]])
                    conflict = Conflict(at, other, site, True, int(clash.sum()))
        elif not atomic:
            self._note_readers(clock, lanes, ids, places, site)
        if conflict is not None:
            conflict.lane %= columns
            conflict.lanes = min(conflict.lanes, columns)
        return conflict

    def _against_writers(
        self, clock: Clock, lanes: Array, ids: Array, places: Array, atomic: bool
    ) -> Conflict | None:
        tick, writer = self.write_tick[places], self.write_id[places]
        doubtful = (tick >= clock.start) & (writer != ids)
        if not doubtful.any():
            return None
        if atomic:
            doubtful &= (self.write_site[places] & 1) == 0
        at = np.flatnonzero(doubtful)
        at = at[tick[at] >= self._ordered_until(clock, writer[at], lanes[at], ids[at])]
        if not at.size:
            return None
        first = int(at[0])
        site = int(self.write_site[places[first]]) >> 1
        return Conflict(first, int(writer[first]), site, True, at.size)

    def _against_readers(
        self, clock: Clock, lanes: Array, ids: Array, places: Array
    ) -> Conflict | None:
        tick, reader = self.read_tick[places], self.read_id[places]
        doubtful = (tick >= clock.start) & (tick > 0) & (reader != ids)
        if not doubtful.any():
            return None
        at = np.flatnonzero(doubtful)
        at = at[tick[at] >= self._ordered_until(clock, reader[at], lanes[at], ids[at])]
        if not at.size:
            return None
        first = int(at[0])
        site = int(self.read_site[places[first]])
        return Conflict(first, int(reader[first]), site, False, at.size)

    def _ordered_until(self, clock: Clock, who: Array, lanes: Array, ids: Array) -> Array:
        """Tick before which accesses of ``who`` are ordered before those of the lanes."""
        block, group = _homes(clock, who)
        my_group = ids // clock.subgroup
        my_block = ids // clock.block_lanes
        inside = clock.block_since[lanes]
        inside = np.where(
            group == my_group, np.maximum(inside, clock.subgroup_since[lanes]), inside
        )
        acquired = clock.acquired[lanes]
        released = np.where(block < 0, acquired, clock.released[block])
        outside = np.minimum(released, acquired)
        if clock.cluster > 1:
            near = (block >= 0) & (block // clock.cluster == my_block // clock.cluster)
            outside = np.where(near, np.maximum(outside, clock.cluster_since[lanes]), outside)
        return np.where(block == my_block, inside, outside)

    def _note_readers(
        self, clock: Clock, lanes: Array, ids: Array, places: Array, site: int
    ) -> None:
        tick, reader = self.read_tick[places], self.read_id[places]
        at = np.flatnonzero((tick >= clock.start) & (reader != ids) & (tick > 0))
        new = ids
        if at.size:
            # Accesses that are ordered before this read can be forgotten: those that are ordered
            # after this one come after them, too.
            at = at[tick[at] >= self._ordered_until(clock, reader[at], lanes[at], ids[at])]
            new = ids.copy()
            new[at] = _merged_name(clock, reader[at], ids[at])
        self.read_id[places] = new
        self.read_tick[places] = clock.now
        self.read_site[places] = site
        # Lanes that read one place in this very instruction.
        for _ in range(4):
            got = self.read_id[places]
            clash = np.flatnonzero(got != new)
            if not clash.size:
                return
            new = got.copy()
            new[clash] = _merged_name(clock, got[clash], ids[clash])
            self.read_id[places[clash]] = new[clash]


def _homes(clock: Clock, who: Array) -> tuple[Array, Array]:
    """(block, subgroup) of readers or writers; -1 where they are several."""
    code = -2 - who
    one = who >= 0
    of_group = ~one & (who != _MANY_BLOCKS) & (code % 2 == 0)
    group = np.where(one, who // clock.subgroup, np.where(of_group, code // 2, -1))
    groups = clock.block_lanes // clock.subgroup
    block = np.where(group >= 0, group // groups, np.where(who == _MANY_BLOCKS, -1, code // 2))
    return block, group


def _merged_name(clock: Clock, who: Array, ids: Array) -> Array:
    """The name of ``who`` and the threads ``ids`` as one."""
    block, group = _homes(clock, who)
    my_group, my_block = ids // clock.subgroup, ids // clock.block_lanes
    shared = np.where(block == my_block, -3 - 2 * my_block, _MANY_BLOCKS)
    return np.where(group == my_group, -2 - 2 * my_group, shared).astype(np.int32)
