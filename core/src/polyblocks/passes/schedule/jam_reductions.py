"""jam-reductions: one loop reduces several rows, far apart from each other, at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import stride_along
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.analysis.reductions import ReductionNest, rows_at_once
from polyblocks.affine.cost.rates import private_cache
from polyblocks.affine.model import (
    Alloca,
    Check,
    For,
    IndirectStore,
    Load,
    Node,
    Sequence,
    walk,
)
from polyblocks.affine.rewrites.jam import jam
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.subnests import change_subnests, is_affine_code, separate_loops
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class JamReductionsPass(NestPass):
    """Unroll a parallel loop around a reduction that is bound by memory, and jam the copies.

    The hardware fetches ahead along each stream of addresses that it sees, up to the end of a
    page; one core with one stream waits for memory more than half of the time. The copies are as
    far apart as the loop allows, so that each is one long stream.

    Before::

        affine.for %i = 0 to 4096 {
          %r = affine.for %k .. iter_args(%s = %z) { ... affine.load %a[%i, %k] ... }
          affine.store %r, %b[%i] }

    After::

        affine.for %i = 0 to 1024 {
          %r:4 = affine.for %k .. iter_args(%s0 = %z, %s1 = %z, %s2 = %z, %s3 = %z) {
            ... affine.load %a[%i, %k] ... affine.load %a[%i + 1024, %k] ...
            ... affine.load %a[%i + 2048, %k] ... affine.load %a[%i + 3072, %k] ... }
          affine.store %r#0, %b[%i] ... affine.store %r#3, %b[%i + 3072] }

    If more loops follow in the same iteration (what the maximum is for, say), only the first
    reduction is jammed, for neighbouring rows. It brings them into the cache; the rest is done row
    by row.
    """

    name: ClassVar[str] = "jam-reductions"
    #: Streams of one loop. On Zen 4, sums of 64 MiB by two cores: 41 GB/s with 1, 48 with 2,
    #: 60 with 4, 55 with 8.
    unroll_factor: int = 4
    #: Operations per element and stream, beyond which the arithmetic hides the memory.
    max_operations: int = 8
    #: Values that a jammed loop carries; each will want several vector registers.
    max_carried: int = 8
    #: Elements that the reduction must have; a short one has no stream worth the name.
    min_trips: int = 256
    #: Elements of two rows whose products share one of them.
    min_shared: int = 64
    #: Bytes of a row, where other loops follow: 16 KiB gained 1.2 to 1.4 times, 4 KiB lost as much.
    min_row: int = 8192

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Jam every nest and sub-nest that reads more than the private caches hold."""
        level = context.target.shared_level
        private = private_cache(context.target)
        for nest in sequence.nests():

            def change(nodes: list[Node], around: list[For]) -> list[Node] | None:
                shape = ReductionNest.of_nodes(nodes) or ReductionNest.leading(nodes)
                if shape is None:
                    return None
                threads = 1 if around else level.size
                if (loop := self._sharing(shape, threads)) is not None:
                    return jam(shape, loop, rows_at_once(loop.var.extent))
                if not self._streams(shape, private):
                    return None
                loop = self._loop(shape, threads)
                return None if loop is None else jam(shape, loop, self.unroll_factor)

            new = change(nest.body, [])
            if new is not None:
                nest.replace(new)
            elif not change_subnests(nest, change):
                continue
            eliminate_common(nest.body)
            separate_loops(sequence, nest)
            context.decide(self.name, nest.name, "jammed", unroll_factor=self.unroll_factor)

    def _streams(self, shape: ReductionNest, cached: int) -> bool:
        """Whether each iteration walks memory in order and does little with what it reads."""
        if shape.trips < self.min_trips or len(shape.inner) > 4 * self.max_operations:
            return False
        if len(shape.reductions[0].inits) * self.unroll_factor > self.max_carried:
            return False
        if cost.operations(shape.inner) > self.max_operations:
            return False
        if not _is_straight(shape):
            return False
        own = {n.buffer for n in shape.before if isinstance(n, Alloca)}
        if any(n.buffer in own for n in (*shape.before, *shape.inner) if isinstance(n, Load)):
            return False
        innermost = shape.reductions[-1].var
        loads = [n for n in shape.inner if isinstance(n, Load)]
        moving = [(n, stride_along(n.buffer, n.index, innermost)) for n in loads]
        if any(stride not in (0, 1) for _, stride in moving):
            return False
        least = self.min_row if any(isinstance(n, For) for n in shape.after) else 0
        return any(
            stride == 1
            and n.buffer.base.nbytes > cached
            and shape.trips * n.buffer.bytes_per_element >= least
            for n, stride in moving
        )

    def _sharing(self, shape: ReductionNest, threads: int) -> For | None:
        """The innermost parallel loop whose iterations all read one of two rows, and all of it.

        Every product of a few rows with those of a matrix takes two loads; so the matrix, which is
        larger, is read once for several of them.
        """
        loads = [n for n in shape.inner if isinstance(n, Load)]
        if len(loads) != 2 or len(shape.reductions) != 1:
            return None
        (reduction,) = shape.reductions
        rows = [stride_along(n.buffer, n.index, reduction.var) for n in loads]
        if rows != [1, 1] or not self.min_shared <= shape.trips or not _is_straight(shape):
            return None
        if cost.operations(shape.inner) > 2 or len(reduction.inits) != 1 or reduction.bounded:
            return None
        for loop in reversed(shape.parallel):
            moved = [n for n in loads if stride_along(n.buffer, n.index, loop.var)]
            if len(moved) != 1 or loop.bounded or loop.level or loop.var.extent < 2:
                continue
            (kept,) = [n for n in loads if n is not moved[0]]
            if kept.buffer.base.nbytes <= moved[0].buffer.base.nbytes:
                continue
            enough = shape.iterations // rows_at_once(loop.var.extent) >= threads
            if enough and is_parallel(loop, [shape.parallel[0]]):
                return loop
        return None

    def _loop(self, shape: ReductionNest, threads: int) -> For | None:
        """The outermost parallel loop that can be jammed and leaves work for all threads."""
        if shape.iterations // self.unroll_factor < threads:
            return None
        variables = {v for r in shape.reductions for e in r.bounds for v in e.variables()}
        loads = [n for n in walk(shape.inner) if isinstance(n, Load)]
        for position, loop in enumerate(shape.parallel):
            var = loop.var
            if loop.bounded or loop.level or var.extent < self.unroll_factor or var in variables:
                continue
            if any(var in e.variables() for p in shape.parallel[position + 1 :] for e in p.bounds):
                continue
            if not any(stride_along(n.buffer, n.index, var) for n in loads):
                continue
            if is_parallel(loop, [shape.parallel[0]]):
                return loop
        return None


def _is_straight(shape: ReductionNest) -> bool:
    """Whether copies of the reduction are straight-line code around which nothing is in order."""
    # The prologue is done for all copies first, and again where the rest needs it.
    if not is_affine_code(shape.inner) or not is_affine_code(shape.before, Alloca):
        return False
    if any(n.writes for n in (*shape.inner, *shape.before)):
        return False
    return not any(isinstance(n, (IndirectStore, Check)) for n in walk(shape.after))
