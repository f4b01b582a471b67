"""Producers that are computed again where what they make is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from polyblocks.affine.analysis.coverage import digits, iteration_at
from polyblocks.affine.analysis.dataflow import variables_of
from polyblocks.affine.analysis.reductions import EXTENSIONS
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AnyLoad,
    AnyStore,
    Buffer,
    For,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Node,
    Op,
    Opaque,
    Renaming,
    Store,
    Value,
    clone,
    reads,
    reads_from,
    replace_values,
    walk,
    walk_with_trips,
    writes,
)
from polyblocks.affine.ops import is_constant
from polyblocks.affine.rewrites.run_time_places import body_at_values, gathers, known_exprs
from polyblocks.affine.subnests import straight_loops
from polyblocks.affine.users import Users

#: Nodes of a nest into which no more producers are taken to see what it is. Steps of a simulation
#: would be seen through to the first one, from each of them.
LARGE_BODY = 128


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
    _made: dict[IndirectLoad, tuple[list[Node], Value] | None] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(cls, candidate: Candidate) -> Producer | None:
        """The producer of a candidate; None if it is not point-wise."""
        shape = straight_loops(candidate.producer.body, IndirectStore, bounded=True)
        if shape is None:
            return None
        loops, body = shape
        stores = [n for n in body if isinstance(n, Store)]
        if len(stores) != 1:
            return None
        found = digits(candidate.buffer, stores[0].index, [f.var for f in loops])
        assert found is not None
        (store,) = stores
        return cls(candidate.buffer, found, [n for n in body if n is not store], store.value)

    def iteration(self, index: tuple[Expr, ...]) -> dict[Var, Expr]:
        """The values of its loops' variables where it computes the element at ``index``."""
        return iteration_at(self.digits, self.buffer.shape, index)

    def body_at(self, index: tuple[Expr, ...]) -> tuple[list[Node], Value]:
        """The code for the element at ``index``, and its value."""
        values: dict[Value, Value] = {}
        body = clone(self.body, values, self.iteration(index))
        return body, values.get(self.value, self.value)

    def loads_at(self, index: tuple[Expr, ...]) -> list[Load]:
        """The loads of :meth:`body_at` alone."""
        loads = [n for n in self.body if isinstance(n, Load)]
        to = Renaming({}, self.iteration(index) if loads else {}, {})
        return [load.copied(to) for load in loads]

    def body_at_gather(
        self, gather: IndirectLoad, exprs: Mapping[Value, Expr]
    ) -> tuple[list[Node], Value] | None:
        """As :meth:`body_at`, for a place known at run time; None if there is no such code.

        It is built once, to be examined and to replace the gather.
        """
        if gather not in self._made:
            values: dict[Value, Value] = {}
            body = body_at_values(self.body, self.digits, gather, exprs, values)
            self._made[gather] = (
                None if body is None else (body, values.get(self.value, self.value))
            )
        return self._made[gather]

    def is_plain_in(self, consumer: Nest | list[Node]) -> bool:
        """Whether its code at what a consumer reads needs no divisions that are not there yet."""
        used = variables_of(self.body)
        nodes = consumer.body if isinstance(consumer, Nest) else consumer
        accesses: Iterable[Node] = (
            consumer.touching(self.buffer.base) if isinstance(consumer, Nest) else list(walk(nodes))
        )
        if found := gathers(accesses, self.buffer):
            exprs = known_exprs(nodes)
            if any(self.body_at_gather(n, exprs) is None for n in found):
                return False
        for node in accesses:
            if isinstance(node, Load) and node.buffer is self.buffer:
                at = self.iteration(node.index)
                if not is_plain((e for v, e in at.items() if v in used), node.index):
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
    def of(cls, users: Users, buffer: Buffer, gathered: bool = False) -> Candidate | None:
        """None unless one nest writes the whole buffer before any read.

        With ``gathered``, nests that read it at run-time indices are consumers as well.
        """
        writers = users.writers(buffer)
        if len(writers) != 1 or not isinstance(writers[0], Nest):
            return None
        producer = writers[0]
        if reads_from(producer, buffer):
            return None
        stores = [n for n in producer.touching(buffer) if isinstance(n, AnyStore)]
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
            it for it in readers if isinstance(it, Nest) and _reads_plainly(it, buffer, gathered)
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


def inline_into(nodes: list[Node], producer: Producer, gathered: bool = True) -> None:
    """Compute a producer's elements where its buffer is read.

    Args:
        nodes: code that reads it.
        producer: what it is computed by.
        gathered: False if it is known that none is read at a place known at run time only.
    """
    mapping: dict[Value, Value] = {}
    gathered = gathered and bool(gathers(nodes, producer.buffer))
    exprs = known_exprs(nodes) if gathered else {}
    _inline_into(nodes, producer, mapping, exprs)
    replace_values(nodes, mapping)


def with_producers(nest: Nest, users: Users) -> list[Node]:
    """A copy of a nest's code that recomputes inputs without other readers, element by element.

    So it may be when nests have been fused: a point-wise producer is inside if every element that
    it makes is read once, until there are more than :data:`LARGE_BODY` nodes.
    """
    return _with(nest, users, _reads_once, lambda producer: producer)


def with_conversions(nest: Nest, users: Users) -> list[Node]:
    """As :func:`with_producers`, of those that copy or extend numbers, read however often.

    Constant factors are left out: ``hoist-factors`` moves them to what is computed.
    """

    def extends(producer: Producer) -> Producer | None:
        body, value = producer.body, producer.value
        constants = {n.results[0] for n in body if is_constant(n)}
        for node in body:
            if isinstance(node, Op) and node.name == "arith.mulf" and node.results[0] is value:
                scaled = [v for v in node.operands if v not in constants]
                if len(scaled) == 1:
                    body, value = [n for n in body if n is not node], scaled[0]
        body = [n for n in body if not constants.intersection(n.defines)]
        if all(isinstance(n, Load) or getattr(n, "name", "") in EXTENSIONS for n in body):
            return replace(producer, body=body, value=value)
        return None

    def loaded(nodes: list[Node]) -> Iterator[Buffer]:
        return (n.buffer for n in walk(nodes) if isinstance(n, Load) and n.buffer.kind == "alloc")

    return _with(nest, users, loaded, extends)


def _with(
    nest: Nest,
    users: Users,
    read: Callable[[list[Node]], Iterator[Buffer]],
    wanted: Callable[[Producer], Producer | None],
) -> list[Node]:
    """A copy of a nest's code, producers of what it reads inside as they are wanted."""
    body = clone(nest.body, {}, {})
    seen: set[Buffer] = set()
    while True:
        found = next((b for b in read(body) if b not in seen), None)
        if found is None or sum(1 for _ in walk(body)) > LARGE_BODY:
            return body
        seen.add(found)
        candidate = Candidate.of(users, found)
        if candidate is None or not candidate.may_inline(users, nest):
            continue
        producer = Producer.of(candidate)
        producer = None if producer is None else wanted(producer)
        if producer is not None and producer.is_plain_in(body):
            inline_into(body, producer)


def _reads_once(nodes: list[Node]) -> Iterator[Buffer]:
    """The program's own buffers with a load that reads no element twice."""
    for node, times in walk_with_trips(nodes):
        if isinstance(node, Load) and node.buffer.kind == "alloc" and node.buffer.numel >= times:
            yield node.buffer


def _inline_into(
    nodes: list[Node],
    producer: Producer,
    mapping: dict[Value, Value],
    exprs: Mapping[Value, Expr],
) -> None:
    out: list[Node] = []
    known: dict[tuple[Expr, ...], Value] = {}
    for node in nodes:
        if isinstance(node, For):
            _inline_into(node.body, producer, mapping, exprs)
        elif isinstance(node, Load) and node.buffer is producer.buffer:
            if node.index not in known:
                body, known[node.index] = producer.body_at(node.index)
                out.extend(body)
            mapping[node.result] = known[node.index]
            continue
        elif isinstance(node, IndirectLoad) and node.buffer is producer.buffer:
            found = producer.body_at_gather(node, exprs)
            assert found is not None
            out.extend(found[0])
            mapping[node.result] = found[1]
            continue
        out.append(node)
    nodes[:] = out


def is_plain(exprs: Iterable[Expr], index: Iterable[Expr]) -> bool:
    """Whether the expressions have no quotients and remainders but those of the index."""
    there = {atom for e in index for atom, _ in e.terms}
    return all(isinstance(atom, Var) or atom in there for e in exprs for atom, _ in e.terms)


def _reads_plainly(nest: Nest, buffer: Buffer, gathered: bool) -> bool:
    """Whether all reads of the buffer are affine, or ``gathered``, and not through a view."""
    return all(
        (gathered or isinstance(n, Load)) and n.buffer is buffer
        for n in nest.touching(buffer)
        if isinstance(n, AnyLoad)
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
