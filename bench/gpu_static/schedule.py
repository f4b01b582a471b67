"""The warps of a multiprocessor, instruction by instruction, for as long as it takes.

A warp issues in order: after the cycles that the assembler says, when the counters that it waits
for are there, when the pipe is free. The warps of a partition take turns, and all warps share the
shared memory and the multiprocessor's part of the cache behind it; partitions that wait for shared
memory are served in turn. Lanes, addresses and values do not exist: every access takes what it
takes without bank conflicts, and no predicate is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.gpu_static.instructions import Instruction, Kind
from bench.gpu_static.machines import Machine

#: Cycles of work that wait before the shared memory; then nobody issues for it.
QUEUE = 48
#: Cycles until a box is there, more than until a load is: its description is read, addresses are
#: made, a barrier is told. By the products whose copies and multiplications take turns.
BOX_CYCLES = 300
#: Iterations that are averaged, and how near two averages in a row have to be.
AVERAGED, NEAR = 4, 0.005
#: Iterations after which the loop is taken to run as evenly as it ever will.
LONGEST = 24


@dataclass(eq=False)
class _Warp:
    block: int
    partition: int
    number: int = 0
    iteration: int = 0
    ready: float = 0.0
    issued: float = -1.0
    #: When the next instruction could be issued, as far as the warp itself is concerned.
    own: float = 0.0
    at_barrier: bool = False
    #: Counter -> when what was announced to it is there, in order.
    counters: dict[str, list[float]] = field(default_factory=dict)
    #: Register -> when it has its value.
    registers: dict[str, float] = field(default_factory=dict)
    #: When the last of the copies is done.
    copied: float = 0.0


@dataclass(frozen=True)
class _Step:
    """An instruction, and what the machine makes of it.

    ``pipe`` and ``port`` are numbers of those of a partition; it has :data:`_PIPES` of each.
    """

    instruction: Instruction
    kind: Kind
    pipe: int
    port: int
    busy: float
    latency: float
    through_shared: bool


_NUMBERS = {kind: number for number, kind in enumerate(Kind)}
_PIPES = len(_NUMBERS)


class Schedule:
    """Warps of one multiprocessor that run the same instructions.

    Args:
        code: of an iteration.
        machine: what runs it.
        warps: of a block.
        blocks: on the multiprocessor.
        cache_rate: bytes per cycle from the cache that all multiprocessors share.

    Attributes:
        ends: when the last warp was through with each iteration.
        last: when the last result was there.
    """

    def __init__(
        self,
        code: Sequence[Instruction],
        machine: Machine,
        warps: int,
        blocks: int,
        cache_rate: float,
    ) -> None:
        self.machine, self.cache_rate = machine, cache_rate
        self.steps = [_step(instruction, machine) for instruction in code]
        count = machine.chip.partitions
        self.warps = [_Warp(n // warps, n % count) for n in range(warps * blocks)]
        self.partitions: list[list[_Warp]] = [[] for _ in range(count)]
        #: When each pipe of each partition is free, and when each port may issue again.
        self.free = [[0.0] * _PIPES for _ in range(count)]
        self.port = [[0.0] * _PIPES for _ in range(count)]
        #: The warp of each partition whose group of products has begun and has not ended.
        self.holds: list[_Warp | None] = [None] * count
        #: Of each partition: the warp that issues next, and when at the earliest.
        self.next: list[tuple[float, _Warp] | None] = [None] * count
        self.shared = self.operands = self.cache = self.last = 0.0
        #: When each partition was served by the shared memory last.
        self.served = [0.0] * count
        self.ends: list[float] = []

    def run(self, iterations: int) -> None:
        """Let every warp get through so many more."""
        goal = len(self.ends) + iterations
        self.ends += [0.0] * iterations
        for number, partition in enumerate(self.partitions):
            partition[:] = [w for w in self.warps if w.partition == number]
            self.next[number] = self._choose(number)
        remaining = len(self.warps)
        while remaining:
            chosen = min((n for n in self.next if n is not None), key=self._turn, default=None)
            # All warps run the same code, so that all of a block come to its barriers.
            assert chosen is not None
            number = chosen[1].partition
            # Others may have used the shared memory since.
            renewed = self._choose(number)
            assert renewed is not None
            if renewed[0] > chosen[0]:
                self.next[number] = renewed
                continue
            at, warp = renewed
            self._issue(warp, self.steps[warp.number], at)
            warp.number += 1
            if warp.number == len(self.steps):
                self.ends[warp.iteration] = max(self.ends[warp.iteration], at)
                warp.number, warp.iteration = 0, warp.iteration + 1
                if warp.iteration == goal:
                    self.partitions[number].remove(warp)
                    if self.holds[number] is warp:
                        self.holds[number] = None
                    remaining -= 1
            warp.own = self._own(warp)
            self.next[number] = self._choose(number)
        self.last = max(self.last, *self.ends)

    def _choose(self, number: int) -> tuple[float, _Warp] | None:
        """The warp of a partition that issues next; of several the one that waits the longest."""
        free, port, steps, shared = self.free[number], self.port[number], self.steps, self.shared
        holds, best = self.holds[number], None
        least = oldest = 0.0
        for warp in self.partitions[number]:
            step = steps[warp.number]
            if warp.at_barrier or (step.instruction.asynchronous and holds not in (None, warp)):
                continue
            at = warp.own
            if port[step.port] > at:
                at = port[step.port]
            if step.through_shared:
                if shared - QUEUE > at:
                    at = shared - QUEUE
            elif step.busy and not step.instruction.asynchronous and free[step.pipe] > at:
                at = free[step.pipe]
            if best is None or at < least or (at == least and warp.issued < oldest):
                best, least, oldest = warp, at, warp.issued
        return None if best is None else (least, best)

    def _turn(self, chosen: tuple[float, _Warp]) -> tuple[float, float]:
        """By which partitions issue: of several at once, the one that has waited the longest."""
        at, warp = chosen
        return at, self.served[warp.partition]

    def _own(self, warp: _Warp) -> float:
        instruction = self.steps[warp.number].instruction
        at = warp.ready
        for wait in instruction.waits:
            pending = warp.counters.get(wait.counter)
            if pending and len(pending) > wait.at_most:
                at = max(at, pending[len(pending) - 1 - wait.at_most])
        if warp.registers:
            for register in instruction.reads + instruction.writes:
                at = max(at, warp.registers.get(register, 0.0))
        return at

    def _issue(self, warp: _Warp, step: _Step, at: float) -> None:
        instruction, kind = step.instruction, step.kind
        self.port[warp.partition][step.port] = at + 1
        warp.ready, warp.issued = at + instruction.stall, at
        begun, done = at, at + step.latency
        if not instruction.active:
            done = at
        elif kind is Kind.BARRIER:
            self._arrive(warp, done)
        elif kind in (Kind.SHARED, Kind.COPY):
            begun = self.shared = max(self.shared, at) + step.busy
            self.served[warp.partition] = begun
            done = begun + step.latency
        elif instruction.asynchronous:
            # It begins when those before it are done, and its operands come; what threads ask of
            # the shared memory meanwhile is served in between.
            begun = max(at, self.free[warp.partition][step.pipe])
            reads = instruction.bytes / self.machine.shared_rate
            self.operands = max(self.operands, at) + reads
            done = max(begun + step.busy, self.operands)
            self.free[warp.partition][step.pipe] = done
            # Products of a group are called one behind the other; those of others come after them.
            self.holds[warp.partition] = None if instruction.signals else warp
        else:
            self.free[warp.partition][step.pipe] = at + step.busy
            done += step.busy
        if kind in (Kind.LOAD, Kind.STORE, Kind.COPY) and instruction.active:
            self.cache = max(self.cache, at) + instruction.bytes / self.cache_rate
            later = BOX_CYCLES if instruction.name.startswith("UTMALDG") else 0
            done = max(self.cache, at + self.machine.cache_cycles) + later
            if kind is Kind.COPY:
                warp.copied = max(warp.copied, done)
        if instruction.closes:
            done = max(done, warp.copied)
        self.last = max(self.last, done)
        for counter in instruction.signals:
            _announce(warp, counter, done)
        if instruction.frees:
            # Operands are read when the access begins.
            _announce(warp, instruction.frees, begun)
        if self.machine.one_pipe and not instruction.signals:
            # What memory returns is waited for by its counters.
            for register in instruction.writes:
                warp.registers[register] = done

    def _arrive(self, warp: _Warp, release: float) -> None:
        warp.at_barrier = True
        mates = [w for w in self.warps if w.block == warp.block]
        if all(mate.at_barrier for mate in mates):
            for mate in mates:
                mate.at_barrier = False
                mate.ready = max(mate.ready, release)
                mate.own = max(mate.own, release)
            for number in {mate.partition for mate in mates}:
                self.next[number] = self._choose(number)


def _step(instruction: Instruction, machine: Machine) -> _Step:
    kind = instruction.kind
    pipe = machine.pipe(kind)
    return _Step(
        instruction,
        kind,
        _NUMBERS[pipe],
        _NUMBERS[pipe] if machine.ports else 0,
        machine.busy(instruction),
        machine.latencies.get(kind, 0),
        kind in (Kind.SHARED, Kind.COPY) and instruction.active,
    )


def _announce(warp: _Warp, counter: str, when: float) -> None:
    """Results are counted in order."""
    pending = warp.counters.setdefault(counter, [])
    pending.append(max(when, pending[-1] if pending else 0.0))
    del pending[:-64]


def cycles_per_iteration(
    loop: Sequence[Instruction], machine: Machine, warps: int, blocks: int, cache_rate: float
) -> float:
    """Cycles of an iteration of all warps, once the loop runs evenly; see :class:`Schedule`."""
    if not loop or not blocks:
        return 0.0
    schedule = Schedule(loop, machine, warps, blocks, cache_rate)
    schedule.run(AVERAGED)
    mean = 0.0
    while len(schedule.ends) < LONGEST:
        before, end = mean, schedule.ends[-1]
        schedule.run(AVERAGED)
        mean = (schedule.ends[-1] - end) / AVERAGED
        if abs(mean - before) <= NEAR * mean:
            break
    return mean


def cycles_once(
    code: Sequence[Instruction], machine: Machine, warps: int, blocks: int, cache_rate: float
) -> float:
    """Cycles until all warps are through with code that runs once, and its results are there."""
    if not code or not blocks:
        return 0.0
    schedule = Schedule(code, machine, warps, blocks, cache_rate)
    schedule.run(1)
    return schedule.last
