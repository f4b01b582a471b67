"""How long a nest takes as it is written: loop by loop, what is busy at the same time.

Loops after each other in a tile do not overlap: while the second one computes, the memory that the
first one has waited for is idle. What one loop computes, loads and stores does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod

from polyblocks.affine.analysis.footprints import Level
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.instructions import Mix, Registers, ScalarMix, VectorMix
from polyblocks.affine.cost.tile_cost import ROW_START
from polyblocks.affine.cost.traffic import Moved
from polyblocks.affine.model import (
    For,
    Index,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
    Op,
    Store,
    Value,
    operands,
    results,
    walk,
)
from polyblocks.target import Issue, TargetDescription

#: The resource of arithmetic, beside the names of the memory levels.
COMPUTE = "compute"
#: Scalar instructions of an iteration of a loop that counts.
COUNTER = 2.0
#: Iterations of loops in each other that are written one after the other, at most.
UNROLLED = 16
#: Slots that are bridged by what memory fetches ahead and by what waits to be written, some KiB: a
#: softmax of rows of 4 KiB reads, computes and writes at the same time, a tile of 256 KiB does not.
WINDOW = 2048.0
#: The part of the time of memory levels that does not overlap with the slowest one's: a line comes
#: through all of them. Of the pipelines of the benchmarks, whose tiles are in the second cache.
IN_TURNS = 0.3


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


@dataclass(frozen=True)
class _Around:
    """A loop around: its level, and whether its iterations are written one after the other."""

    level: Level
    unrolled: bool


def phases(root: Level, nodes: list[Node], target: TargetDescription) -> Phase:
    """The phases of a nest, with their instructions."""
    return _Builder(nodes, target).phase(root, nodes, [], 1.0)


class _Builder:
    def __init__(self, nodes: list[Node], target: TargetDescription) -> None:
        self._registers = Registers(target.vector_bits, target.issue.narrow, target.memory[0].line)
        #: Slots from an operation to one that waits for it, and through memory.
        self._latency = float(target.multiply_adds_in_flight)
        self._forwarding = target.issue.forwarding
        #: The loops, of those around, in which a value changes.
        self._changing: dict[Value, frozenset[Level]] = {}
        #: Whether there may be loops that are unrolled.
        self._unrolls = any(
            isinstance(n, For) and n.simd is None and n.trips <= UNROLLED for n in walk(nodes)
        )
        self._stored = {
            n.buffer.base
            for n in walk(nodes)
            if isinstance(n, (Store, IndirectStore, IndirectAtomic))
        }

    def phase(self, level: Level, nodes: list[Node], around: list[_Around], times: float) -> Phase:
        """A loop's phase; ``times`` is how often its body runs."""
        phase = Phase(level, times=times)
        self._straight(phase.mix, nodes, around, times)
        loops = [n for n in nodes if isinstance(n, For)]
        for loop, inner in zip(loops, level.inner, strict=True):
            runs = times * inner.trips
            if loop.simd is not None and not (
                len(loop.body) == 1 and isinstance(loop.body[0], For)
            ):
                phase.inner.append(self._vectors(inner, loop, times))
                continue
            unrolled = _iterations(inner) <= UNROLLED
            for argument in loop.arguments:
                self._changing[argument] = frozenset([inner])
            one = self.phase(inner, loop.body, [*around, _Around(inner, unrolled)], runs)
            if not unrolled:
                one.mix.scalars += COUNTER * runs
            if loop.inits:
                one.mix.waits += self._latency * runs
            phase.inner.append(one)
        return phase

    def _straight(self, mix: Mix, nodes: list[Node], around: list[_Around], times: float) -> None:
        """Add straight-line nodes of a scalar loop.

        What does not change from iteration to iteration of a loop that is unrolled is computed
        once, and outside of the loops around if it does not change there either.
        """
        scalars = ScalarMix(nodes, self._registers)
        unrolled = bool(around) and around[-1].unrolled
        if self._unrolls:
            for node in nodes:
                self._define(node, around)
        for node in scalars.nodes:
            runs = times
            if unrolled and isinstance(node, (Load, Store)) and node.buffer.kind == "local":
                # In registers: all its places are known.
                continue
            if unrolled and not isinstance(node, (Store, IndirectStore, IndirectAtomic)):
                changing = self._where(node, around)
                runs = self._runs(changing, around)
                if isinstance(node, Op) and node.name in ("arith.divf", "math.sqrt"):
                    runs *= self._side_by_side(changing, around)
            mix.add(scalars.of(node), runs)
        if _updates(nodes):
            mix.waits += (self._latency + self._forwarding) * times

    def _runs(self, changing: frozenset[Level], around: list[_Around]) -> float:
        """How often something runs that changes in these loops."""
        runs = 1.0
        deepest = max(
            (i for i, a in enumerate(around) if a.level in changing and not a.unrolled), default=-1
        )
        for i, one in enumerate(around):
            if one.level in changing if one.unrolled else i <= deepest:
                runs *= one.level.trips
        return runs

    def _side_by_side(self, changing: frozenset[Level], around: list[_Around]) -> float:
        """Instructions of one operation, where those of an unrolled loop are done in vectors.

        That is worth it for the slow ones.
        """
        count = prod(a.level.trips for a in around if a.unrolled and a.level in changing)
        lanes = max(1, int(self._registers.narrow * self._registers.bits) // 32)
        return -(-count // lanes) / count

    def _where(self, node: Node, around: list[_Around]) -> frozenset[Level]:
        """The loops in which what a node does changes."""
        found: set[Level] = set()
        if isinstance(node, (Load, Index)):
            exprs = node.index if isinstance(node, Load) else (node.expr,)
            variables = {v for e in exprs for v in e.variables()}
            found = {a.level for a in around if a.level.loop_var in variables}
        for value in operands(node):
            found |= self._changing.get(value, frozenset())
        if isinstance(node, (Load, IndirectLoad)) and node.buffer.base in self._stored:
            found = {a.level for a in around}
        return frozenset(found)

    def _define(self, node: Node, around: list[_Around]) -> None:
        for result in results(node):
            self._changing[result] = (
                frozenset(a.level for a in around)
                if isinstance(node, For)
                else self._where(node, around)
            )

    def _vectors(self, level: Level, loop: For, times: float) -> Phase:
        """The phase of a loop in vectors that runs ``times`` times."""
        assert loop.simd is not None
        vectors = VectorMix(loop, self._registers)
        simd = loop.simd
        trips = level.trips
        whole, rest = divmod(trips, simd.width)
        count: float = whole
        phase = Phase(level, times=times * trips)
        if rest:
            if simd.masked or rest & (rest - 1) == 0:
                count += 1
            else:
                scalars = ScalarMix(loop.body, self._registers)
                for node in scalars.nodes:
                    phase.mix.add(scalars.of(node), times * rest)
        blocks = whole / (simd.accumulators * simd.interleaved)
        phase.mix.add(vectors.each, times * count)
        phase.mix.add(vectors.once, times)
        if loop.inits:
            phase.mix.waits += self._latency * times * max(1.0, blocks)
        if blocks > 1 or loop.bounded:
            phase.mix.scalars += times * COUNTER * blocks
            phase.mix.others += times * ROW_START
        for inner, mix in zip(level.inner, vectors.inner.values(), strict=True):
            inside = Phase(inner, times=times * count * inner.trips)
            inside.mix.add(mix, times * count * inner.trips)
            phase.inner.append(inside)
        return phase


def _iterations(level: Level) -> int:
    """Iterations of a loop and of the loops inside."""
    return level.trips * max((_iterations(inner) for inner in level.inner), default=1)


def _updates(nodes: list[Node]) -> bool:
    """Whether something is added to elements that are known at run time only: often the same."""
    loaded = {n.buffer.base for n in nodes if isinstance(n, IndirectLoad)}
    return any(isinstance(n, IndirectStore) and n.buffer.base in loaded for n in nodes)


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
        vectors / issue.vectors,
        (vectors + mix.scalars + accesses) / issue.instructions,
    )
    return busiest + mix.gathered * issue.lane


@dataclass(frozen=True)
class _Chip:
    """What the threads of a nest get of a chip.

    Attributes:
        target: the chip.
        slot: seconds of a slot, over the threads that share the work.
        rates: bytes per second of each memory level, of all threads.
    """

    target: TargetDescription
    slot: float
    rates: Sequence[float]

    @classmethod
    def of(cls, target: TargetDescription, threads: int) -> _Chip:
        """What so many threads get of a chip whose rates are known."""
        lane_rate = rates.lane_rate(target)
        assert lane_rate is not None
        team, simd = target.parallel_level("team"), target.parallel_level("simd")
        cores = team.size if team is not None else 1
        lanes = simd.size if simd is not None else 1
        known = [rates.bandwidth(target, level, threads) for level in target.memory]
        return cls(target, lanes * cores / lane_rate / threads, [rate or inf for rate in known])

    def computing(self, mix: Mix) -> float:
        """Seconds in which instructions are started."""
        return slots(mix, self.target.issue, self.target.vector_bits / 8) * self.slot

    def moving(self, k: int, fetched: float, written: float) -> float:
        """Seconds in which a core gets so many bytes of a memory level and gives it some.

        The main memory takes what one core gives as fast as it gives; only many are held up.
        """
        apart = self.target.memory[k].writes
        if not apart:
            return (fetched + written) / self.rates[k]
        if k == len(self.rates) - 1:
            return _in_turns(fetched, written) / self.rates[k]
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
        whole = Mix()
        levels: list[Level] = []
        _gather(phase, whole, levels)
        once = self.chip.computing(whole) / self.chip.slot / max(phase.times, 1.0)
        if not phase.inner or once <= WINDOW:
            return self._together(whole, levels)
        own = self._together(phase.mix, [phase.level])
        return own + sum(self.seconds(inner) for inner in phase.inner)

    def _together(self, mix: Mix, levels: list[Level]) -> float:
        """Seconds of what some loops do at the same time."""
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
        return rates.overlapped(*busy[:2], _in_turns(*busy[2:])) if busy[2:] else max(busy)


def _in_turns(*seconds: float) -> float:
    """Time of what the same lines of memory take one after the other, others meanwhile."""
    longest = max(seconds)
    return longest + IN_TURNS * (sum(seconds) - longest)


def _gather(phase: Phase, mix: Mix, levels: list[Level]) -> None:
    """The instructions of a phase and of those inside, and their loops."""
    mix.add(phase.mix)
    levels.append(phase.level)
    for inner in phase.inner:
        _gather(inner, mix, levels)


def predict(
    root: Level,
    nodes: list[Node],
    target: TargetDescription,
    threads: int,
    traffic: Sequence[Mapping[Level, Moved]],
) -> tuple[float, dict[str, float]]:
    """Seconds of a nest as it is written, and those in which each resource is busy.

    Args:
        root: its footprints.
        nodes: its body; loops in vectors say so.
        target: whose rates are known.
        threads: that share the work.
        traffic: of every memory level but the first, what each loop moves.
    """
    clock = _Clock(_Chip.of(target, threads), traffic)
    seconds = clock.seconds(phases(root, nodes, target))
    # While one core writes another one reads.
    main = target.memory[-1]
    if main.writes and traffic:
        given = sum(m.written + m.passed for m in traffic[-1].values())
        clock.busy[-1] = max(clock.busy[-1], given / main.writes / clock.chip.rates[-1])
        seconds = max(seconds, clock.busy[-1])
    names = [COMPUTE, *(level.name for level in target.memory)]
    return seconds, dict(zip(names, clock.busy, strict=True))
