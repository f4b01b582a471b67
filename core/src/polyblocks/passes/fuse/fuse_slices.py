"""fuse-slices: producers are computed where and as much as their consumers need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.coverage import digits, iteration_at, perfect_loops
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.mlir.source import together
from polyblocks.affine.model import (
    Buffer,
    For,
    Index,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Node,
    Opaque,
    Sequence,
    Store,
    Value,
    clone,
    reads,
    reads_from,
    remove_dead,
    replace_values,
    walk,
    writes,
)
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.tiles.fusion_stages import slots
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass
from polyblocks.passes.normalize.classify_nests import name_nests
from polyblocks.passes.normalize.normalize_nests import drop_dead_nests
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class FuseSlicesPass(NestPass):
    """Fuse producers into consumers through the buffers between them.

    Two forms, first the one for all buffers, then the other:

    * *slice*: the producer is point-wise (small windows are, once unrolled); every load of the
      buffer becomes the producer's body at that index. An element that is read several times is
      computed several times, if that is cheaper than to load it from a first-level cache;
    * *epilogue*: the consumer is point-wise and reads the buffer just where it is produced; its
      body moves behind the producer's, reductions included.

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
        for form in (self._slice, self._epilogue):
            for buffer in _candidates(sequence):
                candidate = Candidate.of(users, buffer)
                gone = form(users, candidate, context) if candidate is not None else None
                if gone is not None:
                    sequence.items.remove(gone)
                    users.drop(gone)
        drop_dead_nests(sequence)
        name_nests(self.name, sequence, context)

    def _slice(self, users: Users, candidate: Candidate, context: Any) -> Nest | None:
        """Compute the producer inside all of its consumers; returns it if it is needed no more."""
        producer = Producer.of(candidate)
        if producer is None or not candidate.only_nests_read or candidate.buffer.kind == "output":
            return None
        if not all(candidate.may_inline(users, c) for c in candidate.consumers):
            return None
        if not all(producer.is_plain_in(c) for c in candidate.consumers):
            return None
        if not self._worth(candidate, producer, context):
            return None
        for consumer in candidate.consumers:
            _inline(consumer, producer)
            eliminate_common(consumer.body)
            remove_dead(consumer.body)
            consumer.changed = True
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
            _nodes(c.body) + _sites(c.body, candidate.buffer) * len(producer.body)
            for c in candidate.consumers
        )
        cheap, numbers = self.is_cheaper(candidate, producer, times, context.target)
        accept = nodes <= self.max_nodes and (times <= numel or cheap)
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
        del target
        reads_ = times / max(candidate.buffer.numel, 1)
        body = slots(producer.body)
        anew = reads_ * body
        # Computed once, stored, and loaded at every read.
        stored = body + 2.0 + reads_
        return anew <= stored, {"slots_anew": anew, "slots_stored": stored}

    def _epilogue(self, users: Users, candidate: Candidate, context: Any) -> Nest | None:
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
        if not _is_plain(substitution.values(), store.index):
            return None
        if not candidate.may_move_up(users, consumer):
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
        )
        producer = candidate.producer
        _absorb(producer, consumer)
        eliminate_common(producer.body)
        remove_dead(producer.body)
        producer.changed = True
        users.refresh(producer)
        return consumer


@dataclass
class Producer:
    """A point-wise producer.

    Attributes:
        buffer: what it makes.
        digits: where in the buffer its loops count, see :func:`coverage.digits`.
        body: what it computes for one element.
        value: the element.
    """

    buffer: Buffer
    digits: dict[Var, tuple[int, int]]
    body: list[Node]
    value: Value

    @classmethod
    def of(cls, candidate: Candidate) -> Producer | None:
        """The producer of a candidate; None if it is not point-wise."""
        loops, body = perfect_loops(candidate.producer.body)
        if any(isinstance(n, (For, IndirectStore)) for n in body):
            return None
        stores = [n for n in body if isinstance(n, Store)]
        if len(stores) != 1:
            return None
        found = digits(candidate.buffer, stores[0].index, [f.var for f in loops])
        assert found is not None
        (store,) = stores
        return cls(candidate.buffer, found, [n for n in body if n is not store], store.value)

    def body_at(self, index: tuple[Expr, ...]) -> tuple[list[Node], Value]:
        """The code for the element at ``index``, and its value."""
        values: dict[Value, Value] = {}
        body = clone(self.body, values, iteration_at(self.digits, self.buffer.shape, index))
        return body, values.get(self.value, self.value)

    def is_plain_in(self, consumer: Nest) -> bool:
        """Whether its code at what a consumer reads needs no divisions that are not there yet."""
        used = {v for e in _exprs(self.body) for v in e.variables()}
        for node in walk(consumer.body):
            if isinstance(node, Load) and node.buffer is self.buffer:
                at = iteration_at(self.digits, self.buffer.shape, node.index)
                if not _is_plain((e for v, e in at.items() if v in used), node.index):
                    return False
        return True


@dataclass
class Candidate:
    """One buffer, the nest that writes it and the nests that read it."""

    buffer: Buffer
    producer: Nest
    store: Store
    consumers: list[Nest]
    first_reader: Nest | Opaque | None
    only_nests_read: bool

    @classmethod
    def of(cls, users: Users, buffer: Buffer) -> Candidate | None:
        """None unless one nest writes the buffer, as a whole, before anybody reads it."""
        writers = users.writers(buffer)
        if len(writers) != 1 or not isinstance(writers[0], Nest):
            return None
        producer = writers[0]
        if reads_from(producer, buffer):
            return None
        stores = [
            n
            for n in walk(producer.body)
            if isinstance(n, (Store, IndirectStore)) and n.buffer.base is buffer
        ]
        if len(stores) != 1 or not isinstance(stores[0], Store) or stores[0].buffer is not buffer:
            return None
        loops = _loops_around(producer.body, stores[0])
        if loops is None or digits(buffer, stores[0].index, [f.var for f in loops]) is None:
            return None
        if any(f.inits or f.bounded for f in loops):
            return None
        readers = users.readers(buffer)
        if readers and users.before(readers[0], producer):
            return None
        consumers = [
            it for it in readers if isinstance(it, Nest) and _reads_plainly(it.body, buffer)
        ]
        return cls(
            buffer,
            producer,
            stores[0],
            consumers,
            readers[0] if readers else None,
            len(consumers) == len(readers) and bool(readers),
        )

    def may_inline(self, users: Users, consumer: Nest) -> bool:
        """Whether what the producer reads is still the same at the consumer, and inside it."""
        inputs = {b.base for b in reads(self.producer)}
        if inputs & {b.base for b in writes(consumer)}:
            return False
        return not users.written_between(inputs, self.producer, consumer)

    def may_move_up(self, users: Users, consumer: Nest) -> bool:
        """Whether the consumer can run right after the producer, in the same iteration."""
        if not stands_before(consumer, self.producer):
            return False
        needs = {b.base for b in reads(consumer)} - {self.buffer}
        makes = {b.base for b in writes(consumer)}
        if users.written_between(needs | makes, self.producer, consumer):
            return False
        if users.read_between(makes, self.producer, consumer):
            return False
        # Iterations of the fused nest are interleaved: neither may touch what the other writes.
        if needs & {b.base for b in writes(self.producer)}:
            return False
        return not makes & ({b.base for b in reads(self.producer) | writes(self.producer)})


def _candidates(sequence: Sequence) -> list[Buffer]:
    """Buffers in the order in which they are produced."""
    seen: dict[Buffer, None] = {}
    for item in sequence.items:
        if isinstance(item, Nest):
            for n in walk(item.body):
                if isinstance(n, Store) and n.buffer.kind in ("alloc", "output"):
                    seen.setdefault(n.buffer)
    based = sequence.viewed()
    return [b for b in seen if b not in based]


def _exprs(body: list[Node]) -> Iterator[Expr]:
    """The places and numbers in straight-line code."""
    for node in body:
        if isinstance(node, Load):
            yield from node.index
        elif isinstance(node, Index):
            yield node.expr


def _is_plain(exprs: Iterable[Expr], index: Iterable[Expr]) -> bool:
    """Whether the expressions have no quotients and remainders but those of the index."""
    there = {atom for e in index for atom, _ in e.terms}
    return all(isinstance(atom, Var) or atom in there for e in exprs for atom, _ in e.terms)


def _inline(consumer: Nest, producer: Producer) -> None:
    mapping: dict[Value, Value] = {}
    _inline_into(consumer.body, producer, mapping)
    replace_values(consumer.body, mapping)


def _inline_into(nodes: list[Node], producer: Producer, mapping: dict[Value, Value]) -> None:
    out: list[Node] = []
    known: dict[tuple[Expr, ...], Value] = {}
    for node in nodes:
        if isinstance(node, For):
            _inline_into(node.body, producer, mapping)
        elif isinstance(node, Load) and node.buffer is producer.buffer:
            if node.index not in known:
                body, known[node.index] = producer.body_at(node.index)
                out.extend(body)
            mapping[node.result] = known[node.index]
            continue
        out.append(node)
    nodes[:] = out


def _absorb(into: Nest, other: Nest) -> None:
    """The fused nest also stands for the source ops of the other one."""
    into.sources = together([other, into])


def _distinct_reads(nodes: list[Node], buffer: Buffer, times: int) -> int:
    total = 0
    seen: set[tuple[Expr, ...]] = set()
    for node in nodes:
        if isinstance(node, For):
            total += _distinct_reads(node.body, buffer, times * node.var.extent)
        elif isinstance(node, Load) and node.buffer is buffer and node.index not in seen:
            seen.add(node.index)
            total += times
    return total


def _sites(nodes: list[Node], buffer: Buffer) -> int:
    return len({n.index for n in walk(nodes) if isinstance(n, Load) and n.buffer is buffer})


def _nodes(nodes: list[Node]) -> int:
    return sum(1 for _ in walk(nodes))


def _reads_plainly(nodes: list[Node], buffer: Buffer) -> bool:
    """Whether all reads of the buffer are affine, and not through a view."""
    return all(
        isinstance(n, Load) and n.buffer is buffer
        for n in walk(nodes)
        if isinstance(n, (Load, IndirectLoad)) and n.buffer.base is buffer
    )


def _loops_around(nodes: list[Node], target: Node) -> list[For] | None:
    for node in nodes:
        if node is target:
            return []
        if isinstance(node, For):
            inner = _loops_around(node.body, target)
            if inner is not None:
                return [node, *inner]
    return None


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
