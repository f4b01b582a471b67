"""How long a nest takes as it is written: loop by loop, what is busy at the same time.

Loops after each other in a tile do not overlap: while the second one computes, the memory that the
first one has waited for is idle. What one loop computes, loads and stores does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polyblocks.affine.analysis.footprints import Level, Moved
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.instructions import Mix, Registers, VectorMix, scalar_mix
from polyblocks.affine.model import For, Node
from polyblocks.target import Issue, MemoryLevel, TargetDescription

#: Vector instructions that starting an innermost loop costs: its bounds, its tail.
ROW_START = 10.0
#: Scalar instructions of an iteration of a loop that counts.
COUNTER = 2.0
#: Instructions among which a core looks for some whose operands are there.
WINDOW = 256.0


@dataclass
class Phase:
    """What the iterations of one loop take, without loops inside that take turns with it.

    Attributes:
        level: the loop.
        mix: instructions of all of its iterations, with all loops around.
        inner: loops inside.
    """

    level: Level
    mix: Mix = field(default_factory=Mix)
    inner: list[Phase] = field(default_factory=list)
    times: float = 1.0


def phases(root: Level, nodes: list[Node], target: TargetDescription) -> Phase:
    """The phases of a nest, with their instructions."""
    return _phase(root, nodes, 1.0, Registers(target.vector_bits, target.memory[0].line))


def _phase(level: Level, nodes: list[Node], times: float, registers: Registers) -> Phase:
    """A loop's phase; ``times`` is how often its body runs."""
    phase = Phase(level, times=times)
    phase.mix.add(scalar_mix(nodes), times)
    loops = [n for n in nodes if isinstance(n, For)]
    for loop, inner in zip(loops, level.inner, strict=True):
        runs = times * inner.trips
        if loop.simd is None or (len(loop.body) == 1 and isinstance(loop.body[0], For)):
            one = _phase(inner, loop.body, runs, registers)
            one.mix.scalars += COUNTER * runs
        else:
            one = _vectors(inner, loop, times, registers)
        phase.inner.append(one)
    return phase


def _vectors(level: Level, loop: For, times: float, registers: Registers) -> Phase:
    """The phase of a loop in vectors that runs ``times`` times."""
    assert loop.simd is not None
    vectors = VectorMix(loop, registers)
    simd = loop.simd
    trips = level.trips
    whole, rest = divmod(trips, simd.width)
    count: float = whole
    phase = Phase(level, times=times * trips)
    if rest:
        if simd.masked or rest & (rest - 1) == 0:
            count += 1
        else:
            phase.mix.add(scalar_mix(loop.body), times * rest)
    blocks = count / (simd.accumulators * simd.interleaved)
    phase.mix.add(vectors.each, times * count)
    phase.mix.add(vectors.once, times)
    phase.mix.scalars += times * (COUNTER * blocks)
    phase.mix.others += times * ROW_START
    for inner, mix in zip(level.inner, vectors.inner.values(), strict=True):
        inside = Phase(inner, times=times * count * inner.trips)
        inside.mix.add(mix, times * count * inner.trips)
        phase.inner.append(inside)
    return phase



def slots(mix: Mix, issue: Issue, register: float) -> float:
    """Slots of a core that instructions take; ``register`` is bytes of one.

    A slot is the time in which it starts one multiply-add of a whole register.
    """
    products = mix.products + mix.inverse_roots * issue.inverse_root
    vectors = products + mix.sums + mix.others + mix.shuffles
    divider = mix.quotients * issue.quotient + mix.roots * issue.root
    accesses = (mix.loaded + mix.stored) / register
    busiest = max(
        products if issue.sums_apart else products + mix.sums,
        mix.sums,
        divider,
        mix.shuffles / issue.shuffles,
        vectors / issue.vectors,
        (vectors + mix.scalars + accesses) / issue.instructions,
    )
    return busiest + mix.gathered * issue.lane


@dataclass(frozen=True)
class Chip:
    """What the threads of a nest get of a chip.

    Attributes:
        slot: seconds of a slot, over the threads that share the work.
        register: bytes of a register.
        issue: what a core starts in a slot.
        memory: the memory levels, the fastest first.
        rates: bytes per second of each, of all threads.
    """

    slot: float
    register: float
    issue: Issue
    memory: Sequence[MemoryLevel]
    rates: Sequence[float]

    def moving(self, k: int, fetched: float, written: float) -> float:
        """Seconds in which a memory level gives and takes so many bytes."""
        apart = self.memory[k].writes
        moved = max(fetched, written / apart) if apart else fetched + written
        return moved / self.rates[k]


class Clock:
    """Adds up the time of the phases of a nest.

    Attributes:
        chip: what its threads get.
        parts: of every memory level but the first, what each loop moves.
        busy: seconds that each resource is busy: arithmetic, then the memory levels.
    """

    def __init__(self, chip: Chip, parts: Sequence[Mapping[Level, Moved]]) -> None:
        self.chip = chip
        self.parts = parts
        self.busy = [0.0] * (1 + len(chip.memory))

    def seconds(self, phase: Phase) -> float:
        """Seconds of a phase and of those inside."""
        whole = Mix()
        levels: list[Level] = []
        _gather(phase, whole, levels)
        chip = self.chip
        once = slots(whole, chip.issue, chip.register) / max(phase.times, 1.0)
        if not phase.inner or once <= WINDOW:
            return self._together(whole, levels)
        own = self._together(phase.mix, [phase.level])
        return own + sum(self.seconds(inner) for inner in phase.inner)

    def _together(self, mix: Mix, levels: list[Level]) -> float:
        chip = self.chip
        last = len(chip.memory) - 1
        busy = [slots(mix, chip.issue, chip.register) * chip.slot]
        busy.append(chip.moving(0, mix.loaded, mix.stored))
        for k, parts in enumerate(self.parts, 1):
            moved = Moved()
            for level in levels:
                if level in parts:
                    moved.add(parts[level])
            written = moved.written + (moved.passed if k == last else 0.0)
            busy.append(chip.moving(k, moved.fetched, written))
        self.busy = [a + b for a, b in zip(self.busy, busy, strict=True)]
        return rates.overlapped(*busy)


def _gather(phase: Phase, mix: Mix, levels: list[Level]) -> None:
    mix.add(phase.mix)
    levels.append(phase.level)
    for inner in phase.inner:
        _gather(inner, mix, levels)
