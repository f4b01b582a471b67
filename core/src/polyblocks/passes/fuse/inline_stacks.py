"""inline-stacks: an array that several nests make a part of each is computed where it is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.known_values import KnownValues
from polyblocks.affine.fusion.producer_inlining import ProducerInlining
from polyblocks.affine.fusion.weighing import against_traffic
from polyblocks.affine.model import (
    IndirectStore,
    Nest,
    Sequence,
    remove_dead,
    replace_values,
    walk,
)
from polyblocks.affine.operation_cost import MAX_NODES
from polyblocks.affine.rewrites.inlining import Candidate
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.users import Item, Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.passes.fuse.stacking import stacked


@dataclass(frozen=True)
class InlineStacksPass(NestPass):
    """As ``inline-producers``, of arrays that point-wise nests make slabs of.

    Where the slab of an element that is read is not known, all are computed and one is chosen. A
    team of threads computes an array with one reader in tiles of that instead.

    Before::

        affine.for %c = 0 to 3 { affine.for %x = 0 to 8 { ... affine.store %v, %b[%c, %x] } }
        affine.for %x = 0 to 8 { ... affine.store %w, %b[3, %x] }
        affine.for %c = 0 to 4 { affine.for %x = 0 to 7 {
          %p = affine.load %b[%c, %x]
          %q = affine.load %b[3, %x + 1] ... } }

    After::

        affine.for %c = 0 to 4 { affine.for %x = 0 to 7 {
          ... %first = arith.cmpi slt, %c, 3
          %p = arith.select %first, %v, %w
          ... %q = ... } }
    """

    name: ClassVar[str] = "inline-stacks"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.KINDS, facts.UNTILED})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PADDING, facts.UNFUSED})
    #: Nodes in one straight-line body; more spills registers and takes long to compile.
    max_nodes: int = MAX_NODES

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Inline every array that is put together of slabs, if that beats memory."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        users, viewed = Users(sequence), sequence.viewed()
        inlining = ProducerInlining(self.name, against_traffic, self.max_nodes)
        for buffer in list(sequence.buffers):
            if buffer.kind != "alloc" or buffer.base is not buffer or buffer in viewed:
                continue
            parts = users.writers(buffer)
            # Lanes of a vector would load from two places, and no tile cuts a loop at the steps.
            wraps = not context.target.vector_bits and not _may_be_tiled(users.readers(buffer))
            whole = stacked(buffer, users, wraps) if len(parts) > 1 else None
            if whole is None:
                continue
            for part in parts:
                users.drop(part)
            users.put([whole], parts[-1])
            candidate = Candidate.of(users, buffer)
            # Of one consumer it may be part of a tile, whose rows stay in a cache.
            least = 1 if context.target.launches_nests else 2
            enough = candidate is not None and len(candidate.consumers) >= least
            found: Nest | None = None
            if candidate is not None and enough:
                found = inlining.inline(users, candidate, context)
            users.drop(whole)
            if candidate is None or found is None:
                for part in parts:
                    users.refresh(part)
                continue
            for part in parts:
                sequence.items.remove(part)
            for consumer in candidate.consumers:
                # Where an element is of a slab that is known.
                known = KnownValues()
                known.block(consumer.body)
                replace_values(consumer.body, known.same)
                eliminate_common(consumer.body)
                remove_dead(consumer.body)
                consumer.replace()
                users.refresh(consumer)


def _may_be_tiled(readers: Iterable[Item]) -> bool:
    """Whether one of these nests may be computed in tiles: it stores at no run-time place."""
    return not all(
        isinstance(reader, Nest) and any(isinstance(n, IndirectStore) for n in walk(reader.body))
        for reader in readers
    )
