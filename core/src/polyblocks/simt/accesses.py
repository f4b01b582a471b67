"""Loads and stores of lanes, and everything that is checked and counted about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyblocks.runtime.device.tensor_map import TensorMap
from polyblocks.simt.address_space import Window, window_of
from polyblocks.simt.bulk_copies import BulkCopies
from polyblocks.simt.bulk_stores import BulkStores
from polyblocks.simt.chip import Chip
from polyblocks.simt.copies import Copies
from polyblocks.simt.counts import Counts
from polyblocks.simt.findings import Finding, Findings
from polyblocks.simt.group_units import GroupProducts
from polyblocks.simt.location import describe, short_text
from polyblocks.simt.memory import PENDING, Memory
from polyblocks.simt.races import Clock, Conflict, Shadow
from polyblocks.simt.traffic import Traffic
from polyblocks.simt.types import WORDS, Array

if TYPE_CHECKING:
    from polyblocks.simt.program import Kernel

Index = tuple[int, int, int]


@dataclass(frozen=True)
class Place:
    """Where some lanes access one memory.

    Attributes:
        level: ``global``, ``shared`` or ``private``.
        offsets: bytes in that memory, shape ``(n,)``.
        lanes: shape ``(n,)``, ascending.
    """

    level: str
    offsets: Array
    lanes: Array


class Accesses:
    """The memories of a launch as its lanes see them.

    Args:
        chip: widths, for the counts.
        windows: by level.
        device: global memory.
        clock: the order of accesses in this launch.
        granule: granularity of races, in bytes.
        measure: count traffic.
    """

    kernel: Kernel
    grid: Index
    block: Index
    threads: int
    block_lanes: int
    lanes: int
    blocks: int
    block_numbers: Array
    mask: Array
    active: int
    all_active: bool
    block_of_lane: Array
    thread: Array

    def __init__(
        self,
        chip: Chip,
        windows: dict[str, Window],
        device: Memory,
        clock: Clock,
        granule: int,
        measure: bool,
    ) -> None:
        self.chip, self.windows, self.clock = chip, windows, clock
        self.counts, self.findings = Counts(), Findings()
        self.granule, self.measure = granule, measure
        self.traffic = Traffic(chip, self.counts)
        self.traffic.begin(device.size)
        self.memories = {"global": device}
        self.shadows = {"global": Shadow(device.size // granule + 2, granule)}
        #: Arrays that parameters describe, by the addresses of these.
        self.tensor_maps: dict[int, TensorMap] = {}
        #: Whether lanes wait for others to go on.
        self.gives_turn = False
        self.site = 0
        #: Which lanes use what is loaded now; None if all do. See `speculation`.
        self.needed: Array | None = None

    def take_counts(self) -> Counts:
        """The counts since the last call of this method."""
        self.traffic.end()
        taken, self.counts = self.counts, Counts()
        self.traffic = Traffic(self.chip, self.counts)
        self.traffic.begin(self.memories["global"].size)
        return taken

    @property
    def positions(self) -> Array:
        """Numbers of the lanes that execute, ascending."""
        raise NotImplementedError

    def set_mask(self, mask: Array, count: int) -> None:
        """Choose the lanes that execute."""
        raise NotImplementedError

    def begin_blocks(self) -> None:
        """Fresh shared and private memory for the blocks that start."""
        for level, parts in (("shared", self.blocks), ("private", self.lanes)):
            self.memories[level] = Memory(level, self.windows[level].used * parts)
        places = self.memories["shared"].size // self.granule + 2
        self.shadows["shared"] = Shadow(places, self.granule)
        self.clock.begin(self.block_numbers)
        self.fence_tick = np.zeros(self.lanes, np.int32)
        self.atomic_tick = np.zeros(self.lanes, np.int32)
        self.copies = Copies(self.lanes)
        self.products = GroupProducts(self.lanes)
        self.bulk, self.bulk_stores = BulkCopies(), BulkStores()

    # Findings.
    def report(self, kind: str, message: str, lanes: Array | None = None) -> None:
        """Note that something is wrong with the current op.

        Args:
            kind: one of `findings.KINDS`.
            message: one sentence, about the first of the lanes.
            lanes: bools that say which executing lanes are concerned; all of them if None.
        """
        mask = self.mask
        if lanes is not None:
            concerned = lanes.any(axis=0) if lanes.ndim == 2 else lanes
            mask = mask & concerned
        count = int(np.count_nonzero(mask))
        if count:
            self.report_lane(kind, message, int(mask.argmax()), count)

    def report_lane(self, kind: str, message: str, lane: int, count: int) -> None:
        """As :meth:`report`, about one lane of ``count``."""
        if self.findings.add_count(self.site, kind, count):
            return
        site = self.kernel.sites[self.site]
        block, thread = self.indices(int(self.clock.ids[lane]))
        self.findings.add(
            self.site,
            Finding(
                kind,
                self.kernel.name,
                short_text(site.op),
                describe(site.op.location),
                message,
                block,
                thread,
                count,
            ),
        )

    def indices(self, identity: int) -> tuple[Index, Index]:
        """(block, thread) indices of a thread number."""
        (x, y, _), (bx, by, _) = self.block, self.grid
        t, b = identity % self.block_lanes, identity // self.block_lanes
        return (b % bx, b // bx % by, b // (bx * by)), (t % x, t // x % y, t // (x * y))

    def describe_site(self, site: int) -> str:
        """An op with its location, for a message."""
        op = self.kernel.sites[site].op
        where = describe(op.location)
        return f"{short_text(op, 80)!r}" + (f" at {where}" if where else "")

    # Places.
    def places(
        self, address: Array, size: int, alignment: int, space: int, verb: str
    ) -> Iterator[Place]:
        """The valid accesses of the executing lanes, by level; reports the others."""
        lanes = self.positions
        if address.shape[-1] == 1:
            addresses = np.broadcast_to(address, (lanes.size,))
        else:
            addresses = address if lanes.size == self.lanes else address[lanes]
        if alignment > 1:
            wrong = (addresses & (alignment - 1)) != 0
            if wrong.any():
                at = int(wrong.argmax())
                where = self._where(space, int(addresses[at]), size)
                self.report_lane(
                    "misaligned",
                    f"{verb} {size} bytes at {where}, which is not a multiple of {alignment}",
                    int(lanes[at]),
                    int(wrong.sum()),
                )
        low = window_of(space, int(addresses.min()))
        high = window_of(space, int(addresses.max()))
        if low == high:
            yield from self._in_window(low, addresses, lanes, size, space, verb)
            return
        levels = np.array([window_of(space, a) for a in addresses.tolist()])
        for level in dict.fromkeys(levels.tolist()):
            some = levels == level
            yield from self._in_window(level, addresses[some], lanes[some], size, space, verb)

    def _in_window(
        self, level: str, addresses: Array, lanes: Array, size: int, space: int, verb: str
    ) -> Iterator[Place]:
        inside: Array | None
        if level:
            offsets, inside = self.windows[level].locate(addresses, size)
        else:
            offsets, inside = addresses, np.zeros(addresses.shape, bool)
        if inside is not None:
            at = int((~inside).argmax())
            where = self._where(space, int(addresses[at]), size)
            count = int((~inside).sum())
            self.report_lane(
                "out of bounds", f"{verb} {size} bytes at {where}", int(lanes[at]), count
            )
            offsets, lanes = offsets[inside], lanes[inside]
            if not lanes.size:
                return
        if level == "shared":
            offsets = offsets + self.block_of_lane[lanes] * self.windows[level].used
        elif level == "private":
            offsets = offsets + lanes * self.windows[level].used
        yield Place(level, offsets, lanes)

    def _where(self, space: int, address: int, size: int) -> str:
        level = window_of(space, address)
        if not level:
            return f"address {address:#x}, which is in no memory of address space {space}"
        return self.windows[level].describe(address, size)

    # Loads and stores.
    def load(
        self, address: Array, size: int, count: int, alignment: int, space: int,
        atomic: bool = False,
    ) -> Array:  # fmt: skip
        """Words that the executing lanes load; zeros in the other lanes.

        Args:
            address: shape ``(lanes,)`` or ``(1,)``.
            size: bytes of a word.
            count: consecutive words; 0 for one that comes back without an axis for it.
            alignment: that the access claims to have.
            space: address space of the pointer.

        Returns:
            unsigned words, shape ``(lanes,)`` or ``(count, lanes)``.
        """
        shape = (count, self.lanes) if count else (self.lanes,)
        out: Array | None = None
        total = size * max(count, 1)
        for place in self.places(address, total, alignment, space, "reads"):
            offsets = place.offsets
            if count:
                offsets = offsets + np.arange(0, total, size)[:, None]
            words, states = self.memories[place.level].load(offsets, size)
            if states is not None and count:
                states = states.min(axis=0)
            if self.needed is None:
                if states is not None:
                    self._unwritten(place, states, total)
                self.note(place, total, write=False, atomic=atomic)
            else:
                self._note_needed(place, states, total)
            if place.lanes.size == self.lanes:
                return words
            if out is None:
                out = np.zeros(shape, words.dtype)
            out[..., place.lanes] = words
        return np.zeros(shape, WORDS[size]) if out is None else out

    def _note_needed(self, place: Place, states: Array | None, size: int) -> None:
        """Count a load of all lanes, and check those that use its value."""
        assert self.needed is not None
        if self.measure:
            self.traffic.access(
                place.level, place.offsets, place.lanes, self.lanes, size, write=False
            )
        kept = self.needed[place.lanes]
        if kept.any():
            place = Place(place.level, place.offsets[kept], place.lanes[kept])
            if states is not None:
                self._unwritten(place, states[kept], size)
            self.note(place, size, write=False, count=False)

    def _unwritten(self, place: Place, states: Array, size: int) -> None:
        for state, kind, what in (
            (0, "unwritten read", "which nothing has written"),
            (PENDING, "unwaited copy", "where an asynchronous copy is still under way"),
        ):
            wrong = states == state
            if wrong.any():
                at = int(wrong.argmax())
                where = self.name_of(place, at)
                self.report_lane(
                    kind, f"reads {size} bytes at {where}, {what}", int(place.lanes[at]),
                    int(wrong.sum()),
                )  # fmt: skip

    def store(
        self, address: Array, words: Array, alignment: int, space: int, atomic: bool = False
    ) -> None:
        """Store words of the executing lanes, shape ``(lanes,)`` or ``(count, lanes)``."""
        size = words.dtype.itemsize
        total = size * (len(words) if words.ndim == 2 else 1)
        for place in self.places(address, total, alignment, space, "writes"):
            offsets = place.offsets
            if words.ndim == 2:
                offsets = offsets + np.arange(0, total, size)[:, None]
            chosen = words if words.shape[-1] == 1 else words[..., place.lanes]
            pending = self.memories[place.level].store(
                offsets, np.broadcast_to(chosen, offsets.shape)
            )
            if pending is not None:
                late = pending.any(axis=0) if pending.ndim == 2 else pending
                at = int(late.argmax())
                self.report_lane(
                    "unwaited copy",
                    f"writes {total} bytes at {self.name_of(place, at)}, "
                    "where an asynchronous copy is still under way",
                    int(place.lanes[at]),
                    int(late.sum()),
                )
            self.note(place, total, write=True, atomic=atomic)

    def note(
        self, place: Place, size: int, write: bool, atomic: bool = False, count: bool = True
    ) -> None:
        """Check an access for races and count it."""
        if self.measure and count:
            self.traffic.access(place.level, place.offsets, place.lanes, self.lanes, size, write)
        if place.level == "private":
            return
        granule = self.granule
        first = place.offsets // granule
        if size > granule:
            steps = size // granule + bool((place.offsets % granule).any())
            first = first + np.arange(steps)[:, None]
        conflict = self.shadows[place.level].access(
            self.clock, place.lanes, first, self.site, write, atomic
        )
        if conflict is not None:
            self._race(place, conflict, size, write)

    def _race(self, place: Place, conflict: Conflict, size: int, write: bool) -> None:
        lane = int(place.lanes[conflict.lane])
        if conflict.other >= 0:
            block, thread = self.indices(conflict.other)
            mine = self.indices(int(self.clock.ids[lane]))[0]
            who = f"thread {thread}"
            if block != mine:
                who += f" of block {block}"
        else:
            who = "other threads"
        verb = "writes" if write else "reads"
        before = "wrote" if conflict.wrote else "read"
        where = self.name_of(place, conflict.lane)
        other = (
            "by the same op"
            if conflict.site == self.site
            else (f"by {self.describe_site(conflict.site)}")
        )
        self.report_lane(
            "race",
            f"{verb} {size} bytes at {where}, which {who} {before} {other}, "
            "and nothing orders the two",
            lane,
            conflict.lanes,
        )

    def name_of(self, place: Place, index: int) -> str:
        """Where the access of one of a place's lanes lies, for a message."""
        window = self.windows[place.level]
        offset = int(place.offsets[index])
        if place.level == "shared":
            # That of the lane, or of another block of its cluster.
            offset %= window.used
        elif place.level == "private":
            offset -= int(place.lanes[index]) * window.used
        for region in window.regions:
            if region.offset <= offset < region.offset + max(region.size, 1):
                return f"byte {offset - region.offset} of {region.name}"
        return f"byte {offset} of {place.level} memory"

    # Order.
    def fence(self, whole_device: bool = True) -> None:
        """A fence of the executing lanes; inside a block it orders nothing that barriers do not."""
        if not whole_device:
            return
        lanes = self.positions
        now = self.clock.tick()
        self.fence_tick[lanes] = now
        seen = lanes[self.atomic_tick[lanes] > 0]
        self.clock.acquired[seen] = now

    def order_atomic(self, lanes: Array, acquire: bool, release: bool) -> None:
        """Order an atomic of some lanes: release and acquire, device-wide."""
        now = self.clock.tick()
        published = np.full(lanes.size, now, np.int32) if release else self.fence_tick[lanes]
        blocks = self.clock.ids[lanes] // self.block_lanes
        np.maximum.at(self.clock.released, blocks, published)
        self.atomic_tick[lanes] = now
        if acquire:
            self.clock.acquired[lanes] = now

    def subgroup_barrier(self) -> None:
        """The executing lanes of each subgroup wait for each other."""
        now = self.clock.tick()
        self.clock.subgroup_since[self.positions] = now
