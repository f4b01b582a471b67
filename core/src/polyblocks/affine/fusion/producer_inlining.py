"""Producers computed inside of all of their consumers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from polyblocks.affine.access import MAX_STEP, stride_along
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.contraction.products.factors import ON_THE_WAY, has_units, is_product
from polyblocks.affine.fusion.candidates import count_nodes, count_sites, distinct_reads
from polyblocks.affine.fusion.weighing import Weigh, gathered, is_needless
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import (
    Check,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Op,
    remove_dead,
    walk,
)
from polyblocks.affine.rewrites.inlining import Candidate, Producer, inline_into
from polyblocks.affine.rewrites.run_time_places import gathers
from polyblocks.affine.rewrites.simplify import (
    drop_roundings,
    eliminate_common,
)
from polyblocks.affine.steps import stride_between_steps
from polyblocks.affine.subnests import perfect_loops
from polyblocks.affine.users import Users
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class ProducerInlining:
    """Computes producers inside of all of their consumers, where that is worth it.

    Attributes:
        owner: name of the pass, for decisions.
        weigh: whether it costs less to compute elements anew, and the numbers that say so.
        max_nodes: nodes in one straight-line body; more spills registers and takes long to
            compile.
    """

    owner: str
    weigh: Weigh
    max_nodes: int

    def inline(self, users: Users, candidate: Candidate, context: Any) -> Nest | None:
        """Compute the producer inside all of its consumers; returns it if it is needed no more."""
        producer = Producer.of(candidate)
        if producer is None or not candidate.only_nests_read or candidate.buffer.kind == "output":
            return None
        if not all(candidate.may_inline(users, c) for c in candidate.consumers):
            return None
        if not all(producer.is_plain_in(c) for c in candidate.consumers):
            return None
        target = context.target
        if any(not _may_hold(c, producer, target) for c in candidate.consumers):
            return None
        if not self._worth(candidate, producer, context):
            return None
        rounded = any(is_needless(n, target) for n in producer.body)
        for consumer in candidate.consumers:
            gathers_there = gathers(consumer.touching(candidate.buffer), candidate.buffer)
            inline_into(consumer.body, producer, gathered=bool(gathers_there))
            if rounded:
                drop_roundings(consumer.body)
            eliminate_common(consumer.body)
            if rounded or gathers_there:
                # Roundings, or places that nothing is loaded at any more.
                remove_dead(consumer.body)
            consumer.replace()
            users.refresh(consumer)
            consumer.sources = merged_sources([candidate.producer, consumer])
        return candidate.producer

    def _worth(self, candidate: Candidate, producer: Producer, context: Any) -> bool:
        """Whether all consumers compute the producer's elements themselves."""
        times = 0
        for consumer in candidate.consumers:
            hoisted = _keeps_order(consumer) and not context.target.shares_inner_loops
            times += distinct_reads(consumer.body, candidate.buffer, 1, hoisted)
        numel = max(candidate.buffer.numel, 1)
        nodes = max(
            count_nodes(c.body) + count_sites(c, candidate.buffer) * len(producer.body)
            for c in candidate.consumers
        )
        cheap, numbers = self.weigh(candidate, producer, times, context.target)
        once = times <= numel and not gathered(candidate, producer, context.target)[0]
        accept = nodes <= self.max_nodes and (once or cheap)
        accept = accept and not any(
            _scatters(c, candidate, producer)
            or _crosses(c, candidate, producer) > _squares(context.target)
            for c in candidate.consumers
        )
        context.decide(
            self.owner,
            candidate.producer.name,
            "fused" if accept else "kept apart",
            buffer=list(candidate.buffer.shape),
            buffer_bytes=candidate.buffer.nbytes,
            consumers=[c.name for c in candidate.consumers],
            redundancy=times / numel,
            nodes=nodes,
            **numbers,
        )
        return accept


def _keeps_order(consumer: Nest) -> bool:
    """Whether no loop of a nest moves into another one: updates may meet in one element."""
    return any(isinstance(n, IndirectStore) for n in walk(consumer.body))


def _may_hold(consumer: Nest, producer: Producer, target: TargetDescription) -> bool:
    """Whether a consumer that a matrix unit computes still is one, with a producer inside.

    A unit multiplies elements of memory, some of them under conditions, and may convert them. Its
    epilogue loads at places that are known, and checks nothing.
    """
    found = facts_of(consumer).contraction if has_units(target) else None
    if not is_product(found, target):
        return True
    if any(isinstance(n, (Check, IndirectLoad)) for n in producer.body):
        return False
    loads = [o.load for o in found.operands if o.load.buffer is producer.buffer] if found else []
    copies = not any(isinstance(n, Op) and n.name not in ON_THE_WAY for n in producer.body)
    return not loads or (copies and not any(load.where for load in loads))


def _squares(target: TargetDescription) -> float:
    """Squares as wide as a vector that a core transposes in its registers at a time."""
    if target.launches_nests or not target.vector_bits:
        return inf
    return target.vector_registers / max(target.lanes, 1)


def _crosses(consumer: Nest, candidate: Candidate, producer: Producer) -> int:
    """How many loads of an iteration, in order along the innermost loop, would be across instead.

    The producer transposes what it reads. Inside of the consumer that takes a square of registers
    for each such load; apart it takes one at a time.
    """
    loops, body = perfect_loops(consumer.body)
    if not loops:
        return 0
    last = loops[-1].var
    found = 0
    for load in body:
        if not isinstance(load, Load) or load.buffer is not candidate.buffer:
            continue
        if stride_along(load.buffer, load.index, last) != 1:
            continue
        # A row that is held at its ends is in order, but for these.
        strides = (stride_between_steps(n, last) for n in producer.loads_at(load.index))
        found += any(stride is None or abs(stride) > MAX_STEP for stride in strides)
    return found


def _scatters(consumer: Nest, candidate: Candidate, producer: Producer) -> bool:
    """Whether what a contraction reads in order of a copy is not in order in what is copied.

    Squares of what lies along the steps are transposed where they are used.
    """
    if len(producer.body) != 1 or not isinstance(producer.body[0], Load):
        return False
    found = facts_of(consumer).contraction
    for operand in found.operands if found is not None else ():
        load = operand.load
        if found is None or load.buffer is not candidate.buffer:
            continue
        (source,), _ = producer.body_at(load.index)
        assert isinstance(source, Load)
        last = (found.rows if operand.of_rows else found.columns)[-1]
        if stride_along(load.buffer, load.index, last) != 1:
            continue
        sides = (last, *found.reduction.order)
        if not any(stride_along(source.buffer, source.index, v) == 1 for v in sides):
            return True
    return False
