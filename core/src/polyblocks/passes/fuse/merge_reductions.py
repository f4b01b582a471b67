"""merge-reductions: sums of the same terms are taken in one sweep, which computes them itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.candidates import candidate_buffers
from polyblocks.affine.fusion.siblings import SiblingFusion, has_siblings
from polyblocks.affine.fusion.through_buffers import fuse_through_buffers
from polyblocks.affine.fusion.weighing import against_cache
from polyblocks.affine.model import (
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Sequence,
    clone,
    reads,
    remove_dead,
    walk,
    writes,
)
from polyblocks.affine.operation_cost import MAX_NODES
from polyblocks.affine.rewrites.inlining import Candidate, Producer
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.subnests import parallel_shell
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class MergeReductionsPass(NestPass):
    """Let reductions that read the same buffer read each element of it once, and so need none.

    A short loop around a reduction, over coordinates for example, moves into it, where it is
    unrolled; neighbours that reduce over the same values become one. A point-wise producer for
    them alone is then computed where it is read, as ``fuse-slices`` does it.

    Neighbours that read the same data, do little with it and are results of the program become one
    as well: later on each is cut into parts and rows, which makes loops too long to be merged.

    Before::

        affine.for %i .. { affine.for %k .. { ... affine.store %w, %b[%i, %k] } }
        affine.for %i .. { affine.for %c = 0 to 2 {
          %r = affine.for %k .. iter_args(%s = %z) {
            %w = affine.load %b[%i, %k] ; %x = affine.load %a[%k, %c] ... }
          affine.store %r, %d[%i, %c] } }

    After::

        affine.for %i .. {
          %r:2 = affine.for %k .. iter_args(%s = %z, %t = %z) {
            ... %w ... affine.load %a[%k, 0] ... affine.load %a[%k, 1] ... }
          affine.store %r#0, %d[%i, 0] ; affine.store %r#1, %d[%i, 1] }
    """

    name: ClassVar[str] = "merge-reductions"
    needs: ClassVar[frozenset[str]] = frozenset(
        {facts.NESTS, facts.REDUCTIONS, facts.KINDS, facts.UNTILED}
    )
    breaks: ClassVar[frozenset[str]] = frozenset({facts.UNFUSED})
    #: Iterations of a short loop: each carries values of its own.
    max_copies: int = 8
    #: Elements of a reduction that need no other threads than one.
    alone: int = 1 << 14
    #: Operations, accesses and values of a reduction that two results become, at most: one with
    #: more is not unrolled and jammed.
    max_operations: int = 8
    max_accesses: int = 8
    max_carried: int = 2
    #: Nodes in one straight-line body; more spills registers and takes long to compile.
    max_nodes: int = MAX_NODES

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Merge the readers of every buffer that its readers could do without."""
        options = context.options
        if options.polyblocks_disable_affine_fusion:
            return
        if options.polyblocks_disable_reduce_reduce_fusion:
            return
        changed = False
        users: Users | None = None
        for buffer in candidate_buffers(sequence):
            users = users or Users(sequence)
            candidate = Candidate.of(users, buffer)
            if candidate is None or not _is_needless(candidate):
                continue
            for consumer in candidate.consumers:
                copies = self._move_inside(consumer, buffer, context.target.shared_level.size)
                if copies:
                    changed, users = True, None
                    context.decide(self.name, consumer.name, "moved inside", copies=copies)
            first = candidate.consumers[0]
            merged = SiblingFusion().merge_nests(sequence, candidate.consumers)
            if merged:
                changed, users = True, None
                eliminate_common(first.body)
                context.decide(self.name, first.name, "merged", loops=merged)
        if changed:
            fuse_through_buffers(sequence, self.name, against_cache, self.max_nodes, context)
        if not context.target.launches_nests:
            self._merge_results(sequence, context)

    def _merge_results(self, sequence: Sequence, context: Any) -> None:
        """Merge reductions of the same data, which no other reduction needs or makes."""
        siblings = SiblingFusion(self.max_operations, self.max_accesses)
        used = {b.base for item in sequence.items for b in reads(item)}
        nests = list(sequence.nests())
        reduced = {b.base for n in nests if ReductionNest.of(n) is not None for b in writes(n)}

        def is_result(nest: Nest) -> bool:
            if ReductionNest.of(nest) is None or any(b.base in reduced for b in reads(nest)):
                return False
            return not any(b.base in used or b.base.kind == "alloc" for b in writes(nest))

        for nest in nests:
            if not is_result(nest):
                continue
            first = siblings.partner(sequence, sequence.items.index(nest))
            if first is None or not is_result(first):
                continue
            both = [n for n in walk([*first.body, *nest.body]) if isinstance(n, For) and n.inits]
            if sum(len(loop.inits) for loop in both) <= self.max_carried:
                siblings.join(sequence, first, nest)
                eliminate_common(first.body)
                context.decide(self.name, first.name, "merged", with_=[nest.name])

    def _move_inside(self, nest: Nest, buffer: Buffer, threads: int) -> int:
        """Unroll the innermost loop around a reduction inside of it; how many copies there are."""
        shape = ReductionNest.of_nodes(nest.body)
        loops, body = parallel_shell(nest.body)
        if shape is None or not loops:
            return 0
        loop = loops[-1]
        copies = loop.var.extent
        if not 2 <= copies <= self.max_copies or loop.bounded or loop.tile or loop.level:
            return 0
        loads = [n for n in walk(body) if isinstance(n, Load) and n.buffer is buffer]
        if any(loop.var in e.variables() for n in loads for e in n.index):
            return 0
        if shape.iterations // copies < threads and copies * shape.trips > self.alone:
            return 0
        if not is_parallel(loop, nest.body):
            return 0
        new: list[Node] = []
        for k in range(copies):
            new += clone(body, {}, {loop.var: Expr(k)})
        SiblingFusion().merge_loops(new)
        if sum(isinstance(n, For) for n in new) != 1:
            return 0
        body = nest.body
        if len(loops) > 1:
            loops[-2].body = new
        else:
            body = [For(Var(1), new)]
        eliminate_common(body)
        remove_dead(body)
        nest.replace(body)
        return copies


def _is_needless(candidate: Candidate) -> bool:
    """Whether what a point-wise nest makes is only read by reductions, element by element."""
    if candidate.buffer.kind != "alloc" or not candidate.only_nests_read:
        return False
    producer = Producer.of(candidate)
    if producer is None or not candidate.consumers:
        return False
    if not all(producer.is_plain_in(c) for c in candidate.consumers):
        return False
    return all(has_siblings(c) and _reduces(c.body, candidate.buffer) for c in candidate.consumers)


def _reduces(nodes: list[Node], buffer: Buffer) -> bool:
    """Whether all loads of a buffer are in loops that carry values."""
    for node in nodes:
        if isinstance(node, Load) and node.buffer is buffer:
            return False
        if isinstance(node, For) and not node.inits and not _reduces(node.body, buffer):
            return False
    return True
