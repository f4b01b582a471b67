"""Point-wise consumers computed behind their producer's store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.access import address, divisions
from polyblocks.affine.analysis.coverage import digits, iteration_at
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.contraction.loop_digits import PARTS
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.candidates import count_nodes
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import (
    Buffer,
    For,
    IndirectStore,
    Load,
    Nest,
    Node,
    Sequence,
    Store,
    Value,
    clone,
    reads,
    remove_dead,
    replace_values,
    walk,
    writes,
)
from polyblocks.affine.rewrites.digit_loops import split_at_digits
from polyblocks.affine.rewrites.inlining import Candidate, is_plain
from polyblocks.affine.rewrites.moving import in_the_way, move_before
from polyblocks.affine.rewrites.run_time_places import gathers
from polyblocks.affine.rewrites.simplify import (
    eliminate_common,
)
from polyblocks.affine.subnests import perfect_loops, straight_loops
from polyblocks.affine.users import Users
from polyblocks.target import TargetDescription

#: Ignore prologue outputs below this fraction (1/8) of the buffer.
NEGLIGIBLE = 8


@dataclass(frozen=True)
class EpilogueFusion:
    """Moves point-wise consumers behind the store of what they read, reductions included.

    Attributes:
        owner: name of the pass, for decisions.
        max_nodes: nodes in one straight-line body.
    """

    owner: str
    max_nodes: int

    def fuse(
        self, sequence: Sequence, users: Users, candidate: Candidate, context: Any
    ) -> Nest | None:
        """Move a point-wise consumer behind the producer's store; returns the consumer if so."""
        if not candidate.consumers or candidate.first_reader is not candidate.consumers[0]:
            return None
        consumer = candidate.consumers[0]
        store = candidate.store
        counted = _counted(consumer, candidate.buffer)
        if counted is None:
            return None
        body, loads, found, splits = counted
        substitution = iteration_at(found, candidate.buffer.shape, store.index)
        plain = is_plain(substitution.values(), store.index)
        # Loops that were split for this alone are worth it where heads are stored side by side.
        plain = plain and (context.target.launches_nests or not splits)
        # A consumer of its own that is better computed inside another keeps its freedom.
        keep = (
            candidate.buffer.kind == "output"
            or not candidate.only_nests_read
            or len(candidate.consumers) > 1
        )
        if not plain and not _may_split(candidate, context.target, keep, body, substitution):
            return None
        needs = {b.base for b in reads(consumer)} - {candidate.buffer}
        makes = {b.base for b in writes(consumer)}
        if not _may_interleave(candidate, consumer, needs, makes):
            return None
        moving = in_the_way(sequence, users, candidate.producer, consumer, needs, makes)
        if moving is None or not all(stands_before(n, candidate.producer) for n in moving):
            return None
        if not _reduces(candidate.producer) and _large(moving, candidate.buffer.nbytes):
            # Of point-wise nests and stencils, tiles are made of longer chains if each stays.
            return None
        stores = sum(isinstance(n, Store) for n in walk(candidate.producer.body))
        if stores > 1 and count_nodes(candidate.producer.body) + len(body) > self.max_nodes:
            return None
        move_before(sequence, users, moving, candidate.producer)
        place = _enclosing(candidate.producer.body, store)
        values: dict[Value, Value] = {n.result: store.value for n in loads}
        copy = clone([n for n in body if n not in loads], values, substitution)
        mapping = {n.result: store.value for n in loads}
        replace_values(copy, mapping)
        position = place.index(store)
        place[position + 1 :] = [*copy, *place[position + 1 :]]
        if not keep:
            place.remove(store)
        context.decide(
            self.owner,
            candidate.producer.name,
            "epilogue",
            consumers=[consumer.name],
            buffer=list(candidate.buffer.shape),
            buffer_bytes=candidate.buffer.nbytes,
            kept=keep,
            moved=[nest.name for nest in moving],
        )
        producer = candidate.producer
        if not plain:
            split_at_digits(perfect_loops(producer.body)[0])
        producer.sources = merged_sources([consumer, producer])
        eliminate_common(producer.body)
        remove_dead(producer.body)
        producer.replace()
        users.refresh(producer)
        return consumer

    def fuse_of_contraction(
        self, sequence: Sequence, users: Users, candidate: Candidate, context: Any
    ) -> Nest | None:
        """As :meth:`fuse`, where only that reads a contraction, and keeps no more of it."""
        if len(candidate.consumers) != 1 or not candidate.only_nests_read:
            return None
        if candidate.buffer.kind == "output" or facts_of(candidate.producer).contraction is None:
            return None
        made = sum(b.nbytes for b in writes(candidate.consumers[0]))
        if made > candidate.buffer.nbytes:
            return None
        return self.fuse(sequence, users, candidate, context)


def _counted(
    consumer: Nest, buffer: Buffer
) -> tuple[list[Node], list[Load], dict[Var, tuple[int, int]], bool] | None:
    """A consumer's body, its loads of a buffer, and how its loops count through that.

    Last, whether loops were split at the digits that the loads have of them: the body is a copy
    then. None if the consumer is no straight-line code, or does not count through it.
    """
    for splits in (False, True):
        nodes = clone(consumer.body, {}, {}) if splits else consumer.body
        shape = straight_loops(nodes, IndirectStore)
        if shape is None:
            return None
        if splits:
            if not split_at_digits(shape[0]):
                return None
            shape = straight_loops(nodes, IndirectStore)
            if shape is None:
                return None
        loops, body = shape
        loads = [n for n in walk(body) if isinstance(n, Load) and n.buffer is buffer]
        if gathers(body, buffer) or not loads or any(n.index != loads[0].index for n in loads):
            return None
        found = digits(buffer, loads[0].index, [f.var for f in loops])
        if found is not None:
            return body, loads, found, splits
    return None


def _may_split(
    candidate: Candidate,
    target: TargetDescription,
    keep: bool,
    body: list[Node],
    substitution: Mapping[Var, Expr],
) -> bool:
    """Whether the loops that count through what a reduction makes may become several each.

    Args:
        candidate: the producer and what it makes.
        target: what it is compiled for.
        keep: whether others read that, too.
        body: of the consumer.
        substitution: its iteration by that of the producer.
    """
    plain = all(
        len(e.terms) <= 1 and e.const == 0 and all(factor == 1 for _, factor in e.terms)
        for e in candidate.store.index
    )
    if not plain or not _reduces(candidate.producer):
        return False
    if target.launches_nests:
        return True
    # Sums that others read are stored in any case: then tiles of both do as well.
    lanes = target.vector_bits // (8 * candidate.buffer.bytes_per_element)
    return not keep and _moves(body, substitution, max(1, lanes // PARTS))


def _moves(body: list[Node], substitution: Mapping[Var, Expr], shortest: int) -> bool:
    """Whether a consumer stores in another order than the producer counts, as heads side by side.

    Where it only counts in other steps, tiles of both do as well, and leave more room for what is
    computed.

    Args:
        body: of the consumer.
        substitution: its iteration by that of the producer.
        shortest: elements side by side at least.
    """
    divisors = [
        divisor
        for n in body
        if isinstance(n, Store)
        for _, divisor in divisions(
            address(n.buffer, [e.substitute(substitution) for e in n.index])
        )
    ]
    return bool(divisors) and all(divisor % shortest == 0 for divisor in divisors)


def _reduces(nest: Nest) -> bool:
    """Whether a nest has loops that carry values."""
    return any(isinstance(n, For) and n.inits for n in walk(nest.body))


def _large(nests: list[Nest], nbytes: int) -> bool:
    """Whether these nests write about as many bytes as ``nbytes``."""
    return NEGLIGIBLE * sum(b.nbytes for n in nests for b in writes(n)) > nbytes


def _may_interleave(
    candidate: Candidate, consumer: Nest, needs: set[Buffer], makes: set[Buffer]
) -> bool:
    """Whether the consumer can run in the producer's iterations, without undoing what it does.

    Args:
        candidate: the producer and what it makes.
        consumer: who reads that.
        needs: what it reads besides.
        makes: what it writes.
    """
    producer = candidate.producer
    if not stands_before(consumer, producer) or needs & {b.base for b in writes(producer)}:
        return False
    return not makes & {b.base for b in reads(producer) | writes(producer)}


def _enclosing(nodes: list[Node], target: Node) -> list[Node]:
    """The list of nodes that directly holds ``target``."""
    for node in nodes:
        if node is target:
            return nodes
        if isinstance(node, For):
            found = _enclosing(node.body, target)
            if found:
                return found
    return []
