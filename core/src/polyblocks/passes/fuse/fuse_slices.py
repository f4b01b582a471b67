"""fuse-slices: producers are computed where and as much as their consumers need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import stride_along
from polyblocks.affine.analysis.coverage import digits, iteration_at, perfect_loops
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.contraction.factors import ON_THE_WAY, has_units, is_product
from polyblocks.affine.element import dtype_of
from polyblocks.affine.expr import Expr
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.mlir.source import together
from polyblocks.affine.model import (
    AnyLoad,
    Buffer,
    For,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Node,
    Op,
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
from polyblocks.affine.rewrites.inlining import Candidate, Producer, inline_into, is_plain
from polyblocks.affine.rewrites.moving import in_the_way, move_before
from polyblocks.affine.rewrites.run_time_places import gathers, known_exprs
from polyblocks.affine.rewrites.simplify import (
    drop_roundings,
    eliminate_common,
    need_not_round,
)
from polyblocks.affine.tiles.fusion_stages import slots
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass
from polyblocks.passes.fuse.recomputing import against_memory
from polyblocks.passes.normalize.classify_nests import name_nests
from polyblocks.passes.normalize.normalize_nests import drop_dead_nests
from polyblocks.target import TargetDescription

#: A way to fuse: returns the nest that is needed no more.
_Form = Callable[[Sequence, Users, Candidate, Any], "Nest | None"]

#: Operations that extend integers.
EXTENSIONS = ("arith.extsi", "arith.extui")
#: Ignore prologue outputs below this fraction (1/8) of the buffer.
SMALL = 8


@dataclass(frozen=True)
class FuseSlicesPass(NestPass):
    """Fuse producers into consumers through the buffers between them.

    Two forms, first the one for all buffers, then the other:

    * *slice*: the producer is point-wise (small windows are, once unrolled); every load of the
      buffer becomes the producer's body at that index. An element that is read several times is
      computed several times, if that is cheaper than to load it from a first-level cache. Where the
      index is known at run time only, so are those of the producer's loads then; elements that
      no index selects are not computed;
    * *epilogue*: the consumer is point-wise and reads the buffer just where it is produced; its
      body moves behind the producer's, reductions included. Its other inputs are computed
      before the producer then, unless the producer reduces nothing and that is large.

    A rounding that is not the program's is left out where its result is extended again, unless a
    unit multiplies what is rounded.

    On targets with a grid of blocks the epilogues of contractions come first, so that what is kept
    of them is no wider than the program wants it, and they may count with other loops than the
    contraction: these are split then.

    Before::

        affine.for %i = 0 to 9 { ... affine.store %v, %b[%i] }
        affine.for %i = 0 to 8 {
          %x = affine.load %b[%i]
          %y = affine.load %b[%i + 1]
          ... }

    After: one nest that computes ``%v`` for ``%i`` and for ``%i + 1``; ``%b`` is gone.
    """

    name: ClassVar[str] = "fuse-slices"
    #: Nodes in one straight-line body; more spills registers and takes long to compile.
    max_nodes: int = 600

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Fuse through every buffer, in the order in which they are produced."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        users = Users(sequence)
        # Slices first: what can be computed inside its consumers leaves nothing for an epilogue.
        forms = [self._slice, self._epilogue]
        if context.target.multiprocessor is not None:
            forms.insert(0, self._of_contraction)
        for form in forms:
            self._through_all(sequence, users, form, context)
        drop_dead_nests(sequence)
        name_nests(self.name, sequence, context)

    def _through_all(self, sequence: Sequence, users: Users, form: _Form, context: Any) -> None:
        """Offer every buffer to a form; again to slices where consumers have become fewer."""
        asked: dict[Buffer, list[Nest]] = {}
        again, copies = True, form != self._slice
        while again:
            again = False
            for buffer in candidate_buffers(sequence):
                candidate = Candidate.of(users, buffer, gathered=form == self._slice)
                if candidate is None or asked.get(buffer) == candidate.consumers:
                    continue
                if not copies and _copies_again(candidate):
                    continue
                asked[buffer] = candidate.consumers
                gone = form(sequence, users, candidate, context)
                if gone is not None:
                    sequence.items.remove(gone)
                    users.drop(gone)
                    again = form == self._slice
            if not again and not copies:
                again = copies = True

    def _slice(
        self, sequence: Sequence, users: Users, candidate: Candidate, context: Any
    ) -> Nest | None:
        """Compute the producer inside all of its consumers; returns it if it is needed no more."""
        del sequence
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
        rounded = any(_needless(n, target) for n in producer.body)
        for consumer in candidate.consumers:
            gathered = gathers(consumer.touching(candidate.buffer), candidate.buffer)
            inline_into(consumer.body, producer)
            if rounded:
                drop_roundings(consumer.body)
            eliminate_common(consumer.body)
            if rounded or gathered:
                # Roundings, or places that nothing is loaded at any more.
                remove_dead(consumer.body)
            consumer.replace()
            users.refresh(consumer)
            _absorb(consumer, candidate.producer)
        return candidate.producer

    def _worth(self, candidate: Candidate, producer: Producer, context: Any) -> bool:
        """Whether all consumers compute the producer's elements themselves."""
        times = 0
        for consumer in candidate.consumers:
            times += _distinct_reads(consumer.body, candidate.buffer, 1)
        numel = max(candidate.buffer.numel, 1)
        nodes = max(
            _nodes(c.body) + _sites(c, candidate.buffer) * len(producer.body)
            for c in candidate.consumers
        )
        cheap, numbers = self.is_cheaper(candidate, producer, times, context.target)
        once = times <= numel and not self.gathered(candidate, producer, context.target)[0]
        accept = nodes <= self.max_nodes and (once or cheap)
        accept = accept and not any(_scatters(c, candidate, producer) for c in candidate.consumers)
        context.decide(
            self.name,
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

    def is_cheaper(
        self, candidate: Candidate, producer: Producer, times: int, target: TargetDescription
    ) -> tuple[bool, dict[str, float]]:
        """Whether computing an element anew for each read costs less than a cache does."""
        reads_ = times / max(candidate.buffer.numel, 1)
        # A load extends integers by itself, and steps of a unit have narrow operands.
        free = EXTENSIONS if target.multiprocessor is None else (*EXTENSIONS, "arith.extf")
        work = [
            n
            for n in producer.body
            if getattr(n, "name", "") not in free and not _needless(n, target)
        ]
        body = slots(work)
        found, more = self.gathered(candidate, producer, target)
        anew = reads_ * body + found + more
        if _loads_are_there(candidate, producer):
            anew = reads_ * slots([n for n in work if not isinstance(n, Load)])
        # Computed once, stored, and loaded at every read.
        stored = body + 2.0 + reads_ + found
        numbers = {"slots_anew": anew, "slots_stored": stored}
        if anew > stored and found:
            # No tile holds what is read at run-time places: it goes through memory.
            seconds = against_memory(candidate, producer, times, more, target)
            if seconds is not None:
                numbers |= seconds
                return seconds["recompute_seconds"] <= seconds["traffic_seconds"], numbers
        return anew <= stored, numbers

    def gathered(
        self, candidate: Candidate, producer: Producer, target: TargetDescription
    ) -> tuple[float, float]:
        """Slots of the gathers of a buffer, for each of its elements, and of more of them anew."""
        # Each lane of a vector loads by itself.
        lanes = max(target.vector_bits // 32, 1) if target.multiprocessor is None else 1
        numel = max(candidate.buffer.numel, 1)
        times = more = 0
        for consumer in candidate.consumers:
            if not gathers(consumer.touching(candidate.buffer), candidate.buffer):
                continue
            exprs = known_exprs(consumer.body)
            for gather, trips in _with_trips(consumer.body, 1):
                if isinstance(gather, IndirectLoad) and gather.buffer is candidate.buffer:
                    body, _ = producer.body_at_gather(gather, exprs) or ([], None)
                    times += trips
                    more += trips * (sum(isinstance(n, IndirectLoad) for n in body) - 1)
        return times * lanes / numel, more * lanes / numel

    def _of_contraction(
        self, sequence: Sequence, users: Users, candidate: Candidate, context: Any
    ) -> Nest | None:
        """As :meth:`_epilogue`, where only that reads a contraction, and keeps no more of it."""
        if len(candidate.consumers) != 1 or not candidate.only_nests_read:
            return None
        if candidate.buffer.kind == "output" or facts_of(candidate.producer).contraction is None:
            return None
        made = sum(b.nbytes for b in writes(candidate.consumers[0]))
        if made > candidate.buffer.nbytes:
            return None
        return self._epilogue(sequence, users, candidate, context)

    def _epilogue(
        self, sequence: Sequence, users: Users, candidate: Candidate, context: Any
    ) -> Nest | None:
        """Move a point-wise consumer behind the producer's store; returns the consumer if so."""
        if not candidate.consumers or candidate.first_reader is not candidate.consumers[0]:
            return None
        consumer = candidate.consumers[0]
        store = candidate.store
        loops, body = perfect_loops(consumer.body)
        if any(isinstance(n, (For, IndirectStore)) for n in body):
            return None
        if any(f.inits or f.bounded for f in loops):
            return None
        variables = [f.var for f in loops]
        loads = [n for n in walk(body) if isinstance(n, Load) and n.buffer is candidate.buffer]
        others = [
            n for n in walk(body) if isinstance(n, IndirectLoad) and n.buffer is candidate.buffer
        ]
        if others or not loads or any(n.index != loads[0].index for n in loads):
            return None
        found = digits(candidate.buffer, loads[0].index, variables)
        if found is None:
            return None
        substitution = iteration_at(found, candidate.buffer.shape, store.index)
        plain = is_plain(substitution.values(), store.index)
        if not plain and not _may_split(candidate, context.target):
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
        # A consumer of its own that is better computed inside another keeps its freedom.
        keep = (
            candidate.buffer.kind == "output"
            or not candidate.only_nests_read
            or len(candidate.consumers) > 1
        )
        stores = sum(isinstance(n, Store) for n in walk(candidate.producer.body))
        if stores > 1 and _nodes(candidate.producer.body) + len(body) > self.max_nodes:
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
            self.name,
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
        _absorb(producer, consumer)
        eliminate_common(producer.body)
        remove_dead(producer.body)
        producer.replace()
        users.refresh(producer)
        return consumer


def _needless(node: Node, target: TargetDescription) -> bool:
    """Whether a rounding is not the program's, and no unit multiplies what is rounded."""
    if not isinstance(node, Op) or not need_not_round(node):
        return False
    dtype = dtype_of(node.results[0].type).array
    return not any(dtype in unit.both for unit in target.matrix_units)


def _may_hold(consumer: Nest, producer: Producer, target: TargetDescription) -> bool:
    """Whether a consumer that a matrix unit computes still is one, with a producer inside.

    A unit multiplies elements of memory, some of them under conditions, and may convert them.
    """
    found = facts_of(consumer).contraction if has_units(target) else None
    if not is_product(found, target):
        return True
    loads = [o.load for o in found.operands if o.load.buffer is producer.buffer] if found else []
    copies = not any(isinstance(n, Op) and n.name not in ON_THE_WAY for n in producer.body)
    return not loads or (copies and not any(load.where for load in loads))


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


def _may_split(candidate: Candidate, target: TargetDescription) -> bool:
    """Whether the loops that count through what a contraction makes may become several each."""
    if target.multiprocessor is None or facts_of(candidate.producer).contraction is None:
        return False
    return all(
        len(e.terms) <= 1 and e.const == 0 and all(factor == 1 for _, factor in e.terms)
        for e in candidate.store.index
    )


def _reduces(nest: Nest) -> bool:
    """Whether a nest has loops that carry values."""
    return any(isinstance(n, For) and n.inits for n in walk(nest.body))


def _large(nests: list[Nest], nbytes: int) -> bool:
    """Whether these nests write about as many bytes as ``nbytes``."""
    return SMALL * sum(b.nbytes for n in nests for b in writes(n)) > nbytes


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


def candidate_buffers(sequence: Sequence) -> list[Buffer]:
    """Buffers in the order in which they are produced."""
    seen: dict[Buffer, None] = {}
    for nest in sequence.nests():
        written = nest.effects()[1]
        if len(written) > 1:
            # Of several, in order.
            stores = (n.buffer for n in walk(nest.body) if isinstance(n, Store))
            seen |= dict.fromkeys(b for b in stores if b.kind in ("alloc", "output"))
        else:
            seen |= dict.fromkeys(b for b in written if b.kind in ("alloc", "output"))
    based = sequence.viewed()
    return [b for b in seen if b not in based]


def _absorb(into: Nest, other: Nest) -> None:
    """The fused nest also stands for the source ops of the other one."""
    into.sources = together([other, into])


def _distinct_reads(nodes: list[Node], buffer: Buffer, times: int) -> int:
    total = 0
    seen: set[tuple[Expr | Value, ...]] = set()
    for node in nodes:
        if isinstance(node, For):
            total += _distinct_reads(node.body, buffer, times * node.var.extent)
        elif (place := _place(node, buffer)) is not None and place not in seen:
            seen.add(place)
            total += times
    return total


def _sites(nest: Nest, buffer: Buffer) -> int:
    return len({_place(n, buffer) for n in nest.touching(buffer)} - {None})


def _place(node: Node, buffer: Buffer) -> tuple[Expr | Value, ...] | None:
    """Where a node loads an element of a buffer, if it does."""
    if isinstance(node, AnyLoad) and node.buffer is buffer:
        return tuple(node.index)
    return None


def _loads_are_there(candidate: Candidate, producer: Producer) -> bool:
    """Whether all consumers load already what the producer's code would load in them."""
    loads = [n for n in producer.body if isinstance(n, Load)]
    loaded = {n.buffer.base for n in loads}
    for consumer in candidate.consumers:
        there = {
            (n.buffer, n.index, n.where)
            for base in loaded
            for n in consumer.touching(base)
            if isinstance(n, Load)
        }
        for node in consumer.touching(candidate.buffer):
            if isinstance(node, Load) and node.buffer is candidate.buffer:
                at = producer.iteration(node.index)
                for load in loads:
                    index, where = (
                        tuple([e.substitute(at) for e in exprs])
                        for exprs in (load.index, load.where)
                    )
                    if (load.buffer, index, where) not in there:
                        return False
            elif isinstance(node, IndirectLoad) and node.buffer is candidate.buffer:
                return False
    return True


def _copies_again(candidate: Candidate) -> bool:
    """Whether a copy of what the program computes is read several times.

    Its producer can run where it is packed, once for all readers.
    """
    _, body = perfect_loops(candidate.producer.body)
    if len(body) != 2 or not isinstance(body[0], Load) or body[0].buffer.kind != "alloc":
        return False
    times = sum(_distinct_reads(c.body, candidate.buffer, 1) for c in candidate.consumers)
    return times > candidate.buffer.numel


def _with_trips(nodes: list[Node], trips: int) -> Iterator[tuple[Node, int]]:
    """All nodes but loops, with how often they run."""
    for node in nodes:
        if isinstance(node, For):
            yield from _with_trips(node.body, trips * node.var.extent)
        else:
            yield node, trips


def _nodes(nodes: list[Node]) -> int:
    return sum(1 for _ in walk(nodes))


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
