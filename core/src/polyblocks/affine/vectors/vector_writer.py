"""Writes loops that ``vectorize-nests`` has marked: whole vectors, then what is left.

One body is written several times: for the main loop (once per accumulator), for single vectors
that are left of it, and for the last iterations, under a mask or one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import For, Op, Simd, Store
from polyblocks.affine.vectors.lanes import lanes_of
from polyblocks.affine.vectors.reduction_vectors import (
    IDEMPOTENT,
    combine,
    identity,
    join_lanes,
    narrowed,
)
from polyblocks.affine.vectors.update_lists import (
    ListBody,
    UpdateList,
    guarded_store,
)
from polyblocks.affine.vectors.vector_bodies import Frame, ScalarBody, ScalarWriter, VectorBody
from polyblocks.affine.vectors.vector_ops import (
    broadcast,
    compare,
    extract,
    index_op,
    insert,
    shuffle,
)
from polyblocks.mlir import dialect, ir

#: Makes a body at a position; takes and returns the carried values.
MakeBody = Callable[[Any, list[Any]], list[Any]]


def write_loop(writer: ScalarWriter, loop: For) -> Any:
    """Write a loop with ``simd`` at the insertion point; returns its first operation.

    A loop around a chain of reduction loops carries vectors; lanes are joined once, behind it.
    """
    assert loop.simd is not None
    kind = ListWriter if guarded_store(loop) else LoopWriter
    return kind(writer, loop, loop.simd).write()


@dataclass
class _Range:
    """Iterations [begin, end): Python integers where they are known, else index values."""

    begin: Any
    end: Any


class LoopWriter(Frame):
    def __init__(self, writer: ScalarWriter, loop: For, simd: Simd) -> None:
        self.simd = simd
        self.chain = [loop]
        # Around carried values; what is inside of a register tile's loop is part of its body.
        while not loop.lanes and isinstance(inner := self.chain[-1].body[0], For):
            self.chain.append(inner)
        super().__init__(writer, self.chain[-1], simd.width, lanes_of(self.chain[-1]))

    def write(self) -> Any:
        self.mark()
        if self.loop.inits:
            self._finish(self._merge(self._nest(self.chain, self._start())))
        else:
            self.prepare()
            self.with_streams(self._plain)
        return self.first

    def _plain(self) -> None:
        self._nest(self.chain, [])

    def _nest(self, chain: list[For], carried: list[Any]) -> list[Any]:
        """The loops of a chain, the innermost one in vectors."""
        if len(chain) > 1:
            op = self.writer.open_loop(chain[0], carried)
            block = op.regions[0].blocks[0]
            with ir.InsertionPoint(block):
                inner = self._nest(chain[1:], list(block.arguments)[1:])
                dialect("affine").AffineYieldOp(inner)
            return list(op.results)
        self.prepare()
        if not all(e.is_constant for e in self.loop.bounds) or self._peeled() is not None:
            return self._dynamic(carried)
        return self._static(carried)

    def _peeled(self) -> Store | None:
        """The store for which the loop begins with a part of a vector."""
        if not self.streaming:
            return None
        return next((n for n in self.loop.body if isinstance(n, Store) and n.peel), None)

    # Carried values

    def _start(self) -> list[Any]:
        """Vectors that the reductions start with; all accumulators of a value side by side."""
        carried: list[Any] = []
        for init, op in zip(self.chain[0].inits, self.lanes.combiners, strict=True):
            type_ = self.vector(init.type)
            if op.name in IDEMPOTENT or self.lanes.scan:
                value = broadcast(self.writer.use(init), type_)
            else:
                element = identity(op.name, init.type)
                value = self.constant(ir.DenseElementsAttr.get_splat(type_, element))
            carried += [value] * self.simd.accumulators
        return carried

    def _merge(self, carried: list[Any]) -> list[Any]:
        """One vector per value, of its accumulators, pairwise."""
        merged = []
        count = self.simd.accumulators
        for i, op in enumerate(self.lanes.combiners):
            parts = carried[i * count : (i + 1) * count]
            while len(parts) > 1:
                parts = [combine(op, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            merged += parts
        return merged

    def _finish(self, vectors: list[Any]) -> None:
        """Join the lanes and the value that the reduction started with."""
        loop = self.chain[0]
        for vector, init, result, op in zip(
            vectors, loop.inits, loop.results, self.lanes.combiners, strict=True
        ):
            joined = extract(vector, 0) if self.lanes.scan else join_lanes(op, vector)
            if op.name not in IDEMPOTENT and not self.lanes.scan:
                joined = combine(op, self.writer.use(init), joined)
            self.writer.values[result] = joined

    # Loops

    def _static(self, carried: list[Any]) -> list[Any]:
        begin = max(0, *(e.const for e in self.loop.lower), 0)
        trips, width = self.loop.trips, self.width
        block = self.block
        end = begin + trips
        whole, single = end - trips % block, end - trips % width
        if whole > begin:
            carried = self._main(_Range(begin, whole), carried)
        if single > whole:
            carried = self._singles(_Range(whole, single), carried)
        left = end - single
        if left:
            if left > 1 and left & (left - 1) == 0 and not carried:
                # A narrower vector, which needs no mask and can be kept in a register.
                VectorBody(self, self.number(single), left).run([])
            elif self.simd.masked:
                mask = self._fixed_mask(left)
                carried = self._first(self.number(single), carried, mask)
            elif self.loop.lanes:
                self._narrower(single, left)
            else:
                carried = self._remainder(_Range(single, end), carried)
        return carried

    def _narrower(self, position: int, left: int) -> None:
        """The remaining columns of a register tile, in vectors of fewer and fewer lanes."""
        width = self.width
        while left:
            width //= 2
            if left >= width:
                VectorBody(self, self.number(position), width).run([])
                position, left = position + width, left - width

    def _dynamic(self, carried: list[Any]) -> list[Any]:
        """As :meth:`_static` with bounds that are known at run time; there may be no iteration."""
        loop, width = self.loop, self.width
        block = self.block
        begin = self._extreme("arith.maxsi", [Expr(0), *loop.lower])
        end = self._extreme("arith.minsi", [Expr(loop.var.extent), *loop.upper])
        peeled = self._peeled()
        if peeled is not None:
            begin = self._peel(peeled, begin, end)
        trips = index_op("arith.subi", end, begin)
        trips = index_op("arith.maxsi", trips, self.number(0))

        def floor(step: int) -> Any:
            rounded = index_op("arith.andi", trips, self.number(-step))
            return index_op("arith.addi", begin, rounded)

        single = whole = floor(block)
        carried = self._main(_Range(begin, whole), carried)
        if block != width:
            single = floor(width)
            carried = self._singles(_Range(whole, single), carried)
        if peeled is None and self._has_whole_vectors():
            return carried
        if not self.simd.masked:
            return self._remainder(_Range(single, end), carried)
        left = index_op("arith.andi", trips, self.number(width - 1))
        some = compare("sgt", left, self.number(0))
        scf = dialect("scf")
        branch = scf.IfOp(some, [v.type for v in carried], has_else=bool(carried))
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp(self._first(single, carried, self._counted_mask(left)))
        if carried:
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp(carried)
        return list(branch.operation.results)

    def _has_whole_vectors(self) -> bool:
        """Whether all bounds are multiples of the lanes."""
        bounds = (Expr(self.loop.var.extent), *self.loop.bounds)
        return all(
            number % self.width == 0
            for bound in bounds
            for number in (bound.const, *(factor for _, factor in bound.terms))
        )

    def _peel(self, node: Store, begin: Any, end: Any) -> Any:
        """Do the iterations up to the first aligned element; returns where the others begin."""
        stop = index_op("arith.addi", begin, self.unaligned(node, begin))
        stop = index_op("arith.maxsi", index_op("arith.minsi", stop, end), begin)
        if not self.simd.masked:
            self._steps(_Range(begin, stop), 1, [], self._scalars)
            return stop
        scf = dialect("scf")
        count = index_op("arith.subi", stop, begin)
        branch = scf.IfOp(compare("sgt", count, self.number(0)))
        with ir.InsertionPoint(branch.then_block):
            self._body(begin, [], self._counted_mask(count))
            scf.YieldOp([])
        return stop

    @property
    def block(self) -> int:
        """Iterations of the main loop that are written at a time."""
        return self.width * self.simd.accumulators * self.simd.interleaved

    def _main(self, range_: _Range, carried: list[Any]) -> list[Any]:
        """The main loop; carried vectors are wider in it if vectors are interleaved."""
        if self.simd.interleaved == 1:
            return self._steps(range_, self.block, carried, self._blocks)
        ops = self.lanes.combiners
        wide = [self._widened(op, v) for op, v in zip(ops, carried, strict=True)]
        wide = self._steps(range_, self.block, wide, self._wide)
        return [narrowed(op, v, self.width) for op, v in zip(ops, wide, strict=True)]

    def _widened(self, op: Op, vector: Any) -> Any:
        """A carried vector in the first lanes of a wider one; the others change nothing."""
        lanes = list(range(self.width))
        if op.name in IDEMPOTENT:
            return shuffle(vector, vector, lanes * self.simd.interleaved)
        element = identity(op.name, vector.type.element_type)
        neutral = self.constant(ir.DenseElementsAttr.get_splat(vector.type, element))
        others = [self.width + lane for lane in lanes] * (self.simd.interleaved - 1)
        return shuffle(vector, neutral, lanes + others)

    def _wide(self, position: Any, carried: list[Any]) -> list[Any]:
        """Several vectors, as one."""
        return VectorBody(self, position, self.block).run(carried)

    def _blocks(self, position: Any, carried: list[Any]) -> list[Any]:
        """One vector for each accumulator."""
        count = self.simd.accumulators
        results = list(carried)
        for k in range(count):
            at = position
            if k:
                at = index_op("arith.addi", position, self.number(k * self.width))
            results[k::count] = self._body(at, carried[k::count], None)
        return results

    def _singles(self, range_: _Range, carried: list[Any]) -> list[Any]:
        """Vectors for the first accumulators only."""
        count = self.simd.accumulators
        results = list(carried)
        results[::count] = self._steps(
            range_, self.width, carried[::count], lambda at, mine: self._body(at, mine, None)
        )
        return results

    def _first(self, position: Any, carried: list[Any], mask: Any) -> list[Any]:
        """A masked vector for the first accumulators."""
        count = self.simd.accumulators
        results = list(carried)
        results[::count] = self._body(position, carried[::count], mask)
        return results

    def _remainder(self, range_: _Range, carried: list[Any]) -> list[Any]:
        """The last iterations one by one, combined into lane 0 of the first accumulators."""
        count = self.simd.accumulators
        results = list(carried)
        lane = [extract(vector, 0) for vector in carried[::count]]
        lane = self._steps(range_, 1, lane, self._scalars)
        results[::count] = [
            insert(value, vector, 0) for value, vector in zip(lane, carried[::count], strict=True)
        ]
        return results

    def _steps(self, range_: _Range, step: int, carried: list[Any], make: MakeBody) -> list[Any]:
        """``scf.for`` over a range; a range of one step is written without a loop."""
        begin, end = range_.begin, range_.end
        if isinstance(begin, int) and isinstance(end, int):
            if end - begin == step:
                return make(self.number(begin), carried)
            begin, end = self.number(begin), self.number(end)
        scf = dialect("scf")
        loop = scf.ForOp(begin, end, self.number(step), carried)
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(make(loop.induction_variable, list(loop.inner_iter_args)))
        return list(loop.operation.results)

    # Bodies

    def _body(self, position: Any, carried: list[Any], mask: Any) -> list[Any]:
        results = VectorBody(self, position, self.width, mask).run(carried)
        if mask is None:
            return results
        select = dialect("arith").SelectOp
        return [select(mask, new, old).result for new, old in zip(results, carried, strict=True)]

    def _scalars(self, position: Any, carried: list[Any]) -> list[Any]:
        return ScalarBody(self, position).run(carried)

    # Small things

    def _extreme(self, name: str, exprs: list[Expr]) -> Any:
        """The largest or smallest of some bounds."""
        values = [self.number(e.const) if e.is_constant else self.writer.apply(e) for e in exprs]
        result = values[0]
        for value in values[1:]:
            result = index_op(name, result, value)
        return result

    def _fixed_mask(self, count: int) -> Any:
        i1 = ir.IntegerType.get_signless(1)
        bits = [ir.BoolAttr.get(lane < count) for lane in range(self.width)]
        return self.constant(ir.DenseElementsAttr.get(bits, self.vector(i1)))

    def _counted_mask(self, count: Any) -> Any:
        """True in the first ``count`` lanes."""
        i32 = ir.IntegerType.get_signless(32)
        type_ = self.vector(i32)
        numbers = [ir.IntegerAttr.get(i32, lane) for lane in range(self.width)]
        lanes = self.constant(ir.DenseElementsAttr.get(numbers, type_))
        narrow = ir.Operation.create("arith.index_cast", results=[i32], operands=[count])
        return compare("slt", lanes, broadcast(narrow.results[0], type_))


class ListWriter(LoopWriter):
    """Writes a loop with a guarded store: what is carried is the number of updates listed."""

    def _plain(self) -> None:
        store = guarded_store(self.loop)
        assert store is not None
        self.list = UpdateList(self, store, self.simd)
        (count,) = self._nest(self.chain, [self.number(0)])
        self.list.flush(count)

    def _body(self, position: Any, carried: list[Any], mask: Any) -> list[Any]:
        body = ListBody(self, position, self.width, mask)
        body.run([])
        return [self.list.append(*body.updates, *carried)]
