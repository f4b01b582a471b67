"""split-scans: a long scan with too little around it is done in parallel parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.reductions import ReductionNest, identities
from polyblocks.affine.cost import rates
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    For,
    IndirectAccess,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    clone,
    nested,
    remove_dead,
)
from polyblocks.affine.ops import Ops
from polyblocks.affine.rewrites.blocks import block_bounds
from polyblocks.affine.vectors.scan_vectors import scan_combiners
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class SplitScansPass(NestPass):
    """Give every thread parts of a scan that has no parallel loops to share out.

    Three nests take its place: every part is reduced; a small scan of the results gives what each
    part starts with; every part is scanned. The scan's inputs are read twice.

    Before::

        affine.for %k = 0 to 1000000 iter_args(%s = %z) -> f64 { ... affine.store %t, %out[%k] }

    After::

        affine.for %c = 0 to 8 {
          %p = affine.for %k = 0 to 125000 iter_args(%s = %zero) -> f64 { ... }
          affine.store %p, %totals[%c] }
        affine.for %c = 0 to 8 iter_args(%s = %z) -> f64 { affine.store %s, %starts[%c] ... }
        affine.for %c = 0 to 8 {
          %s = affine.load %starts[%c]
          affine.for %k = 0 to 125000 iter_args(%t = %s) {
            ... affine.store %u, %out[%c * 125000 + %k] } }
    """

    name: ClassVar[str] = "split-scans"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.REDUCTIONS})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.WHOLE_LOOPS})
    #: Parts for each thread: a thread that comes late leaves its share to the others.
    parts_per_thread: int = 4
    #: Iterations of a part are a multiple of this: whole cache lines of every type.
    granule: int = 64

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split where threads would be idle and reading twice costs less than that.

        Nothing is split where the target's description has no rate to tell.
        """
        level = context.target.shared_level
        if level.size < 2:
            return
        for nest in sequence.nests():
            scan = _Scan.of(nest)
            if scan is None or scan.shape.iterations >= level.size:
                continue
            extent = scan.loop.var.extent
            length = -(-extent // (self.parts_per_thread * level.size))
            length = -(-length // self.granule) * self.granule
            count = -(-extent // length)
            if count < 2:
                continue
            # Work of one thread at its share of the chip's rate; the first pass stores nothing.
            work = cost.work(nest.body)
            reduce = cost.work(_without_stores(scan.loop.body)) * extent * scan.shape.iterations
            serial = rates.compute_seconds(context.target, work * level.size)
            split = rates.compute_seconds(context.target, work + reduce)
            accept = False
            if serial is not None and split is not None:
                split += 3 * level.overhead
                accept = split < serial
            context.decide(
                self.name,
                nest.name,
                "split" if accept else "left whole",
                parts=count,
                serial_seconds=serial,
                split_seconds=split,
            )
            if accept:
                at = sequence.items.index(nest)
                sequence.items[at : at + 1] = scan.split(nest, count, length)


@dataclass
class _Scan:
    """A nest with one loop that carries values and stores in every iteration.

    Attributes:
        shape: the nest taken apart.
        loop: the loop of the scan.
        combiners: the op that makes each carried value.
        starts: for each of them a constant that changes nothing.
    """

    shape: ReductionNest
    loop: For
    combiners: list[Op]
    starts: list[Op]

    @classmethod
    def of(cls, nest: Nest) -> _Scan | None:
        shape = ReductionNest.of(nest)
        if shape is None or len(shape.reductions) != 1:
            return None
        (loop,) = shape.reductions
        loops = (*shape.parallel, loop)
        if any(f.bounded or f.level for f in loops):
            return None
        if any(isinstance(n, (For, IndirectAccess)) for n in loop.body):
            return None
        touched = [n for n in (*shape.before, *loop.body) if isinstance(n, AffineAccess)]
        stored = {n.buffer.base for n in touched if n.writes}
        read = {n.buffer.base for n in touched if n.reads}
        if not stored:
            return None
        combiners = scan_combiners(loop)
        if stored & read or combiners is None:
            return None
        starts = identities(combiners)
        return None if starts is None else cls(shape, loop, combiners, starts)

    def split(self, nest: Nest, count: int, length: int) -> list[Nest]:
        """The three nests."""
        outer = [f.var.extent for f in self.shape.parallel]
        totals, starts = (
            [
                Buffer((*outer, count), v.type, "alloc", bytes_per_element=element_bytes(v.type))
                for v in self.loop.inits
            ]
            for _ in range(2)
        )
        bodies = [
            (f"{nest.name}_totals", "reduction", self._totals(totals, count, length)),
            (f"{nest.name}_starts", "scan", self._starts(totals, starts, count)),
            (nest.name, nest.kind, self._parts(starts, count, length)),
        ]
        nests = []
        for name, kind, body in bodies:
            new = Nest(body, [], changed=True)
            new.name, new.kind, new.sources = name, kind, nest.sources
            remove_dead(new.body)
            nests.append(new)
        return nests

    def _around(self) -> tuple[list[Var], dict[Var, Expr], tuple[Expr, ...]]:
        """New variables of the parallel loops, what they replace, and the index that they are."""
        fresh = [Var(f.var.extent) for f in self.shape.parallel]
        pairs = zip(self.shape.parallel, fresh, strict=True)
        replaced = {f.var: Expr.of(v) for f, v in pairs}
        return fresh, replaced, tuple(Expr.of(v) for v in fresh)

    def _piece(
        self,
        part: Var,
        length: int,
        around: dict[Var, Expr],
        values: dict[Value, Value],
        inits: list[Value],
        body: list[Node],
    ) -> For:
        """The scan's loop over one part."""
        first, upper = block_bounds(part, self.loop.var.extent, length)
        inner = Var(length)
        arguments = [Value(v.type) for v in self.loop.arguments]
        values.update(zip(self.loop.arguments, arguments, strict=True))
        nodes = clone(body, values, around | {self.loop.var: first + Expr.of(inner)})
        yields = [values.get(v, v) for v in self.loop.yields]
        results = [Value(v.type) for v in arguments]
        return For(inner, nodes, inits, arguments, results, yields, upper=upper)

    def _totals(self, totals: list[Buffer], count: int, length: int) -> list[Node]:
        fresh, around, index = self._around()
        part = Var(count)
        values: dict[Value, Value] = {}
        body = clone(self.shape.before, values, around)
        inits = [Ops(body).like(start, []) for start in self.starts]
        piece = self._piece(part, length, around, values, inits, _without_stores(self.loop.body))
        body.append(piece)
        for result, buffer in zip(piece.results, totals, strict=True):
            body.append(Store(result, buffer, (*index, Expr.of(part))))
        return nested([*fresh, part], body)

    def _starts(self, totals: list[Buffer], starts: list[Buffer], count: int) -> list[Node]:
        fresh, around, index = self._around()
        part = Var(count)
        values: dict[Value, Value] = {}
        body = clone(self.shape.before, values, around)
        arguments = [Value(v.type) for v in self.loop.arguments]
        inner: list[Node] = []
        yields = []
        for argument, total, start, op in zip(
            arguments, totals, starts, self.combiners, strict=True
        ):
            loaded = Value(argument.type)
            inner.append(Store(argument, start, (*index, Expr.of(part))))
            inner.append(Load(loaded, total, (*index, Expr.of(part))))
            yields.append(Ops(inner).like(op, [argument, loaded]))
        inits = [values.get(v, v) for v in self.loop.inits]
        results = [Value(v.type) for v in arguments]
        values.update(zip(self.loop.results, results, strict=True))
        body.append(For(part, inner, inits, arguments, results, yields))
        body.extend(clone(self.shape.after, values, around))
        return nested(fresh, body)

    def _parts(self, starts: list[Buffer], count: int, length: int) -> list[Node]:
        fresh, around, index = self._around()
        part = Var(count)
        values: dict[Value, Value] = {}
        body = clone(self.shape.before, values, around)
        inits = []
        for start in starts:
            inits.append(Value(start.element))
            body.append(Load(inits[-1], start, (*index, Expr.of(part))))
        body.append(self._piece(part, length, around, values, inits, self.loop.body))
        return nested([*fresh, part], body)


def _without_stores(body: list[Node]) -> list[Node]:
    return [n for n in body if not isinstance(n, Store)]
