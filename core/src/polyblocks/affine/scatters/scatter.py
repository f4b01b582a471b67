"""A nest of updates at run-time indices, what it costs, and its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.analysis.reductions import COMMUTATIVE, NEED_FLAG, identities
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import ANY_PLACE, CACHE_SHARE, HANDED_OVER, LISTED_UPDATE
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.winners import may_race, moved_bytes
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
    Store,
    Value,
    around,
    clone,
    index_exprs,
)
from polyblocks.affine.ops import Ops, has_flag
from polyblocks.affine.rewrites.blocks import block_bounds
from polyblocks.affine.subnests import straight_loops
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of
from polyblocks.target import TargetDescription

#: Bytes that no cache has.
BEYOND = 1 << 60


def _varies(node: Node, varying: set[Value]) -> bool:
    """Whether what a node makes differs between lanes."""
    results = node.results if isinstance(node, Op) else [getattr(node, "result", None)]
    return any(v in varying for v in results)


@dataclass
class Scatter:
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
    def of(cls, nest: Nest) -> Scatter | None:
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

    def choices(
        self,
        target: TargetDescription,
        parts: int,
        *,
        copies: bool,
        filled: bool = False,
        ranges: int = 0,
    ) -> dict[str, float]:
        """Seconds of each way to run; empty where the target's description lacks a rate.

        Args:
            target: the chip.
            parts: of the columns; less than two for none.
            copies: whether the destination may be copied.
            filled: whether all of it is written just before, by the team, row by row, or by the
                thread that makes the updates (*filled*).
            ranges: of the places; 0 for none.
        """
        level = target.shared_level
        serial = self._seconds(target, level.size)
        nbytes = self.buffer.nbytes
        merge = rates.traffic_seconds(target, 2 * (level.size + 1) * nbytes, level.size * nbytes)
        if serial is None or merge is None:
            return {}
        if ranges:
            # Overwriting waits for no load of its own: several instructions start at once.
            serial /= target.issue.instructions
        shared = moved = 0.0
        choices = {}
        if filled:
            alone = rates.traffic_seconds(target, 2 * nbytes, 2 * nbytes) or 0.0
            choices["filled"] = serial + alone
            shared = alone / level.size + level.overhead
            updates = math.prod(f.trips for f in self.loops) * self.buffer.bytes_per_element
            moved = HANDED_OVER * (
                rates.traffic_seconds(target, level.size * min(nbytes, updates), BEYOND) or 0.0
            )
        choices["serial"] = serial + shared + moved * (1 - 1 / level.size)
        if parts > 1:
            # Of its part, a thread has written as much as it is of the whole.
            handed = moved / parts * (1 - 1 / parts)
            choices["columns"] = serial / parts + level.overhead + shared + handed
        if copies:
            choices["copies"] = serial / level.size + merge + 2 * level.overhead + shared
        if ranges:
            choices["serial"] += self._any_place(target, 1)
            mine = self._listed(target, ranges) + self._any_place(target, ranges)
            choices["ranges"] = mine + level.overhead + shared + moved / ranges
        return choices

    @property
    def updates(self) -> int:
        """Updates of all loops."""
        return math.prod(f.trips for f in self.loops)

    def _any_place(self, target: TargetDescription, ranges: int) -> float:
        """Seconds in which a thread waits for lines of its range of the places."""
        nbytes = self.buffer.nbytes // ranges
        behind = rates.found_in(target, nbytes)
        if (
            nbytes <= rates.private_cache(target) // CACHE_SHARE
            or not target.memory[behind].bandwidth
        ):
            return 0.0
        home = target.memory[behind]
        rate = home.bandwidth / max(1, min(home.shared_by, target.shared_level.size))
        return self.updates / ranges * ANY_PLACE * target.line / rate

    def _listed(self, target: TargetDescription, ranges: int) -> float:
        """Seconds of a thread that lists the updates of its range, and stores them.

        Places are computed in words of twice the bits of a lane.
        """
        slot = rates.compute_seconds(target, target.lanes * target.shared_level.size) or 0.0
        vectors = 2 * cost.work(self.body) * self.updates / target.lanes / target.issue.vectors
        scalars = LISTED_UPDATE * self.updates / ranges / target.issue.instructions
        return slot * (vectors + scalars)

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
        moved = moved_bytes(self.loops, self.body, self.store)
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

    def in_columns(self, loop: For, share: int) -> For:
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
        return For(outer, nodes)

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
