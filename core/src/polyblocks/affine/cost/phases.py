"""Instructions of a nest as written, loop by loop: vectors, and remaining scalars."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from polyblocks.affine.analysis.footprints import Level
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import LOOP_COUNTER, ROW_START, UNROLLED
from polyblocks.affine.cost.instructions import Mix, Registers, ScalarMix, VectorMix, square_mix
from polyblocks.affine.model import (
    AffineAccess,
    AnyLoad,
    AnyStore,
    For,
    Index,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
    Op,
    Value,
    stored_bases,
    walk,
)
from polyblocks.affine.ops import is_constant
from polyblocks.affine.vectors.lanes import NoLanesError
from polyblocks.target import TargetDescription, TileUnit


@dataclass
class Phase:
    """Instructions of one loop, excluding its inner loops.

    Attributes:
        level: the loop.
        mix: instructions of all of its iterations, with all loops around.
        inner: loops inside.
        times: how often its body runs, all loops around taken together.
        ahead: whether it is of a register tile, whose loads wait for nothing that it computes: a
            core has them under way while it multiplies.
    """

    level: Level
    mix: Mix = field(default_factory=Mix)
    inner: list[Phase] = field(default_factory=list)
    times: float = 1.0
    ahead: bool = False


@dataclass(frozen=True)
class _Around:
    """A loop around: its level, and whether its iterations are written one after the other."""

    level: Level
    unrolled: bool


def phases(root: Level, nodes: list[Node], target: TargetDescription) -> Phase:
    """The phases of a nest, with their instructions."""
    return _Builder(nodes, target).phase(root, nodes, [], 1.0)


class _Builder:
    """Makes the phases of one nest."""

    def __init__(self, nodes: list[Node], target: TargetDescription) -> None:
        issue = target.issue
        self._registers = Registers(
            target.vector_bits, issue.narrow, target.memory[0].line, issue.pairs
        )
        #: Slots from an operation to one that waits for it, and through memory.
        self._latency = float(target.multiply_adds_in_flight)
        self._forwarding = target.issue.forwarding
        rate = rates.lane_rate(target) or 0.0
        #: Slots of matrix units for a multiply-add of words, by as many lanes as a slot has.
        self._units = {
            unit.name: rate * 2 * unit.in_a_word / unit.flops if unit.flops else 1.0
            for unit in target.matrix_units
        }
        self._tile_units = {u.name: u for u in target.matrix_units if isinstance(u, TileUnit)}
        self._lanes = target.vector_bits // 32
        #: The loops, of those around, in which a value changes.
        self._changing: dict[Value, frozenset[Level]] = {}
        #: Whether there may be loops that are unrolled.
        self._unrolls = any(
            isinstance(n, For) and n.simd is None and n.trips <= UNROLLED for n in walk(nodes)
        )
        self._constants = {n.results[0]: n for n in walk(nodes) if is_constant(n)}
        self._stored = stored_bases(nodes)

    def phase(self, level: Level, nodes: list[Node], around: list[_Around], times: float) -> Phase:
        """A loop's phase; ``times`` is how often its body runs."""
        phase = Phase(level, times=times)
        self._straight(phase.mix, nodes, around, times)
        loops = [n for n in nodes if isinstance(n, For)]
        for loop, inner in zip(loops, level.inner, strict=True):
            runs = times * inner.mean
            if loop.unit:
                phase.inner.append(self._unit(inner, loop, times))
                continue
            if loop.simd is not None and loop.simd.square:
                phase.inner.append(self._square(inner, loop, times))
                continue
            # A loop around one in vectors that hands on what is carried only counts.
            if loop.simd is not None and not any(isinstance(n, For) and n.simd for n in loop.body):
                phase.inner.append(self._vectors(inner, loop, times))
                continue
            unrolled = _iterations(inner) <= UNROLLED
            for argument in loop.arguments:
                self._changing[argument] = frozenset([inner])
            one = self.phase(inner, loop.body, [*around, _Around(inner, unrolled)], runs)
            if not unrolled:
                one.mix.scalars += LOOP_COUNTER * runs
            if loop.inits:
                one.mix.waits += self._latency * runs
            phase.inner.append(one)
        return phase

    def _straight(self, mix: Mix, nodes: list[Node], around: list[_Around], times: float) -> None:
        """Add straight-line nodes of a scalar loop.

        Invariants of an unrolled loop are computed once, and outside of the loops around if they
        are invariant there too.
        """
        scalars = ScalarMix(nodes, self._registers)
        unrolled = bool(around) and around[-1].unrolled
        if self._unrolls:
            for node in nodes:
                self._define(node, around)
        for node in scalars.nodes:
            runs = times
            if unrolled and isinstance(node, AffineAccess) and node.buffer.kind == "local":
                # In registers: all its places are known.
                continue
            if unrolled and not isinstance(node, AnyStore):
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
                runs *= one.level.mean
        return runs

    def _side_by_side(self, changing: frozenset[Level], around: list[_Around]) -> float:
        """Instructions of one operation, where those of an unrolled loop are done in vectors.

        That is worth it for the slow ones.
        """
        count = prod(max(a.level.trips, 1) for a in around if a.unrolled and a.level in changing)
        lanes = max(1, int(self._registers.narrow * self._registers.bits) // 32)
        return -(-count // lanes) / count

    def _where(self, node: Node, around: list[_Around]) -> frozenset[Level]:
        """The loops in which what a node does changes."""
        found: set[Level] = set()
        if isinstance(node, (Load, Index)):
            exprs = node.index if isinstance(node, Load) else (node.expr,)
            variables = {v for e in exprs for v in e.variables()}
            found = {a.level for a in around if a.level.loop_var in variables}
        for value in node.uses:
            found |= self._changing.get(value, frozenset())
        if isinstance(node, AnyLoad) and node.buffer.base in self._stored:
            found = {a.level for a in around}
        return frozenset(found)

    def _define(self, node: Node, around: list[_Around]) -> None:
        for result in node.defines:
            self._changing[result] = (
                frozenset(a.level for a in around)
                if isinstance(node, For)
                else self._where(node, around)
            )

    def _square(self, level: Level, loop: For, times: float) -> Phase:
        """The phase of a tile of as many vectors as lanes that is transposed."""
        phase = Phase(level, times=times * level.mean)
        phase.mix.add(square_mix(loop, self._registers), times)
        phase.inner += [Phase(inner, times=phase.times * inner.trips) for inner in level.inner]
        return phase

    def _vectors(self, level: Level, loop: For, times: float) -> Phase:
        """The phase of a loop in vectors that runs ``times`` times."""
        assert loop.simd is not None
        try:
            vectors = VectorMix(loop, self._registers, self._constants, self._units)
        except NoLanesError:
            # Of a register tile, where only constants stand between its loops.
            return Phase(level, times=times * level.mean)
        simd = loop.simd
        phase = Phase(level, times=times * level.mean, ahead=bool(loop.lanes))
        full, rest = divmod(level.trips, simd.width)
        whole: float = full
        count = whole
        if loop.bounded:
            # Some runs end within a vector, and some have fewer.
            whole = count = min(-(-level.trips // simd.width), level.mean / simd.width + 0.5)
        elif rest:
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
        # Lanes of a register tile are written out; masks of the last ones are made once.
        if (blocks > 1 or loop.bounded) and not loop.lanes:
            phase.mix.scalars += times * LOOP_COUNTER * blocks
            phase.mix.others += times * ROW_START
        return phase

    def _unit(self, level: Level, loop: For, times: float) -> Phase:
        """The phase of a tile of a matrix unit that is done ``times`` times, step by step.

        A step loads the lines of its rows, and of its columns. A multiplication of fewer tiles than
        the unit has in flight waits for the one of the step before.
        """
        unit = self._tile_units[loop.unit]
        _, rows, columns = (n.var.extent for n in walk([loop]) if isinstance(n, For))
        height, width, _ = unit.shape
        lines = -(-rows // height), -(-columns // width)
        phase = Phase(level, times=times * level.mean, ahead=True)
        lanes = max(prod(lines), unit.in_flight) * height * width
        phase.mix.units += phase.times * lanes / self._lanes * self._units[unit.name]
        phase.mix.loaded += phase.times * sum(lines) * self._registers.bits / 8
        inner, around = level.inner, phase
        while inner:
            around.inner = [Phase(inner[0], times=phase.times)]
            inner, around = inner[0].inner, around.inner[0]
        return phase


def _iterations(level: Level) -> int:
    """Iterations of a loop and of the loops inside."""
    return level.trips * max((_iterations(inner) for inner in level.inner), default=1)


def _updates(nodes: list[Node]) -> bool:
    """Whether something is added to elements that are known at run time only: often the same."""
    loaded = {n.buffer.base for n in nodes if isinstance(n, IndirectLoad)}
    return any(isinstance(n, IndirectStore) and n.buffer.base in loaded for n in nodes)
