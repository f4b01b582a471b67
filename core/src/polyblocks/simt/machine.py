"""Runs the threads of some blocks as lanes of NumPy arrays.

Lanes that wait at different segments take turns: the lowest-numbered segment runs first, for all
lanes that wait there. The numbering (`control_flow`) puts joins after the branches that lead to
them and what follows a loop after the loop, so lanes that diverged meet again as early as they
can. Every so often another segment gets a turn, subgroup by subgroup, so that threads which wait
for others by spinning do not starve them.
"""

from __future__ import annotations

import numpy as np

from polyblocks.simt.accesses import Accesses
from polyblocks.simt.program import Kernel
from polyblocks.simt.types import Array, Value, map_value

#: Program counters of lanes that run nothing.
WAITING = 1 << 29
EXITED = 1 << 30
#: The same of lanes that wait for the subgroups beside theirs.
GATHERED = WAITING + 1
#: The same of lanes that wait for those of all blocks of their cluster.
MEETING = WAITING + 2
#: Steps after which other segments get turns, and how often.
_FAIR_AFTER, _FAIR_EVERY = 1024, 16

Index = tuple[int, int, int]


class Machine(Accesses):
    """Some blocks of one launch. Semantics of ops get it as their first argument.

    Attributes:
        mask: which lanes execute the op, shape ``(lanes,)``.
        lanes: how many there are; every block is padded to whole subgroups with lanes that never
            run.
        lane: position of each lane in its subgroup, int64.
        subgroup: number of each lane's subgroup in its block.
        chip: the `Chip`.
        grid, block: sizes of the launch.
        met: of each block the tick at which those of its cluster met last.
    """

    def launch_blocks(self, kernel: Kernel, grid: Index, block: Index, numbers: Array) -> None:
        """Prepare to run some blocks of the grid; ``numbers`` count along x, then y, then z."""
        self.kernel, self.grid, self.block = kernel, grid, block
        width = self.chip.subgroup_width
        self.threads = block[0] * block[1] * block[2]
        self.block_lanes = -(-self.threads // width) * width
        self.blocks, self.block_numbers = numbers.size, numbers
        self.lanes = self.blocks * self.block_lanes
        index = np.arange(self.lanes, dtype=np.int64)
        self.block_of_lane = index // self.block_lanes
        self.thread = index % self.block_lanes
        self.lane = index % width
        self.subgroup = self.thread // width
        self.registers: list[Value] = list(kernel.registers)
        self._resume = np.zeros(self.lanes, np.int32)
        self._barrier_site = np.zeros(self.lanes, np.int32)
        self.pc = np.where(self.thread < self.threads, 0, EXITED).astype(np.int32)
        self._padding = self.pc == EXITED
        self.alive = int(self.lanes - self._padding.sum())
        self._turns = 0
        self.met = np.zeros(self.blocks, np.int64)
        self._executed = np.zeros(len(kernel.segments), np.int64)
        self.begin_blocks()

    # Queries of ops.
    def thread_id(self, axis: int) -> Array:
        """Index of each lane's thread along an axis (0: x), int64."""
        x, y, _ = self.block
        return (self.thread % x, self.thread // x % y, self.thread // (x * y))[axis]

    def block_id(self, axis: int) -> Array:
        """Index of each lane's block along an axis, int64."""
        x, y, _ = self.grid
        linear = self.block_numbers[self.block_of_lane]
        return (linear % x, linear // x % y, linear // (x * y))[axis]

    def by_subgroup(self, value: Array) -> Array:
        """``(…, lanes)`` as ``(…, subgroups, width)``."""
        width = self.chip.subgroup_width
        whole = np.broadcast_to(value, (*value.shape[:-1], self.lanes))
        return whole.reshape(*value.shape[:-1], self.lanes // width, width)

    def read_lanes(self, value: Array, source: Array) -> Array:
        """Each lane's view of ``value`` in lane ``source`` (0 … width-1) of its subgroup."""
        width = self.chip.subgroup_width
        base = np.arange(self.lanes, dtype=np.int64) - self.lane
        return np.broadcast_to(value, (*value.shape[:-1], self.lanes))[
            ..., base + np.clip(source, 0, width - 1)
        ]

    def is_active(self, source: Array) -> Array:
        """Whether lane ``source`` of each lane's subgroup executes this op too."""
        return self.read_lanes(self.mask, source)

    def exited(self) -> Array:
        """Lanes whose threads have ended, and those that never were."""
        return self.pc == EXITED

    # The run.
    def set_mask(self, mask: Array, count: int) -> None:
        """Choose the lanes that execute."""
        self.mask, self.active = mask, count
        self.all_active = count == self.alive
        self._positions: Array | None = None

    @property
    def positions(self) -> Array:
        """Numbers of the lanes that execute, ascending."""
        if self._positions is None:
            self._positions = np.flatnonzero(self.mask)
        return self._positions

    def merge(self, new: Value, old: Value) -> Value:
        """``new`` in the executing lanes, ``old`` in the others."""
        if self.all_active or old is None:
            return new
        mask = self.mask
        return map_value(lambda a, b: np.where(mask, a, b), new, old)

    def go(self, target: int) -> None:
        """Send the executing lanes to a segment."""
        np.copyto(self.pc, target, where=self.mask)

    def leave(self) -> None:
        """End the executing lanes."""
        self.go(EXITED)
        self.alive -= self.active

    def wait(self, site: int, resume: int) -> None:
        """The executing lanes wait at a barrier, then go on at a segment."""
        np.copyto(self._resume, resume, where=self.mask)
        np.copyto(self._barrier_site, site, where=self.mask)
        self.go(WAITING)

    def gather(self, subgroups: int, resume: int) -> None:
        """The executing lanes wait for the subgroups beside theirs, then go on at a segment."""
        np.copyto(self._resume, resume, where=self.mask)
        self.go(GATHERED)
        width = subgroups * self.chip.subgroup_width
        resumes = self._resume.reshape(-1, width)
        here = (self.pc == GATHERED).reshape(-1, width)
        whole = here.all(axis=1) & (resumes.min(axis=1) == resumes.max(axis=1))
        np.copyto(self.pc, self._resume, where=np.repeat(whole, width))

    def meet(self, site: int, resume: int) -> None:
        """The executing lanes wait for those of all blocks of their cluster, then go on."""
        np.copyto(self._resume, resume, where=self.mask)
        np.copyto(self._barrier_site, site, where=self.mask)
        self.go(MEETING)
        here = (self.pc == MEETING) | self._padding
        self._part(here.reshape(-1, self.clock.cluster * self.block_lanes).all(axis=1))

    def _part(self, clusters: Array) -> None:
        """The lanes of clusters that have met go on."""
        if not clusters.any():
            return
        lanes = np.repeat(clusters, self.clock.cluster * self.block_lanes)
        np.copyto(self.pc, self._resume, where=lanes & (self.pc == MEETING))
        now = self.clock.tick()
        self.clock.block_since[lanes] = self.clock.cluster_since[lanes] = now
        self.met[np.repeat(clusters, self.clock.cluster)] = now

    def _report_absent(self) -> None:
        """Let lanes go on that wait for others of their cluster in vain."""
        lanes = self.pc == MEETING
        if not lanes.any():
            return
        self.site = int(self._barrier_site[lanes].min())
        self.set_mask(lanes, int(lanes.sum()))
        gone = int((self.exited() & ~self._padding).sum())
        what = f"waits for all threads of its cluster; {gone} have ended without coming here"
        self.report("divergent barrier", what)
        self._part(lanes.reshape(-1, self.clock.cluster * self.block_lanes).any(axis=1))

    def run(self, max_steps: int) -> bool:
        """Run until all threads ended; False if that took too many steps."""
        segments, registers, pc = self.kernel.segments, self.registers, self.pc
        steps = 0
        with np.errstate(all="ignore"):
            while True:
                at = int(pc.min())
                if at >= WAITING:
                    if at == EXITED:
                        break
                    # Others that lanes wait for are elsewhere: what needs them says so.
                    np.copyto(pc, self._resume, where=pc == GATHERED)
                    if at == MEETING:
                        self._report_absent()
                    self._release()
                    continue
                mask = pc == at
                if self.gives_turn or (steps > _FAIR_AFTER and steps % _FAIR_EVERY == 0):
                    at, mask = self._other_turn()
                    self.gives_turn = False
                count = int(np.count_nonzero(mask))
                self.set_mask(mask, count)
                self._executed[at] += count
                segment = segments[at]
                for step in segment.steps:
                    step(self, registers)
                assert segment.end is not None
                segment.end(self, registers)
                steps += 1
                if steps > max_steps:
                    self.site = segment.site
                    self.set_mask(pc == pc.min(), 1)
                    self.report("step limit", f"has not ended after {max_steps} basic blocks")
                    break
        self.products.finish(self)
        self.bulk.finish(self)
        self.bulk_stores.finish(self)
        self.counts.steps += steps
        for segment, times in zip(segments, self._executed.tolist(), strict=True):
            for kind, number in segment.counts.items():
                known = self.counts.instructions
                known[kind] = known.get(kind, 0) + number * times
        return steps <= max_steps

    def _other_turn(self) -> tuple[int, Array]:
        """A segment that some subgroup would run next, each in turn."""
        self._release(complete_only=True)
        width = self.chip.subgroup_width
        nearest = self.pc.reshape(-1, width).min(axis=1)
        choices = np.unique(nearest[nearest < WAITING])
        self._turns += 1
        at = int(choices[self._turns % choices.size])
        return at, (self.pc == at) & np.repeat(nearest == at, width)

    def _release(self, complete_only: bool = False) -> None:
        """Let blocks go on whose threads all wait; report those that wait for no other."""
        shape = (self.blocks, self.block_lanes)
        waiting = (self.pc == WAITING).reshape(shape)
        gone = ((self.pc == EXITED) & ~self._padding).reshape(shape)
        sites = self._barrier_site.reshape(shape)
        first = np.where(waiting, sites, np.iinfo(np.int32).max).min(axis=1)
        last = np.where(waiting, sites, -1).max(axis=1)
        some = waiting.any(axis=1)
        clean = some & (waiting.sum(axis=1) == self.threads) & (first == last)
        released = clean if complete_only else some
        if not released.any():
            return
        for block in np.flatnonzero(released & ~clean).tolist():
            self._report_divergence(block, waiting[block], gone[block], sites[block])
        mask = (waiting & released[:, None]).reshape(-1)
        np.copyto(self.pc, self._resume, where=mask)
        self.counts.barriers += int(released.sum())
        self.clock.tick()
        self.clock.block_since[np.repeat(released, self.block_lanes)] = self.clock.now
        self._pass_on_acquired(released)

    def _pass_on_acquired(self, released: Array) -> None:
        """After a barrier a block knows what any of its threads acquired."""
        shape = (self.blocks, self.block_lanes)
        best = self.clock.acquired.reshape(shape).max(axis=1, keepdims=True)
        self.clock.acquired = np.where(
            released[:, None], best, self.clock.acquired.reshape(shape)
        ).reshape(-1)

    def _report_divergence(self, block: int, waiting: Array, gone: Array, sites: Array) -> None:
        here = int(sites[waiting].min())
        others = waiting & (sites != here)
        if others.any():
            what = (
                f"{int((waiting & ~others).sum())} of {self.threads} threads of the block wait "
                f"here while {int(others.sum())} wait at another barrier, "
                f"{self.describe_site(int(sites[others].min()))}"
            )
        else:
            what = (
                f"{int(waiting.sum())} of {self.threads} threads of the block wait while "
                f"{int(gone.sum())} have ended without reaching the barrier"
            )
        mask = np.zeros((self.blocks, self.block_lanes), bool)
        mask[block] = waiting & ~others
        self.site = here
        self.set_mask(mask.reshape(-1), int(mask.sum()))
        self.report("divergent barrier", what)
