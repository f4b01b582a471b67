"""schedule-scatters: stores at run-time indices are shared among threads without a race."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.analysis.reductions import COMMUTATIVE, NEED_FLAG, identities
from polyblocks.affine.cost import rates
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.winners import may_race, raced
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import (
    AnyLoad,
    Buffer,
    Check,
    For,
    Index,
    IndirectAccess,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    around,
    clone,
    index_exprs,
    reads,
    writes,
)
from polyblocks.affine.ops import Ops, has_flag
from polyblocks.affine.rewrites.blocks import block_bounds
from polyblocks.affine.rewrites.digit_loops import count_indices
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.subnests import straight_loops
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription

#: Bytes of a number with a value behind it.
WORD = 8
#: Scatters whose updates are made in one loop, at most: each has lines of its own in the caches.
MOST = 4


@dataclass(frozen=True)
class ScheduleScattersPass(NestPass):
    """Choose how the updates of a scatter run in parallel.

    Any two updates may meet in one element, so their loop is serial as it stands. There are
    several ways out, and the cost model takes the fastest one, or none, as it does where the
    target's description lacks a rate:

    * *columns*: a loop whose variable is itself an index of the destination moves outside and is
      cut into as many parts as there are threads. Updates of an element keep their order;
    * *copies*: every thread adds its share of the updates to a copy of the destination, and a
      second nest combines the copies, in a fixed order: the result is the same in every run.
      Scatters with the same loops are made together so;
    * *atomic*: threads update elements by atomic operations, in any order, where there are such;
    * *numbered*: the last of the stores to an element is found by an atomic maximum of the numbers
      of the updates, see :mod:`polyblocks.affine.gpu.winners`.

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
        last: _Copies | None = None
        for nest in list(sequence.nests()):
            if count_indices(nest.body):
                nest.replace()
            scatter = _Scatter.of(nest)
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
                context.decide(self.name, nest.name, "numbered")
                at = sequence.items.index(nest)
                raced_nests = raced(nest, scatter.loops, scatter.body, scatter.store)
                sequence.items[at : at + 1] = raced_nests
                continue
            columns = scatter.columns(level.size, max(target.line, 1))
            parts = 0 if columns is None else -(-columns[0].var.extent // columns[1])
            start = scatter.start()
            choices = scatter.choices(target, parts, start is not None)
            best = min(choices, key=lambda name: choices[name], default="serial")
            if level.size < 2:
                best = "serial"
            context.decide(self.name, nest.name, best, seconds=choices)
            if best == "columns":
                assert columns is not None
                nest.replace(scatter.in_columns(*columns))
            elif best == "copies":
                assert start is not None
                mine = _Copies(level.size)
                if last is not None and last.may_take(sequence, scatter, nest):
                    mine = last
                mine.take(sequence, scatter, nest, start)
                last = mine


def _varies(node: Node, varying: set[Value]) -> bool:
    """Whether what a node makes differs between lanes."""
    results = node.results if isinstance(node, Op) else [getattr(node, "result", None)]
    return any(v in varying for v in results)


@dataclass
class _Scatter:
    """Perfect loops around straight-line code with one store, at run-time indices.

    Attributes:
        loops: the loops, from the outside in.
        body: the straight-line code.
        store: the store.
        loads: what reads the destination, at the same place.
        fixed: for each index of the store its affine expression, or None.
    """

    loops: list[For]
    body: list[Node]
    store: IndirectStore
    loads: list[IndirectLoad]
    fixed: list[Expr | None]

    @classmethod
    def of(cls, nest: Nest) -> _Scatter | None:
        shape = straight_loops(nest.body, Store)
        if shape is None or not shape[0] or any(f.level for f in shape[0]):
            return None
        loops, body = shape
        stores = [n for n in body if isinstance(n, IndirectStore)]
        if len(stores) != 1:
            return None
        (store,) = stores
        loads: list[IndirectLoad] = []
        exprs = index_exprs(body)

        def place(values: list[Value]) -> list[Any]:
            return [exprs.get(v, v) for v in values]

        for n in body:
            if not isinstance(n, AnyLoad) or n.buffer.base is not store.buffer.base:
                continue
            if not isinstance(n, IndirectLoad) or n.buffer is not store.buffer:
                return None
            if place(n.index) != place(store.index):
                return None
            loads.append(n)
        return cls(loops, body, store, loads, [exprs.get(v) for v in store.index])

    @property
    def buffer(self) -> Buffer:
        """The destination."""
        return self.store.buffer

    def choices(self, target: TargetDescription, parts: int, copies: bool) -> dict[str, float]:
        """Seconds of each way to run; empty where the target's description lacks a rate.

        Args:
            target: the chip.
            parts: of the columns; less than two for none.
            copies: whether the destination may be copied.
        """
        level = target.shared_level
        serial = self._seconds(target, level.size)
        nbytes = self.buffer.nbytes
        merge = rates.traffic_seconds(target, 2 * (level.size + 1) * nbytes, level.size * nbytes)
        if serial is None or merge is None:
            return {}
        choices = {"serial": serial}
        if parts > 1:
            choices["columns"] = serial / parts + level.overhead
        if copies:
            choices["copies"] = serial / level.size + merge + 2 * level.overhead
        return choices

    def races(self, target: TargetDescription) -> bool:
        """Whether threads that race for elements are faster than one that makes all updates.

        Those along a loop whose variable is itself an index never meet.
        """
        chip = target.multiprocessor
        if chip is None or rates.unknown_rates(target):
            return False
        if not may_race(self.loops, self.body, self.store):
            return False
        trips = math.prod(f.trips for f in self.loops)
        own = {v for e in self.fixed if e is not None for v in e.variables()}
        apart = math.prod(f.trips for f in self.loops if f.var in own)
        # A board is filled, updated, and read with the elements, which are stored.
        moved = WORD * (4 * self.buffer.numel + 2 * trips)
        racing = (rates.traffic_seconds(target, moved, moved) or 0.0) + (
            2 * target.shared_level.overhead
        )
        return trips // max(apart, 1) * chip.latencies.load_step > racing

    def _seconds(self, target: TargetDescription, threads: int) -> float | None:
        """Time of one thread. Common parts of neighbouring updates are computed once.

        The peak counts all threads' lanes.
        """
        lanes = target.lanes
        *outer, inner = self.loops
        try:
            found = lanes_of(inner) if lanes > 1 and is_parallel(inner, [inner]) else None
        except NoLanesError:
            found = None
        shared = 0
        each = cost.work(self.body) * inner.trips
        if found is not None:
            moving = [
                n for n in self.body if isinstance(n, IndirectStore) or _varies(n, found.varying)
            ]
            shared = cost.work([n for n in self.body if n not in moving])
            each = cost.work(moving) * -(-inner.trips // lanes)
        rounds = math.prod(f.trips for f in outer)
        work = rates.compute_seconds(target, rounds * (shared + each))
        return None if work is None else work * threads * lanes

    def columns(self, threads: int, line: int) -> tuple[For, int] | None:
        """A loop that is an index of the destination, and iterations of it for each thread.

        Parts are whole cache lines, so that two threads do not write the same one.
        """
        best: tuple[For, int] | None = None
        for loop in self.loops:
            own = [e for e in self.fixed if e is not None and e.coefficient(loop.var)]
            alone = len(own) == 1 and len(own[0].terms) == 1
            if not alone:
                continue
            elements = max(1, line // self.buffer.bytes_per_element)
            share = -(-loop.var.extent // threads)
            share = -(-share // elements) * elements
            parts = -(-loop.var.extent // share)
            if best is None or parts >= -(-best[0].var.extent // best[1]):
                best = loop, share
        return best

    def in_columns(self, loop: For, share: int) -> list[Node]:
        """The nest with a loop over parts of ``loop`` outside.

        The rest of it is the innermost loop if it walks along rows, else where it was.
        """
        extent = loop.var.extent
        outer, inner = Var(-(-extent // share)), Var(min(share, extent))
        first, upper = block_bounds(outer, extent, share)
        loops = [(f.var, Var(f.var.extent)) for f in self.loops if f is not loop]
        variables = {old: Expr.of(new) for old, new in loops}
        variables[loop.var] = first + Expr.of(inner)
        nodes = clone(self.body, {}, variables)
        last = self.fixed[-1]
        order = [new for _, new in loops]
        along_rows = last is not None and bool(last.coefficient(loop.var))
        order.insert(len(order) if along_rows else self.loops.index(loop), inner)
        for var in reversed(order):
            nodes = [For(var, nodes, upper=upper if var is inner else ())]
        return [For(outer, nodes)]

    def start(self) -> Op | None:
        """The constant that copies start with; None if the updates cannot be combined later."""
        makers = ops_of(self.body)
        op = makers.get(self.store.value)
        if op is None or op.name not in COMMUTATIVE or len(self.loads) != 1:
            return None
        if op.name in NEED_FLAG and not has_flag(op, "reassoc"):
            return None
        old = self.loads[0].result
        if sum(v is old for n in self.body for v in n.uses) != 1 or old not in op.operands:
            return None
        if sum(v is self.store.value for n in self.body for v in n.uses) != 1:
            return None
        found = identities([op])
        return None if found is None else found[0]

    def merge(self, copies: Buffer, threads: int) -> list[Node]:
        """The copies, one after the other, combined with the destination."""
        makers = ops_of(self.body)
        op = makers[self.store.value]
        dims = [Var(e) for e in self.buffer.shape]
        index = tuple(Expr.of(d) for d in dims)
        total = Value(self.buffer.element)
        body: list[Node] = [Load(total, self.buffer, index)]
        for k in range(threads):
            copy = Value(self.buffer.element)
            body.append(Load(copy, copies, (Expr(k), *index)))
            total = Ops(body).like(op, [total, copy])
        body.append(Store(total, self.buffer, index))
        return around(dims, body)


def drop_repeated_checks(nodes: list[Node]) -> bool:
    """Load and store of one place are checked once; whether something was dropped."""
    seen: set[Value] = set()
    kept: list[Node] = []
    for n in nodes:
        if isinstance(n, Check):
            if n.condition in seen:
                continue
            seen.add(n.condition)
        kept.append(n)
    dropped = len(kept) < len(nodes)
    nodes[:] = kept
    return dropped


class _Copies:
    """Scatters with the same loops; every thread makes its share, to private copies.

    Shared inputs are read once, and while one waits for its store, another one goes on.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.scatters: list[tuple[_Scatter, Buffer, Op]] = []
        self.updates = Nest([], [])

    def may_take(self, sequence: Sequence, scatter: _Scatter, nest: Nest) -> bool:
        """Whether a scatter's updates may be made with those that are there."""
        first = self.scatters[0][0]
        extents = [[f.var.extent for f in s.loops] for s in (first, scatter)]
        if extents[0] != extents[1] or len(self.scatters) >= MOST:
            return False
        read = {b.base for b in reads(nest)} - {scatter.buffer.base}
        items = sequence.items
        between = items[items.index(self.updates) : items.index(nest)]
        if any(read & {b.base for b in writes(item)} for item in between):
            return False
        return stands_before(nest, self.updates)

    def take(self, sequence: Sequence, scatter: _Scatter, nest: Nest, start: Op) -> None:
        """Put the updates with the others, and a nest that combines the copies in their place."""
        buffer, items = scatter.buffer, sequence.items
        copies = Buffer(
            (self.threads, *buffer.shape),
            buffer.element,
            "alloc",
            bytes_per_element=element_bytes(buffer.element),
        )
        at = items.index(nest)
        merge = Nest(scatter.merge(copies, self.threads), [], changed=True)
        merge.name, merge.kind, merge.sources = nest.name, "pointwise", nest.sources
        items[at] = merge
        if not self.scatters:
            self.updates.name, self.updates.kind = f"{nest.name}_parts", nest.kind
            items.insert(at, self.updates)
        self.scatters.append((scatter, copies, start))
        self.updates.sources = merged_sources([self.updates, nest])
        self.updates.replace(self._body())

    def _body(self) -> list[Node]:
        part = Var(self.threads)
        nodes: list[Node] = []
        for scatter, copies, start in self.scatters:
            dims = [Var(e) for e in scatter.buffer.shape]
            fill: list[Node] = []
            value = Ops(fill).like(start, [])
            fill.append(Store(value, copies, (Expr.of(part), *(Expr.of(d) for d in dims))))
            nodes.extend(around(dims, fill))
        return [For(part, [*nodes, self._share(part)])]

    def _share(self, part: Var) -> For:
        """The updates of one thread: a contiguous piece of the outermost loop."""
        loops = self.scatters[0][0].loops
        outermost = loops[0].var
        length = -(-outermost.extent // self.threads)
        first, upper = block_bounds(part, outermost.extent, length)
        piece = Var(length)
        inner = [Var(f.var.extent) for f in loops[1:]]
        which: Value | None = None
        nodes: list[Node] = []
        for scatter, copies, _ in self.scatters:
            own = [f.var for f in scatter.loops]
            variables = {v: Expr.of(i) for v, i in zip(own[1:], inner, strict=True)}
            variables[own[0]] = first + Expr.of(piece)
            if which is None:
                which = Value(scatter.store.index[0].type)
                nodes.append(Index(which, Expr.of(part)))
            body = clone(scatter.body, {}, variables, {scatter.buffer: copies})
            for n in body:
                if isinstance(n, IndirectAccess) and n.buffer is copies:
                    n.index = [which, *n.index]
            nodes.extend(body)
        eliminate_common(nodes)
        drop_repeated_checks(nodes)
        return For(piece, around(inner, nodes), upper=upper)
