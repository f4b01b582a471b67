"""split-reductions: a long reduction with too little around it is done in parallel parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.footprints import analyze
from polyblocks.affine.analysis.reductions import ReductionNest, identities
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.loop_order import shares
from polyblocks.affine.model import Nest, Sequence
from polyblocks.affine.rewrites.parts import split
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class SplitReductionsPass(NestPass):
    """Give every thread a part of a reduction that has no parallel loops to share out.

    The outermost reduction loop is cut; each part starts from the identity of the operation and
    leaves its result in a buffer, which a second, small reduction reads. Only reductions whose
    order does not matter are split. Where blocks of threads have outer iterations enough for the
    multiprocessors and too few for their threads, as columns are, the predicted times of the
    kernels decide.

    Before::

        %r = affine.for %k = 0 to 1000000 iter_args(%s = %z) -> f32 { ... }
        affine.store %r, %out[]

    After::

        affine.for %c = 0 to 16 {
          %p = affine.for %k = 0 to 62500 iter_args(%s = %zero) -> f32 { ... %c * 62500 + %k ... }
          affine.store %p, %parts[%c] }
        %r = affine.for %c = 0 to 16 iter_args(%s = %z) -> f32 { ... affine.load %parts[%c] ... }
        affine.store %r, %out[]
    """

    name: ClassVar[str] = "split-reductions"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.REDUCTIONS})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.WHOLE_LOOPS})
    #: Parts for each thread: a thread that comes late leaves its share to the others.
    parts_per_thread: int = 4
    #: The smallest gain, in times the start of a team, that is worth a second nest.
    min_gain: float = 4.0
    #: The same of the time that one thread of a CPU takes to read the operands. On two cores of a
    #: Zen 4, a dot product that reads 512 KiB from their second caches takes 4.1 µs, 5.6 on one.
    min_traffic: float = 2.0
    #: Of the predicted time of one kernel, at most, where the predicted times of kernels decide.
    worth: float = 0.8
    #: Iterations of such a part, at least.
    least: int = 16

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split where threads would be idle.

        How small is too small nothing tells where the target's description lacks a rate.
        """
        level = context.target.shared_level
        if level.size < 2:
            return
        for nest in sequence.nests():
            shape = ReductionNest.of(nest)
            if shape is None or any(f.bounded for f in (*shape.parallel, *shape.reductions)):
                continue
            blocks = context.target.shares_inner_loops
            # Blocks share the inner loops as well, whichever they are.
            iterations = shape.iterations if blocks else shares(shape, context.target)
            extent = shape.reductions[0].var.extent
            # Time of one thread for all of it.
            seconds = rates.compute_seconds(context.target, cost.work(nest.body) * level.size)
            if blocks and seconds is not None:
                # Blocks have their shares of the memory's bandwidth, and do as many of the outer
                # iterations at once as there are.
                moved = rates.traffic_seconds(context.target, *_read(nest))
                at_once = min(level.size, max(iterations, 1))
                seconds = None if moved is None else max(seconds, moved * level.size) / at_once
            if iterations >= 2 * level.size and not blocks:
                continue
            if seconds is not None and seconds < self.min_gain * level.overhead:
                moved = rates.traffic_seconds(context.target, *_read(nest))
                if blocks or moved is None or moved < self.min_traffic * level.overhead:
                    continue
            combiners = shape.combiners()
            if combiners is None or identities(combiners) is None:
                continue
            parts = min(self.parts_per_thread * level.size, extent // 2)
            if iterations >= 2 * level.size:
                parts = self._predicted(nest, shape, context.target)
            if parts < 2:
                continue
            at = sequence.items.index(nest)
            sequence.items[at : at + 1] = split(nest, shape, combiners, extent // parts)
            context.decide(self.name, nest.name, "split", parts=parts, serial_seconds=seconds)

    def _predicted(self, nest: Nest, shape: ReductionNest, target: TargetDescription) -> int:
        """Into how many parts kernels are predicted to be quickest; 1: it stays whole."""
        from polyblocks.affine.gpu.choose import choose, copy_of

        chip = target.multiprocessor
        assert chip is not None
        threads = target.shared_level.size * (chip.busy_threads or chip.threads)
        extent = shape.reductions[0].var.extent
        counts = [threads // each // shape.iterations for each in (1, 4, chip.warp)]
        counts = [count for count in counts if 2 <= count <= extent // self.least]
        if not counts or rates.unknown_rates(target):
            return 1
        seconds = {1: choose(copy_of(nest), target)[1].seconds}
        for count in counts:
            copied = copy_of(nest)
            parts = ReductionNest.of(copied)
            combiners = None if parts is None else parts.combiners()
            assert parts is not None
            assert combiners is not None
            found = [
                choose(each, target) for each in split(copied, parts, combiners, extent // count)
            ]
            between = (len(found) - 1) * target.shared_level.overhead
            seconds[count] = sum(predicted.seconds for _, predicted in found) + between
        best = min(seconds, key=lambda count: seconds[count])
        moved = rates.traffic_seconds(target, *_read(nest)) or 0.0
        return best if max(seconds[best], moved) < self.worth * seconds[1] else 1


def _read(nest: Nest) -> tuple[int, int]:
    """Bytes that a nest reads, each once, and the same as a footprint."""
    touched = analyze(nest.body, 1).whole.values()
    read = sum(t.read for t in touched)
    return read, read
