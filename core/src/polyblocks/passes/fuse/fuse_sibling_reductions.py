"""fuse-sibling-reductions: reductions of the same elements compute them in one sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.mlir.source import together
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
from polyblocks.affine.rewrites.inlining import Candidate, Producer, inline_into
from polyblocks.affine.rewrites.merging import fits, merged
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.users import Users
from polyblocks.passes.fuse.fuse_sibling_loops import FuseSiblingLoopsPass, clean, has_siblings
from polyblocks.passes.fuse.fuse_slices import candidate_buffers
from polyblocks.passes.normalize.classify_nests import name_nests
from polyblocks.passes.normalize.normalize_nests import drop_dead_nests


@dataclass(frozen=True)
class FuseSiblingReductionsPass(FuseSiblingLoopsPass):
    """Merge all reductions that read a buffer, and compute its elements inside of them.

    So it is done where every element is then read once: it stays in a register, and the buffer,
    which is larger than the results, goes. Each reduction for itself would have to compute the
    elements again.

    Before::

        affine.for %i .. { affine.for %k .. { ... affine.store %w, %b[%i, %k] } }
        affine.for %i .. { %r = affine.for %k .. { %x = affine.load %b[%i, %k] ... } ... }
        affine.for %i .. { %s = affine.for %k .. { %y = affine.load %b[%i, %k] ... } ... }

    After::

        affine.for %i .. {
          %rs:2 = affine.for %k .. iter_args(...) { ... %w ... } ... }
    """

    name: ClassVar[str] = "fuse-sibling-reductions"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Go through the buffers in the order in which they are produced."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        users = Users(sequence)
        count = 0
        for buffer in candidate_buffers(sequence):
            candidate = Candidate.of(users, buffer)
            body = None if candidate is None else self._merged(users, candidate)
            if candidate is None or body is None:
                continue
            first, *others = candidate.consumers
            context.decide(
                self.name,
                first.name,
                "merged",
                with_=[nest.name for nest in others],
                buffer=list(buffer.shape),
                buffer_bytes=buffer.nbytes,
            )
            first.body = body
            first.sources = together([candidate.producer, *candidate.consumers])
            first.changed = True
            users.refresh(first)
            for nest in (candidate.producer, *others):
                sequence.items.remove(nest)
                users.drop(nest)
            count += 1
        if count:
            drop_dead_nests(sequence)
            name_nests(self.name, sequence, context)

    def _merged(self, users: Users, candidate: Candidate) -> list[Node] | None:
        """All consumers in one, with the producer inside; None if that cannot be, or is more work.

        It stands where the first of them does, so the others must find there what they need.
        """
        producer = Producer.of(candidate)
        if producer is None or candidate.buffer.kind == "output" or not candidate.only_nests_read:
            return None
        first, *others = nests = candidate.consumers
        if not others or not all(_reduces(n) and candidate.may_inline(users, n) for n in nests):
            return None
        if not all(_may_move(users, nest, first, nests) for nest in others):
            return None
        loop, *rest = (clone(nest.body, {}, {})[0] for nest in nests)
        assert isinstance(loop, For)
        count = _loops(loop)
        for other in rest:
            assert isinstance(other, For)
            if not self._worth(loop, other) or not fits(loop, other):
                return None
            loop = merged(loop, other)
            self._merge(loop.body)
        if _loops(loop) != count:
            return None
        nest = Nest([loop], [])
        clean(nest)
        eliminate_common(nest.body)
        times = _times_read(nest.body, candidate.buffer)
        if times > candidate.buffer.numel or not producer.is_plain_in(nest.body):
            return None
        inline_into(nest.body, producer)
        eliminate_common(nest.body)
        remove_dead(nest.body)
        return nest.body


def _reduces(nest: Nest) -> bool:
    """Whether a nest is one loop, in which something is reduced that is no product of matrices."""
    if len(nest.body) != 1 or not isinstance(nest.body[0], For) or not has_siblings(nest):
        return False
    return any(isinstance(n, For) and n.inits for n in walk(nest.body))


def _may_move(users: Users, nest: Nest, first: Nest, together: list[Nest]) -> bool:
    """Whether a nest may run where the first of those does with which it will be one."""
    read, written = ({b.base for b in touched} for touched in (reads(nest), writes(nest)))
    return (
        stands_before(nest, first)
        and not users.written_between(read | written, first, nest, together)
        and not users.read_between(written, first, nest, together)
    )


def _loops(loop: For) -> int:
    """Loops in a loop, itself included."""
    return sum(isinstance(n, For) for n in walk([loop]))


def _times_read(nodes: list[Node], buffer: Buffer, times: int = 1) -> int:
    """How often elements of a buffer are read."""
    total = 0
    for node in nodes:
        if isinstance(node, For):
            total += _times_read(node.body, buffer, times * node.var.extent)
        elif isinstance(node, Load) and node.buffer is buffer:
            total += times
    return total
