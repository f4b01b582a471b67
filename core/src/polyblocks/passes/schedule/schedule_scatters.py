"""schedule-scatters: stores at run-time indices are shared among threads without a race."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.known_values import raise_places
from polyblocks.affine.cost.constants import CACHE_SHARE
from polyblocks.affine.cost.rates import private_cache
from polyblocks.affine.gpu.winners import raced
from polyblocks.affine.gpu.winning_rows import Before, KnownNumbers
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import Buffer, IndirectStore, Nest, Sequence, walk
from polyblocks.affine.rewrites.digit_loops import count_indices, split_at_digits
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.scatters.copies import Copies, drop_repeated_checks
from polyblocks.affine.scatters.fills import fill_before
from polyblocks.affine.scatters.ranges import in_ranges
from polyblocks.affine.scatters.scatter import Scatter
from polyblocks.affine.subnests import perfect_loops
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class ScheduleScattersPass(NestPass):
    """Choose how the updates of a scatter run in parallel.

    Any two updates may meet in one element, so their loop is serial as it stands. There are
    several ways out, and the cost model takes the fastest one, or none, as it does where the
    target's description lacks a rate:

    * *columns*: a loop whose variable is itself an index of the destination moves outside and is
      cut into as many parts as there are threads. Updates of an element keep their order;
    * *ranges*: of updates that overwrite, each thread looks at all and makes those in its range of
      the places, in their order, see :mod:`polyblocks.affine.scatters.ranges`;
    * *copies*: every thread adds its share of the updates to a copy of the destination, and a
      second nest combines the copies, in a fixed order: the result is the same in every run.
      Scatters with the same loops are made together so;
    * *filled*: what writes all of a small destination just before and the updates are one nest, of
      one thread, so that the destination does not move from the caches of others;
    * *atomic*: threads update elements by atomic operations, in any order, where there are such;
    * *numbered*: the last of the stores to an element is found by an atomic maximum of the numbers
      of the updates, see :mod:`polyblocks.affine.gpu.winners`; once for updates of rows, and for
      several arrays at the same places. A nest that fills the destination just before is part of
      the nest that stores what has won.

    Before::

        affine.for %i = 0 to 1000000 {
          %old = memref.load %bins[%b] ... memref.store %new, %bins[%b] }

    After (copies)::

        affine.for %p = 0 to 2 {
          affine.for %d = 0 to 256 { affine.store %zero, %copies[%p, %d] }
          affine.for %i = 0 to 500000 {
            %old = memref.load %copies[%p, %b] ... memref.store %new, %copies[%p, %b] } }
        affine.for %d = 0 to 256 {
          %x = affine.load %bins[%d] ... affine.store %sum, %bins[%d] }
    """

    name: ClassVar[str] = "schedule-scatters"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Schedule every scatter."""
        target = context.target
        level = target.shared_level
        last: Copies | None = None
        known = KnownNumbers()
        for nest in list(sequence.nests()):
            if any(isinstance(n, IndirectStore) for n in walk(nest.body)):
                # Fused with what made their places, updates know more of these than before.
                raise_places(nest)
                if _split_at_places(nest):
                    nest.replace()
            if count_indices(nest.body):
                nest.replace()
            scatter = Scatter.of(nest)
            if scatter is None:
                continue
            # Load and store of one place are often checked in the same words.
            eliminate_common(nest.body)
            if drop_repeated_checks(scatter.body):
                nest.replace()
            if target.updates_atomically and scatter.start() is not None:
                # Threads by the thousand: each update is one atomic operation.
                context.decide(self.name, nest.name, "atomic")
                continue
            if target.updates_atomically and scatter.races(target):
                filled = _numbered(sequence, nest, scatter, known)
                context.decide(self.name, nest.name, "numbered", filled=filled)
                continue
            columns = scatter.columns(level.size, max(target.line, 1))
            parts = 0 if columns is None else -(-columns[0].var.extent // columns[1])
            start = scatter.start()
            fill = _kept_fill(sequence, nest, scatter.buffer, target)
            ranges = in_ranges(scatter, target)
            choices = scatter.choices(
                target,
                parts,
                copies=start is not None,
                filled=fill is not None,
                ranges=0 if ranges is None else ranges.var.extent,
            )
            best = min(choices, key=lambda name: choices[name], default="serial")
            if level.size < 2:
                best = "serial"
            context.decide(self.name, nest.name, best, seconds=choices)
            if best == "columns":
                assert columns is not None
                nest.replace([scatter.in_columns(*columns)])
            elif best == "ranges":
                assert ranges is not None
                nest.replace([ranges])
            elif best == "copies":
                assert start is not None
                mine = Copies(level.size)
                if last is not None and last.may_take(sequence, scatter, nest):
                    mine = last
                mine.take(sequence, scatter, nest, start)
                last = mine
            elif best == "filled":
                assert fill is not None
                nest.replace([*fill.body, *nest.body])
                nest.sources = merged_sources([fill, nest])
                sequence.items.remove(fill)


def _numbered(sequence: Sequence, nest: Nest, scatter: Scatter, known: KnownNumbers) -> bool:
    """Let the last updates of elements be found; whether what was before is computed with them."""
    before = Before(fill_before(sequence, nest, scatter.buffer))
    nests = raced(sequence, nest, scatter.loops, scatter.body, scatter.store, known, before)
    at = sequence.items.index(nest)
    sequence.items[at : at + 1] = nests
    if before.fill is not None and before.used:
        nests[-1].sources = merged_sources([before.fill, nest])
        sequence.items.remove(before.fill)
    return before.used


def _split_at_places(nest: Nest) -> bool:
    """Split loops whose stores are at run-time places no more; whether there was one.

    With a loop for each digit that places have it is seen that updates never meet.
    """
    if any(isinstance(n, IndirectStore) for n in walk(nest.body)):
        return False
    return split_at_digits(perfect_loops(nest.body)[0])


def _kept_fill(
    sequence: Sequence, nest: Nest, buffer: Buffer, target: TargetDescription
) -> Nest | None:
    """The nest that fills a scatter's destination before it, if one thread's caches keep that."""
    if target.shared_level.size < 2 or buffer.nbytes > private_cache(target) // CACHE_SHARE:
        return None
    return fill_before(sequence, nest, buffer)
