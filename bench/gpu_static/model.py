"""Seconds of a kernel, from its machine code and its launch.

A multiprocessor runs its blocks in waves of as many as it holds. Of a wave, the main loop takes as
many cycles as its warps' schedule (:mod:`bench.gpu_static.schedule`), which is never less than the
busiest resource's, and a part of those of the cache, whose requests meet other multiprocessors',
unless it is the busiest; the compiler's own models take the same part. In front of it stands the
prologue, until the first operands are there, behind it the epilogue, until results are stored.
Where several blocks are held, one computes while another one begins or ends. All reads hit the
cache that all share; the main memory moves every argument and result once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from bench.gpu_static.instructions import VECTOR, Instruction, Kind, count, products
from bench.gpu_static.loops import Parts
from bench.gpu_static.machines import Machine
from bench.gpu_static.sass import SECTOR, UNIT
from bench.gpu_static.schedule import cycles_once, cycles_per_iteration
from polyblocks.affine.cost.constants import NOT_HIDDEN
from polyblocks.occupancy import occupancy, warps_of_block

#: Warps of a group; one starts copies of boxes, where there are any.
_COPYING = 4
#: Bytes of a row of a box.
BOX_ROW = 128
#: Kinds by which a tile comes to shared memory.
_MOVES = (Kind.COPY, Kind.LOAD)


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched, and what it takes.

    Attributes:
        blocks: of the grid.
        threads: of a block.
        registers: of a thread.
        shared_bytes: of a block.
        boxes: bytes of a box of each array that is copied in boxes, the largest number of rows
            first; a group of four warps starts these copies then.
        stored: bytes of a box of results; 0 where threads store them.
        cluster: blocks that get the same boxes, the smallest ones.
        tiles: of the result; 0: one for each block, or as many as leave in boxes.
        pitch: bytes from row to row of what boxes are cut from, the greatest common divisor; 0:
            rows begin where the cache's units do.
    """

    blocks: int
    threads: int
    registers: int
    shared_bytes: int
    boxes: tuple[int, ...] = ()
    stored: int = 0
    cluster: int = 1
    tiles: int = 0
    pitch: int = 0

    def touched(self, unit: int) -> float:
        """Bytes of such units that a box touches, over its own, in the mean of its rows."""
        if not self.pitch % unit:
            return 1.0
        ends = [self.pitch * row % unit + BOX_ROW for row in range(unit)]
        return sum(ceil(end / unit) for end in ends) / (BOX_ROW // unit * unit)

    def arriving_bytes(self, count: int, shared: int) -> int:
        """As :meth:`bulk_bytes`, with those that others of its cluster have copied to a block."""
        others = (self.cluster - 1) * shared
        return self.bulk_bytes(count) + (self.boxes[-1] * others if others else 0)

    def bulk_bytes(self, count: int) -> int:
        """Bytes of an iteration's copies: one of the largest box, others of the smallest."""
        if not count:
            return 0
        if count <= len(self.boxes):
            return sum(self.boxes[:count])
        return self.boxes[0] + (count - 1) * self.boxes[-1]


@dataclass(frozen=True)
class Problem:
    """What a kernel computes: a product of matrices, or what is one.

    Attributes:
        rows, columns, steps: of it.
        floor_bytes: of all arguments and the result.
        sequence: of a chain of two products, rows that meet the same columns, as those of a head of
            attention do; ``steps`` are those of both products, and a main loop has blocks of
            columns. 0: no chain.
        causal: whether a row meets the columns up to its own number only.
        shared_out: whether blocks share out the columns that the rows of a sequence meet: these are
            a tile then, the most of whose rows may be none, and each block reads its columns once.
        element_bytes: of what is multiplied.
    """

    rows: int
    columns: int
    steps: int
    floor_bytes: int
    sequence: int = 0
    causal: bool = False
    shared_out: bool = False
    element_bytes: int = 2

    @property
    def products(self) -> int:
        """Multiply-adds that are needed."""
        return self.met * self.steps

    @property
    def met(self) -> int:
        """Pairs of a row and a column that meet."""
        pairs = self.rows * self.columns
        return pairs * (self.sequence + 1) // (2 * self.sequence) if self.causal else pairs

    def blocks_met(self, rows: int, columns: int) -> float:
        """Blocks of columns that a tile of a chain's rows meets, in the mean of all tiles."""
        every = ceil(self.columns / columns)
        if not self.causal:
            return every
        ends = [min(first + rows, self.sequence) for first in range(0, self.sequence, rows)]
        return sum(min(every, ceil(end / columns)) for end in ends) / len(ends)


@dataclass(frozen=True)
class Busy:
    """Cycles of a multiprocessor that code of some warps keeps each resource busy, at least."""

    matrix: float
    issue: float
    shared: float
    cache: float

    @property
    def most(self) -> tuple[str, float]:
        """The busiest resource."""
        every = {
            "matrix": self.matrix,
            "issue": self.issue,
            "shared": self.shared,
            "cache": self.cache,
        }
        name = max(every, key=every.__getitem__)
        return name, every[name]


@dataclass(frozen=True)
class Estimate:
    """A kernel's time and where it comes from.

    Attributes:
        seconds: of the launch.
        matrix_seconds: if the busiest unit of these types of the chip did nothing but the products
            that are needed.
        memory_seconds: of every argument and the result, once.
        resident: blocks that a multiprocessor holds at once.
        trips: iterations of the main loop.
        busy: of an iteration of all blocks that are held.
        scheduled: cycles of an iteration, as the warps are scheduled.
        prologue, epilogue: cycles.
        limit: what an iteration is limited by: a resource, or ``schedule``.
        matrix_slots: matrix instructions over all instructions of the main loop.
        vector_per_matrix: other instructions of the vector unit for each matrix one.
        bytes_in_flight: copies on their way at once, on the whole chip.
    """

    seconds: float
    matrix_seconds: float
    memory_seconds: float
    resident: int
    trips: int
    busy: Busy
    scheduled: float
    prologue: float
    epilogue: float
    limit: str
    matrix_slots: float
    vector_per_matrix: float | None
    bytes_in_flight: int

    @property
    def reach(self) -> float:
        """The part of the time that nobody could save: the unit's, or the memory's."""
        return max(self.matrix_seconds, self.memory_seconds) / self.seconds


def busy(
    code: Sequence[Instruction],
    machine: Machine,
    warps: int,
    bulk: float = 0,
    arrives: float = 0,
    touched: float = 1,
) -> Busy:
    """What code of so many warps of a multiprocessor keeps busy.

    Args:
        code: of a warp.
        machine: that it runs on.
        warps: of the multiprocessor.
        bulk: bytes that the cache reads for bulk copies that it starts.
        arrives: bytes that bulk copies bring, those of other blocks included.
        touched: bytes of the sectors that come for each of these.
    """
    partitions = machine.chip.partitions
    share = warps / partitions
    of_kind: dict[Kind, float] = {}
    for instruction in code:
        pipe = machine.pipe(instruction.kind)
        of_kind[pipe] = of_kind.get(pipe, 0.0) + machine.busy(instruction)
    shared = of_kind.pop(Kind.SHARED, 0.0) + of_kind.pop(Kind.COPY, 0.0)
    matrix = of_kind.pop(machine.pipe(Kind.MATRIX), 0.0)
    moved = sum(i.bytes for i in code if i.kind in (Kind.LOAD, Kind.STORE, Kind.COPY) and i.active)
    if machine.ports:
        slots: dict[Kind, int] = {}
        for instruction in code:
            pipe = machine.pipe(instruction.kind)
            slots[pipe] = slots.get(pipe, 0) + 1
        issue = float(max(slots.values(), default=0))
    else:
        issue = float(len(code))
    # Pipes of other arithmetic count as slots, those of few lanes as several.
    issue = max(issue, *of_kind.values(), 0.0)
    shared, moved = shared * warps + arrives / machine.shared_rate, moved * warps
    cache = max(
        (moved + bulk) / machine.cache_rate, (moved + arrives * touched) / machine.most_cache_rate
    )
    return Busy(matrix * share, issue * share, shared, cache)


def sums_of_warp(code: Sequence[Instruction], kind: Kind) -> int:
    """Elements of the result that a warp adds up: chains of sums times what each has."""
    written: set[str] = set()
    sums = 0
    for instruction in code:
        if instruction.kind is not kind or not instruction.products:
            continue
        if instruction.addend not in written:
            m, n, _ = instruction.shape or (instruction.products, 1, 1)
            sums += m * n
        written.add(instruction.sums)
    return sums


def trips_of(parts: Parts, problem: Problem, launch: Launch, warps: int) -> int:
    """Iterations of the main loop: what its sums need, less what is done around it.

    Blocks that are more than the result needs share its steps; those that are fewer compute tile
    after tile.
    """
    if not parts.is_loop:
        return 1
    kind = parts.multiplier
    if problem.sequence:
        if problem.shared_out:
            # Past the registers, or through them.
            moved = [sum(i.bytes for i in parts.loop if i.kind is k and i.active) for k in _MOVES]
            copied = next((nbytes for nbytes in moved if nbytes), 0) * warps
            columns = round(copied / problem.steps / problem.element_bytes)
            shares = launch.blocks * problem.sequence / problem.rows
            return max(1, ceil(ceil(problem.columns / max(columns, 1)) / shares))
        of_warp = problem.rows / (launch.blocks * warps)
        columns = round(products(parts.loop, kind) / of_warp / problem.steps)
        met = problem.blocks_met(round(of_warp * warps), max(columns, 1))
        # Those of a mask's border may stand around the loop.
        outside = products((*parts.before, *parts.after), kind) / max(products(parts.loop, kind), 1)
        return max(1, ceil(met - outside))
    sums = sums_of_warp(parts.loop, kind)
    covered = max(launch.blocks, tiles_of(parts, problem, launch, warps)) * warps * sums
    parted = max(1, covered // (problem.rows * problem.columns))
    steps = ceil(problem.steps / parted)
    outside = products((*parts.before, *parts.after), kind)
    return max(1, ceil((steps * sums - outside) / max(products(parts.loop, kind), 1)))


def tiles_of(parts: Parts, problem: Problem, launch: Launch, warps: int) -> int:
    """Tiles of a product's result, where they are known or leave in boxes; else 0."""
    if launch.tiles:
        return launch.tiles
    if not parts.stored or problem.sequence:
        return 0
    return ceil(
        problem.rows * problem.columns / (warps * sums_of_warp(parts.loop, parts.multiplier))
    )


def predict(parts: Parts, launch: Launch, problem: Problem, machine: Machine) -> Estimate:
    """The time of a launch.

    Raises:
        LookupError: the code has matrix instructions that the target's description lacks.
        ValueError: a block does not fit into a multiprocessor.
    """
    chip, count_of = machine.chip, machine.multiprocessors
    warps = warps_of_block(chip, launch.threads) - (_COPYING if parts.boxes else 0)
    bulk = launch.bulk_bytes(parts.boxes)
    arrives = launch.arriving_bytes(parts.boxes, parts.shared_boxes)
    units, sectors = launch.touched(UNIT), launch.touched(SECTOR)
    holds = occupancy(chip, launch.registers, launch.shared_bytes, launch.threads).blocks
    if not holds:
        raise ValueError(f"no block of {launch} fits into a multiprocessor")
    if not parts.boxes:
        # Warps that copy boxes themselves.
        parts = replace(parts, loop=tuple(_touching(i, units) for i in parts.loop))
    resident = min(holds, ceil(launch.blocks / count_of))
    trips = trips_of(parts, problem, launch, warps)

    @functools.cache
    def cycles_with(blocks: int, cache_rate: float) -> tuple[float, float, float, float]:
        """Of the prologue, of an iteration, of the epilogue, and until its boxes have left."""
        given = machine, warps, blocks, cache_rate
        # The first operands are in no cache yet.
        cold = replace(machine, cache_cycles=machine.chip.latencies.memory * machine.hertz)
        leaves = parts.stored * launch.stored * warps // _COPYING * blocks / cache_rate
        return (
            cycles_once(parts.before, cold, *given[1:]),
            (cycles_per_iteration if parts.is_loop else cycles_once)(parts.loop, *given),
            cycles_once(parts.after, *given),
            leaves,
        )

    def busy_with(given: Machine, blocks: int) -> Busy:
        every = (n * blocks for n in (warps, bulk * units, arrives))
        return busy(parts.loop, given, *every, sectors)

    def wave(blocks: int, of_grid: int) -> tuple[float, float, float]:
        """Cycles of the loop's iterations, of what is around them, and of these that copies wait.

        Where some multiprocessors have fewer blocks than others, these get more of the cache.
        """
        more = machine.cache_rate * blocks * count_of / of_grid
        given = replace(machine, cache_rate=min(more, machine.most_cache_rate))
        before, loop, after, leaves = cycles_with(blocks, given.cache_rate)
        used = busy_with(given, blocks)
        others = max(loop, used.matrix, used.issue, used.shared)
        waits = max(0.0, used.cache - others)
        loop = max(others + NOT_HIDDEN * used.cache, used.cache)
        return trips * loop, before + after + leaves, trips * waits

    at_once, tiles = (
        count_of * resident,
        max(launch.blocks, tiles_of(parts, problem, launch, warps)),
    )
    full, rest = divmod(tiles, at_once)
    cycles = ends = waits = 0.0
    if full:
        loop, ends, waits = wave(resident, at_once)
        cycles += full * loop
    if rest:
        loop, last, _ = wave(ceil(rest / count_of), rest)
        cycles, ends = cycles + loop, max(ends, last)
    used = busy_with(machine, resident)
    prologue, scheduled, epilogue, leaves = cycles_with(resident, machine.cache_rate)
    # While one block begins or ends, the others that are held go on. One that goes on with another
    # tile has operands of it already, and its boxes leave meanwhile; where copies are what it waits
    # for, they go on.
    later = ends / resident
    if tiles > launch.blocks:
        later = epilogue + cycles_once(parts.before, machine, warps, resident, machine.cache_rate)
        later = max(0.0, later - waits)
    cycles += ends + later * (full + (rest > 0) - 1)
    name, most = used.most
    matrix = count(parts.loop, Kind.MATRIX)
    memory_seconds = problem.floor_bytes / machine.bandwidth
    return Estimate(
        seconds=max(cycles / machine.hertz, memory_seconds),
        matrix_seconds=problem.products / _best_rate(parts, machine) / count_of / machine.hertz,
        memory_seconds=memory_seconds,
        resident=resident,
        trips=trips,
        busy=used,
        scheduled=scheduled,
        prologue=prologue,
        epilogue=epilogue + leaves,
        limit=name if most >= 0.98 * scheduled else "schedule",
        matrix_slots=matrix / len(parts.loop),
        vector_per_matrix=count(parts.loop, *VECTOR) / matrix if matrix else None,
        # Boxes fill all stages but one.
        bytes_in_flight=(launch.shared_bytes - bulk if bulk else in_flight(parts.loop) * warps)
        * resident
        * count_of,
    )


def _touching(instruction: Instruction, units: float) -> Instruction:
    """A copy of a box, with bytes of all units that it touches."""
    if instruction.kind is not Kind.COPY or not instruction.name.startswith("UTMALDG"):
        return instruction
    return replace(instruction, bytes=round(instruction.bytes * units))


def sustained(
    parts: Parts, launch: Launch, problem: Problem, machine: Machine
) -> tuple[float, Estimate] | None:
    """The clock that a launch leaves near the chip's limit of power, and the time at that clock.

    None where the limit is unknown. What is busy is that of the clock that was measured: cycles of
    matrix units and of schedulers hardly depend on it.
    """
    power = machine.power
    if power is None:
        return None
    first = predict(parts, launch, problem, machine.at(power.measured))
    matrix = first.matrix_seconds / first.seconds
    issue = matrix * first.busy.issue / max(first.busy.matrix, 1.0)
    hertz = power.hertz(matrix, issue)
    return hertz, predict(parts, launch, problem, machine.at(hertz))


def in_flight(loop: Sequence[Instruction]) -> int:
    """Bytes of a warp's copies, or loads, that are on their way at once.

    Copies are waited for in groups: those of the iterations that may be outstanding, and of the one
    that has begun since.
    """
    copied = sum(i.bytes for i in loop if i.kind is Kind.COPY and i.active)
    if not copied:
        return sum(i.bytes for i in loop if i.kind is Kind.LOAD)
    closed = {counter for i in loop if i.closes for counter in i.signals}
    ahead = [w.at_most for i in loop for w in i.waits if w.counter in closed and w.at_most]
    return copied * (1 + max(ahead, default=0))


def _best_rate(parts: Parts, machine: Machine) -> float:
    """Multiply-adds per cycle of a multiprocessor that the best unit of the loop's types does."""
    for instruction in parts.loop:
        if instruction.kind is Kind.MATRIX:
            return machine.best[instruction.operands, instruction.accumulator]
    return machine.chip.partitions * machine.chip.warp / machine.cycles[Kind.FLOAT]
