"""split-scans: a long scan with too little around it is done in parallel parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.analysis.footprints import analyze
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
from polyblocks.affine.ops import Integers, Ops
from polyblocks.affine.rewrites.blocks import block_bounds
from polyblocks.affine.vectors.choices import Choice
from polyblocks.affine.vectors.scan_vectors import scan_combiners
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.target import ParallelLevel, TargetDescription


@dataclass(frozen=True)
class SplitScansPass(NestPass):
    """Give every thread parts of a scan that has no parallel loops to share out.

    Three nests take its place: every part is reduced; a small scan of the results gives what each
    part starts with; every part is scanned. The scan's inputs are read twice. Running extrema with
    their places are such scans, too. Where threads of a grid share loops, the predicted times of
    the kernels say into how many parts, if any.

    Before::

        affine.for %k = 0 to 1000000 iter_args(%s = %z) -> f64 { ... affine.store %t, %out[%k] }

    After::

        affine.for %c = 0 to 8 {
          %p = affine.for %k = 0 to 125000 iter_args(%s = %zero) -> f64 { ... }
          affine.store %p, %totals[%c] }
        affine.for %c = 0 to 8 iter_args(%s = %z) -> f64 { ... affine.store %t, %ends[%c] ... }
        affine.for %c = 0 to 8 {
          %s = (%c == 0) ? %z : affine.load %ends[(%c + 7) mod 8]
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
    #: Of the predicted time of one kernel, at most, where the parts are kernels.
    worth: float = 0.9

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split where threads would be idle and reading twice costs less than that.

        Nothing is split where the target's description has no rate to tell.
        """
        level = context.target.shared_level
        if level.size < 2:
            return
        blocks = context.target.launches_nests
        if blocks and rates.unknown_rates(context.target):
            return
        for nest in list(sequence.nests()):
            scan = _Scan.of(nest)
            if scan is None:
                continue
            lengths = (
                self._of_blocks(scan, context.target) if blocks else self._of_team(scan, level)
            )
            if not lengths:
                continue
            seconds = _kernel_seconds if blocks else _team_seconds
            serial, tried = seconds(nest, scan, lengths, context.target)
            best = min(tried, key=lambda length: tried[length], default=lengths[0])
            count = -(-scan.loop.var.extent // best)
            accept = best in tried and tried[best] < (self.worth if blocks else 1.0) * serial
            context.decide(
                self.name,
                nest.name,
                "split" if accept else "left whole",
                parts=count,
                serial_seconds=serial,
                split_seconds=tried.get(best),
            )
            if accept:
                at = sequence.items.index(nest)
                sequence.items[at : at + 1] = scan.split(nest, best)

    def _of_team(self, scan: _Scan, level: ParallelLevel) -> list[int]:
        """The length of parts that a team of threads shares, if rows are too few for these."""
        if scan.shape.iterations >= level.size:
            return []
        extent = scan.loop.var.extent
        length = -(-extent // (self.parts_per_thread * level.size))
        length = -(-length // self.granule) * self.granule
        return [length] if length < extent else []

    def _of_blocks(self, scan: _Scan, target: TargetDescription) -> list[int]:
        """The lengths of parts that are tried: for a thread each, and for more up to a block."""
        chip = target.multiprocessor
        assert chip is not None
        threads = target.shared_level.size * (chip.busy_threads or chip.threads)
        found = []
        for divisor in (1, 4, chip.warp, 4 * chip.warp):
            count = threads // divisor // max(scan.shape.iterations, 1)
            length = -(-scan.loop.var.extent // max(count, 1))
            length = -(-length // chip.warp) * chip.warp
            if 2 * length <= scan.loop.var.extent:
                found.append(length)
        return list(dict.fromkeys(found))


#: Seconds of a scan as it is, and by the lengths of its parts; without those that are not known.
Seconds = tuple[float, dict[int, float]]


def _team_seconds(
    nest: Nest, scan: _Scan, lengths: list[int], target: TargetDescription
) -> Seconds:
    """Work of one thread at its share of the chip's rate; the first pass stores nothing."""
    level = target.shared_level
    work = cost.work(nest.body)
    rows = scan.loop.var.extent * scan.shape.iterations
    reduce = cost.work(_without_stores(scan.loop.body)) * rows
    serial = rates.compute_seconds(target, work * level.size)
    split = rates.compute_seconds(target, work + reduce)
    if serial is None or split is None:
        return 0.0, {}
    return serial, dict.fromkeys(lengths, split + 3 * level.overhead)


def _kernel_seconds(
    nest: Nest, scan: _Scan, lengths: list[int], target: TargetDescription
) -> Seconds:
    """The predicted times of kernels one after the other; each moves what it touches once."""
    from polyblocks.affine.gpu.choose import choose, copy_of

    def seconds(nests: list[Nest]) -> float:
        found = [
            max(choose(copy_of(each), target)[1].seconds, _moving(each, target)) for each in nests
        ]
        return sum(found) + (len(found) - 1) * target.shared_level.overhead

    return seconds([nest]), {length: seconds(scan.split(nest, length)) for length in lengths}


def _moving(nest: Nest, target: TargetDescription) -> float:
    """Seconds in which the memory moves all that a nest touches."""
    touched = analyze(nest.body, 1).whole.values()
    nbytes = sum(t.read + t.written for t in touched)
    return rates.traffic_seconds(target, nbytes, nbytes) or 0.0


@dataclass
class _Scan:
    """A nest with one loop that carries values and stores in every iteration.

    Attributes:
        shape: the nest taken apart.
        loop: the loop of the scan.
        joined: joins two neighbouring parts, by code that is put behind other code.
        starts: for each carried value a constant that changes nothing in front of others.
    """

    shape: ReductionNest
    loop: For
    joined: Callable[[list[Value], list[Value], list[Node]], list[Value]]
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
        if stored & read:
            return None
        combiners = scan_combiners(loop)
        if combiners is None:
            return cls._choosing(shape, loop)
        starts = identities(combiners)

        def joined(first: list[Value], second: list[Value], out: list[Node]) -> list[Value]:
            parts = zip(combiners, first, second, strict=True)
            return [Ops(out).like(op, [x, y]) for op, x, y in parts]

        return None if starts is None else cls(shape, loop, joined, starts)

    @classmethod
    def _choosing(cls, shape: ReductionNest, loop: For) -> _Scan | None:
        """A scan that chooses, whose starts give way to all elements."""
        choice = Choice.of(loop)
        makers = ops_of(shape.before)
        starts = [makers.get(value) for value in loop.inits]
        constants = [op for op in starts if op is not None and op.name == "arith.constant"]
        if choice is None or len(constants) < len(starts):
            return None
        numbers = [op.attributes["value"].value for op in constants]
        if not choice.begins_with(numbers):
            return None
        return cls(shape, loop, choice.join, constants)

    def split(self, nest: Nest, length: int) -> list[Nest]:
        """The three nests, for parts of a length."""
        count = -(-self.loop.var.extent // length)
        outer = [f.var.extent for f in self.shape.parallel]
        totals, ends = (
            [
                Buffer((*outer, count), v.type, "alloc", bytes_per_element=element_bytes(v.type))
                for v in self.loop.inits
            ]
            for _ in range(2)
        )
        bodies = [
            (f"{nest.name}_totals", "reduction", self._totals(totals, count, length)),
            (f"{nest.name}_ends", "scan", self._ends(totals, ends, count)),
            (nest.name, nest.kind, self._parts(ends, count, length)),
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

    def _ends(self, totals: list[Buffer], ends: list[Buffer], count: int) -> list[Node]:
        """The running values at the end of each part."""
        fresh, around, index = self._around()
        part = Var(count)
        values: dict[Value, Value] = {}
        body = clone(self.shape.before, values, around)
        arguments = [Value(v.type) for v in self.loop.arguments]
        loads = [
            Load(Value(v.type), t, (*index, Expr.of(part)))
            for v, t in zip(arguments, totals, strict=True)
        ]
        inner: list[Node] = [*loads]
        yields = self.joined(arguments, [load.result for load in loads], inner)
        inits = [values.get(v, v) for v in self.loop.inits]
        for value, end in zip(yields, ends, strict=True):
            inner.append(Store(value, end, (*index, Expr.of(part))))
        results = [Value(v.type) for v in arguments]
        values.update(zip(self.loop.results, results, strict=True))
        body.append(For(part, inner, inits, arguments, results, yields))
        body.extend(clone(self.shape.after, values, around))
        return nested(fresh, body)

    def _parts(self, ends: list[Buffer], count: int, length: int) -> list[Node]:
        fresh, around, index = self._around()
        part = Var(count)
        values: dict[Value, Value] = {}
        body = clone(self.shape.before, values, around)
        ops = Ops(body)
        begins = ops.compare(Integers.EQUAL, ops.index(Expr.of(part)), ops.index(0))
        inits = []
        for init, end in zip(self.loop.inits, ends, strict=True):
            # The first part reads any element that there is.
            before = (Expr.of(part) + count - 1) % count
            loaded = Value(end.element)
            body.append(Load(loaded, end, (*index, before)))
            inits.append(ops.select(begins, values.get(init, init), loaded))
        body.append(self._piece(part, length, around, values, inits, self.loop.body))
        return nested([*fresh, part], body)


def _without_stores(body: list[Node]) -> list[Node]:
    return [n for n in body if not isinstance(n, Store)]
