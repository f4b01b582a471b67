"""How long a nest takes as it is written: what is busy at the same time, loop by loop.

Loops after each other in a tile do not overlap: while the second one computes, the memory that the
first one has waited for is idle. Arithmetic, loads and stores of one loop overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from polyblocks.affine.analysis.footprints import Level
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import LEVELS_IN_TURN, OVERLAP_SLOTS
from polyblocks.affine.cost.instructions import Mix
from polyblocks.affine.cost.phases import Phase, phases
from polyblocks.affine.cost.traffic import Moved
from polyblocks.affine.model import Node
from polyblocks.target import Issue, TargetDescription

#: The resource of arithmetic, beside the names of the memory levels.
COMPUTE = "compute"


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
        mix.waits,
        mix.units,
        vectors / issue.vectors,
        (vectors + mix.scalars + accesses) / issue.instructions,
    )
    return busiest + mix.gathered * issue.lane


@dataclass(frozen=True)
class _Chip:
    """The share of a chip for the threads of a nest.

    Attributes:
        target: the chip.
        slot: seconds of a slot, over the threads that share the work.
        rates: bytes per second of each memory level, of all threads.
    """

    target: TargetDescription
    slot: float
    rates: Sequence[float]

    @classmethod
    def of(cls, target: TargetDescription, threads: int, uneven: float) -> _Chip:
        """The share of ``threads`` threads of a chip whose rates are known.

        Levels that threads share are not slower where one of them has more to do than others.
        """
        lane_rate = rates.lane_rate(target)
        assert lane_rate is not None
        team, simd = target.parallel_level("team"), target.parallel_level("simd")
        cores = team.size if team is not None else 1
        lanes = simd.size if simd is not None else 1
        known = [rates.bandwidth(target, level, threads) for level in target.memory]
        slowest = [
            (rate or inf) / (uneven if level.shared_by < threads else 1.0)
            for rate, level in zip(known, target.memory, strict=True)
        ]
        return cls(target, lanes * cores / lane_rate / threads * uneven, slowest)

    def computing(self, mix: Mix) -> float:
        """Seconds in which instructions are started."""
        return slots(mix, self.target.issue, self.target.vector_bits / 8) * self.slot

    def moving(self, k: int, fetched: float, written: float) -> float:
        """Seconds in which a core loads and stores bytes of a memory level.

        The main memory takes what one core gives as fast as it gives; only many are held up.
        """
        apart = self.target.memory[k].writes
        if not apart:
            return (fetched + written) / self.rates[k]
        if k == len(self.rates) - 1:
            return _serialized(fetched, written) / self.rates[k]
        return max(fetched, written / apart) / self.rates[k]


class _Clock:
    """Adds up the time of the phases of a nest.

    Attributes:
        chip: what its threads get.
        traffic: of every memory level but the first, what each loop moves.
        busy: seconds that each resource is busy: arithmetic, then the memory levels.
    """

    def __init__(self, chip: _Chip, traffic: Sequence[Mapping[Level, Moved]]) -> None:
        self.chip = chip
        self.traffic = traffic
        self.busy = [0.0] * (1 + len(chip.rates))

    def seconds(self, phase: Phase) -> float:
        """Seconds of a phase and of those inside."""
        whole, tiles = Mix(), Mix()
        levels: list[Level] = []
        _gather(phase, whole, tiles, levels)
        once = self.chip.computing(whole) / self.chip.slot / max(phase.times, 1.0)
        if not phase.inner or once <= OVERLAP_SLOTS:
            return self._overlapped(whole, tiles, levels)
        own = self._overlapped(phase.mix, phase.mix if phase.ahead else Mix(), [phase.level])
        return own + sum(self.seconds(inner) for inner in phase.inner)

    def _overlapped(self, mix: Mix, tiles: Mix, levels: list[Level]) -> float:
        """Seconds of what some loops do at the same time; ``tiles`` of it is in register tiles."""
        chip = self.chip
        busy = [chip.computing(mix), chip.moving(0, mix.loaded, mix.stored)]
        for k, traffic in enumerate(self.traffic, 1):
            moved = Moved()
            for level in levels:
                if level in traffic:
                    moved.add(traffic[level])
            passed = moved.passed if k == len(self.traffic) else 0.0
            busy.append(chip.moving(k, moved.fetched, moved.written + passed))
        self.busy = [a + b for a, b in zip(self.busy, busy, strict=True)]
        if not busy[2:]:
            return max(busy)
        far = _serialized(*busy[2:])
        longest = max(*busy[:2], far)
        computed = _arithmetic(mix)
        hidden = _arithmetic(tiles) / computed if computed else 0.0
        return longest + (1 - hidden) * (rates.overlapped(*busy[:2], far) - longest)


def _serialized(*seconds: float) -> float:
    """Time of the slowest level, and the part of all others that does not overlap with it."""
    longest = max(seconds)
    return longest + LEVELS_IN_TURN * (sum(seconds) - longest)


def _gather(phase: Phase, mix: Mix, tiles: Mix, levels: list[Level]) -> None:
    """The instructions of a phase and of those inside, those of register tiles, and the loops."""
    mix.add(phase.mix)
    if phase.ahead:
        tiles.add(phase.mix)
    levels.append(phase.level)
    for inner in phase.inner:
        _gather(inner, mix, tiles, levels)


def _arithmetic(mix: Mix) -> float:
    """Arithmetic of vectors and of matrix units, in slots."""
    return mix.products + mix.sums + mix.others + mix.shuffles + mix.units


def predict(
    root: Level,
    nodes: list[Node],
    target: TargetDescription,
    threads: int,
    traffic: Sequence[Mapping[Level, Moved]],
    uneven: float = 1.0,
) -> tuple[float, dict[str, float]]:
    """Seconds of a nest as it is written, and those in which each resource is busy.

    Args:
        root: its footprints.
        nodes: its body; loops in vectors say so.
        target: whose rates are known.
        threads: that share the work.
        traffic: of every memory level but the first, what each loop moves.
        uneven: work of the thread with most to do, over that of all threads on average.
    """
    clock = _Clock(_Chip.of(target, threads, uneven), traffic)
    seconds = clock.seconds(phases(root, nodes, target))
    # While one core writes another one reads.
    main = target.memory[-1]
    if main.writes and traffic:
        given = sum(m.written + m.passed for m in traffic[-1].values())
        clock.busy[-1] = max(clock.busy[-1], given / main.writes / clock.chip.rates[-1])
        seconds = max(seconds, clock.busy[-1])
    names = [COMPUTE, *(level.name for level in target.memory)]
    return seconds, dict(zip(names, clock.busy, strict=True))
