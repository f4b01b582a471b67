"""Writes loops that ``vectorize-nests`` has marked: whole vectors, then what is left.

One body is written several times: for the main loop (once per accumulator), for single vectors
that are left of it, and for the last iterations, under a mask or one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from polyblocks.affine.expr import Expr
from polyblocks.affine.lanes import lanes_of
from polyblocks.affine.model import (
    Buffer,
    Check,
    For,
    Index,
    Load,
    LoadAt,
    Node,
    Op,
    Simd,
    Store,
    Value,
)
from polyblocks.affine.reduction_vectors import IDEMPOTENT, combine, identity, join_lanes
from polyblocks.affine.scan_vectors import last_lane, prefixes
from polyblocks.mlir import dialect, ir

#: Makes a body at a position; takes and returns the carried values.
MakeBody = Callable[[Any, list[Any]], list[Any]]


class ScalarWriter(Protocol):
    """What is used of the writer of scalar code."""

    values: dict[Value, Any]

    def apply(self, expr: Expr) -> Any:
        """An affine expression of the loops around, as a value of type index."""

    def use(self, value: Value) -> Any:
        """The MLIR value of a value that is defined outside of the loop."""

    def memref(self, buffer: Buffer) -> Any:
        """The MLIR value of a buffer."""

    def open_loop(self, loop: For, inits: list[Any]) -> Any:
        """An ``affine.for`` without body that carries ``inits``; its variable is known inside."""


def write_loop(writer: ScalarWriter, loop: For) -> Any:
    """Write a loop with ``simd`` at the insertion point; returns its first operation.

    A loop around a chain of reduction loops carries vectors; lanes are joined once, behind it.
    """
    assert loop.simd is not None
    return _LoopWriter(writer, loop, loop.simd).write()


@dataclass
class _Range:
    """Iterations [begin, end): Python integers where they are known, else index values."""

    begin: Any
    end: Any


class _LoopWriter:
    def __init__(self, writer: ScalarWriter, loop: For, simd: Simd) -> None:
        self.writer = writer
        self.simd = simd
        self.width = simd.width
        self.chain = [loop]
        while isinstance(inner := self.chain[-1].body[0], For):
            self.chain.append(inner)
        self.loop = self.chain[-1]
        self.index = ir.IndexType.get()
        self.lanes = lanes_of(self.loop)
        self.bases: dict[Expr, Any] = {}
        self.first: Any = None
        #: Constants stand in front of the first loop, once each.
        self.constants: dict[Any, Any] = {}

    def write(self) -> Any:
        self.first = self.constant(ir.IntegerAttr.get(self.index, 0)).owner.operation
        carried = self._nest(self.chain, self._start())
        self._finish(self._merge(carried))
        return self.first

    def _nest(self, chain: list[For], carried: list[Any]) -> list[Any]:
        """The loops of a chain, the innermost one in vectors."""
        if len(chain) > 1:
            op = self.writer.open_loop(chain[0], carried)
            block = op.regions[0].blocks[0]
            with ir.InsertionPoint(block):
                inner = self._nest(chain[1:], list(block.arguments)[1:])
                dialect("affine").AffineYieldOp(inner)
            return list(op.results)
        self._prepare()
        return self._dynamic(carried) if self.loop.bounded else self._static(carried)

    def _prepare(self) -> None:
        """The parts of all indices that do not move with the loop."""
        for node in self.loop.body:
            exprs: Sequence[Expr] = ()
            if isinstance(node, (Load, Store)):
                exprs = node.index
            elif isinstance(node, Index):
                exprs = (node.expr,)
            for expr in exprs:
                base = self.fixed(expr)
                if not base.is_constant and base not in self.bases:
                    self.bases[base] = self.writer.apply(base)

    def fixed(self, expr: Expr) -> Expr:
        """The part of an index that does not move with the loop."""
        factor = expr.coefficient(self.loop.var) or 0
        return expr - Expr(0, {self.loop.var: factor})

    def constant(self, attribute: Any) -> Any:
        """A constant in front of the loops."""
        if attribute not in self.constants:
            point = ir.InsertionPoint(self.first) if self.first is not None else None
            op = ir.Operation.create(
                "arith.constant",
                results=[attribute.type],
                attributes={"value": attribute},
                ip=point,
            )
            self.constants[attribute] = op.results[0]
        return self.constants[attribute]

    def number(self, value: int) -> Any:
        """A constant of type index."""
        return self.constant(ir.IntegerAttr.get(self.index, value))

    # Carried values

    def _start(self) -> list[Any]:
        """Vectors that the reductions start with; all accumulators of a value side by side."""
        carried: list[Any] = []
        for init, op in zip(self.chain[0].inits, self.lanes.combiners, strict=True):
            type_ = self.vector(init.type)
            if op.name in IDEMPOTENT or self.lanes.scan:
                value = _broadcast(self.writer.use(init), type_)
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
            joined = _extract(vector, 0) if self.lanes.scan else join_lanes(op, vector)
            if op.name not in IDEMPOTENT and not self.lanes.scan:
                joined = combine(op, self.writer.use(init), joined)
            self.writer.values[result] = joined

    # Loops

    def _static(self, carried: list[Any]) -> list[Any]:
        extent, width = self.loop.var.extent, self.width
        block = width * self.simd.accumulators
        whole, single = extent - extent % block, extent - extent % width
        if whole:
            carried = self._steps(_Range(0, whole), block, carried, self._blocks)
        if single > whole:
            carried = self._singles(_Range(whole, single), carried)
        left = extent - single
        if left:
            if left > 1 and left & (left - 1) == 0 and not carried:
                # A narrower vector, which needs no mask and can be kept in a register.
                _VectorBody(self, self.number(single), left).run([])
            elif self.simd.masked:
                mask = self._fixed_mask(left)
                carried = self._first(self.number(single), carried, mask)
            else:
                carried = self._rest(_Range(single, extent), carried)
        return carried

    def _dynamic(self, carried: list[Any]) -> list[Any]:
        """As :meth:`_static` with bounds that are known at run time; there may be no iteration."""
        loop, width = self.loop, self.width
        block = width * self.simd.accumulators
        begin = self._extreme("arith.maxsi", [Expr(0), *loop.lower])
        end = self._extreme("arith.minsi", [Expr(loop.var.extent), *loop.upper])
        trips = _index_op("arith.subi", end, begin)
        trips = _index_op("arith.maxsi", trips, self.number(0))

        def floor(step: int) -> Any:
            rounded = _index_op("arith.andi", trips, self.number(-step))
            return _index_op("arith.addi", begin, rounded)

        single = whole = floor(block)
        carried = self._steps(_Range(begin, whole), block, carried, self._blocks)
        if block != width:
            single = floor(width)
            carried = self._singles(_Range(whole, single), carried)
        if not self.simd.masked:
            return self._rest(_Range(single, end), carried)
        left = _index_op("arith.andi", trips, self.number(width - 1))
        some = _compare("sgt", left, self.number(0))
        scf = dialect("scf")
        branch = scf.IfOp(some, [v.type for v in carried], has_else=bool(carried))
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp(self._first(single, carried, self._counted_mask(left)))
        if carried:
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp(carried)
        return list(branch.operation.results)

    def _blocks(self, position: Any, carried: list[Any]) -> list[Any]:
        """One vector for each accumulator."""
        count = self.simd.accumulators
        results = list(carried)
        for k in range(count):
            at = position
            if k:
                at = _index_op("arith.addi", position, self.number(k * self.width))
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

    def _rest(self, range_: _Range, carried: list[Any]) -> list[Any]:
        """The last iterations one by one, combined into lane 0 of the first accumulators."""
        count = self.simd.accumulators
        results = list(carried)
        lane = [_extract(vector, 0) for vector in carried[::count]]
        lane = self._steps(range_, 1, lane, self._scalars)
        results[::count] = [
            _insert(value, vector, 0) for value, vector in zip(lane, carried[::count], strict=True)
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
        results = _VectorBody(self, position, self.width, mask).run(carried)
        if mask is None:
            return results
        select = dialect("arith").SelectOp
        return [select(mask, new, old).result for new, old in zip(results, carried, strict=True)]

    def _scalars(self, position: Any, carried: list[Any]) -> list[Any]:
        return _ScalarBody(self, position).run(carried)

    # Small things

    def vector(self, element: Any, width: int | None = None) -> Any:
        """The vector type of an element type; of as many lanes as all but the last vectors."""
        return ir.VectorType.get([width or self.width], element)

    def _extreme(self, name: str, exprs: list[Expr]) -> Any:
        """The largest or smallest of some bounds."""
        values = [self.number(e.const) if e.is_constant else self.writer.apply(e) for e in exprs]
        result = values[0]
        for value in values[1:]:
            result = _index_op(name, result, value)
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
        return _compare("slt", lanes, _broadcast(narrow.results[0], type_))


class _Body:
    """One copy of the loop's body at one position."""

    def __init__(self, owner: _LoopWriter, position: Any) -> None:
        self.owner = owner
        self.writer = owner.writer
        self.position = position
        self.values: dict[Value, Any] = {}
        self.indices: dict[Expr, Any] = {}

    def run(self, carried: list[Any]) -> list[Any]:
        """Write all nodes; returns what the body yields."""
        loop = self.owner.loop
        self.values.update(zip(loop.arguments, carried, strict=True))
        for node in loop.body:
            self.node(node)
        return [self.carried(v) for v in loop.yields]

    def node(self, node: Node) -> None:
        raise NotImplementedError

    def carried(self, value: Value) -> Any:
        return self.scalar(value)

    def scalar(self, value: Value) -> Any:
        """A value that is the same in all lanes."""
        return self.values[value] if value in self.values else self.writer.use(value)

    def at(self, expr: Expr) -> Any:
        """An index in this iteration, or in lane 0."""
        if expr not in self.indices:
            self.indices[expr] = self._at(expr)
        return self.indices[expr]

    def _at(self, expr: Expr) -> Any:
        owner = self.owner
        factor = expr.coefficient(owner.loop.var) or 0
        base = owner.fixed(expr)
        fixed = owner.number(base.const) if base.is_constant else owner.bases[base]
        if not factor:
            return fixed
        moving = self.position
        if factor != 1:
            moving = _index_op("arith.muli", moving, owner.number(factor))
        return moving if base == Expr(0) else _index_op("arith.addi", moving, fixed)

    def write_scalar(self, node: Node) -> None:
        """A node that is the same in all lanes, once."""
        location = getattr(node, "location", None) or ir.Location.unknown()
        if isinstance(node, Op):
            op = ir.Operation.create(
                node.name,
                results=[r.type for r in node.results],
                operands=[self.scalar(v) for v in node.operands],
                attributes=node.attributes,
                loc=location,
            )
            self.values.update(zip(node.results, op.results, strict=True))
        elif isinstance(node, Index):
            self.values[node.result] = self.at(node.expr)
        elif isinstance(node, (Load, LoadAt)):
            op = ir.Operation.create(
                "memref.load",
                results=[node.result.type],
                operands=[self.writer.memref(node.buffer), *self.where(node)],
                loc=location,
            )
            self.values[node.result] = op.results[0]
        elif isinstance(node, Store):
            ir.Operation.create(
                "memref.store",
                operands=[
                    self.scalar(node.value),
                    self.writer.memref(node.buffer),
                    *self.where(node),
                ],
                loc=location,
            )
        elif isinstance(node, Check):
            ir.Operation.create(
                "cf.assert",
                operands=[self.scalar(node.condition)],
                attributes={"msg": node.message},
                loc=location,
            )

    def where(self, node: Load | Store | LoadAt) -> list[Any]:
        """The indices of an access in this iteration, or of lane 0."""
        if isinstance(node, LoadAt):
            return [self.scalar(v) for v in node.index]
        return [self.at(e) for e in node.index]


class _ScalarBody(_Body):
    """One iteration."""

    def node(self, node: Node) -> None:
        self.write_scalar(node)


class _VectorBody(_Body):
    """As many iterations as a vector has lanes; under a mask only the first of them count."""

    def __init__(self, owner: _LoopWriter, position: Any, width: int, mask: Any = None) -> None:
        super().__init__(owner, position)
        self.width = width
        self.mask = mask
        self.splats: dict[Value, Any] = {}
        #: Varying indices in lane 0, for loads of neighbours.
        self.firsts: dict[Value, Any] = {}
        #: What a scan hands to the next vector, by the running value.
        self.totals: dict[Value, Any] = {}
        #: Constants of the body, to be written as constants of vectors.
        self.constants: dict[Value, Any] = {}

    def node(self, node: Node) -> None:
        varying = self.owner.lanes.varying
        if self.owner.lanes.scan and node in self.owner.lanes.combiners:
            self._running(node)
        elif isinstance(node, Op) and any(v in varying for v in node.operands):
            self._op(node)
        elif isinstance(node, Index) and node.result in varying:
            self._index(node)
        elif isinstance(node, (Load, LoadAt)) and node.result in varying:
            self._load(node)
        elif isinstance(node, Store):
            self._store(node)
        else:
            if isinstance(node, Op) and node.name == "arith.constant":
                self.constants[node.results[0]] = node.attributes["value"]
            self.write_scalar(node)

    def vector(self, element: Any) -> Any:
        return self.owner.vector(element, self.width)

    def carried(self, value: Value) -> Any:
        return self.totals[value] if value in self.totals else self.lanes(value)

    def _running(self, node: Op) -> None:
        """The running values of a scan: all lanes of what is carried are equal."""
        before, term = node.operands
        if before not in self.owner.loop.arguments:
            before, term = term, before
        lanes = prefixes(node, self.lanes(term))
        (result,) = node.results
        self.values[result] = combine(node, self.lanes(before), lanes)
        self.totals[result] = combine(node, self.lanes(before), last_lane(lanes))

    def lanes(self, value: Value) -> Any:
        """A value as a vector."""
        if value in self.owner.lanes.varying:
            return self.values[value]
        if value not in self.splats:
            type_ = self.vector(value.type)
            if value in self.constants:
                splat = ir.DenseElementsAttr.get_splat(type_, self.constants[value])
                self.splats[value] = self.owner.constant(splat)
            else:
                self.splats[value] = _broadcast(self.scalar(value), type_)
        return self.splats[value]

    def _op(self, node: Op) -> None:
        operands = [self.lanes(v) for v in node.operands]
        op = ir.Operation.create(
            node.name,
            results=[self.vector(r.type) for r in node.results],
            operands=operands,
            attributes=node.attributes,
            loc=node.location or ir.Location.unknown(),
        )
        self.values.update(zip(node.results, op.results, strict=True))

    def _index(self, node: Index) -> None:
        owner = self.owner
        factor = node.expr.coefficient(owner.loop.var) or 0
        type_ = self.vector(owner.index)
        steps = [ir.IntegerAttr.get(owner.index, factor * k) for k in range(self.width)]
        lanes = owner.constant(ir.DenseElementsAttr.get(steps, type_))
        first = self.at(node.expr)
        self.firsts[node.result] = first
        self.values[node.result] = _index_op("arith.addi", _broadcast(first, type_), lanes)

    def where(self, node: Load | Store | LoadAt) -> list[Any]:
        if not isinstance(node, LoadAt):
            return super().where(node)
        *outer, last = node.index
        first = self.firsts[last] if last in self.firsts else self.scalar(last)
        return [*(self.scalar(v) for v in outer), first]

    def _load(self, node: Load | LoadAt) -> None:
        type_ = self.vector(node.result.type)
        memref, where = self.writer.memref(node.buffer), self.where(node)
        location = node.location or ir.Location.unknown()
        if self.mask is None:
            op = ir.Operation.create(
                "vector.load", results=[type_], operands=[memref, *where], loc=location
            )
        else:
            zero = self.owner.constant(ir.DenseElementsAttr.get_splat(type_, _zero(node)))
            op = ir.Operation.create(
                "vector.maskedload",
                results=[type_],
                operands=[memref, *where, self.mask, zero],
                loc=location,
            )
        self.values[node.result] = op.results[0]

    def _store(self, node: Store) -> None:
        value = self.lanes(node.value)
        memref, where = self.writer.memref(node.buffer), self.where(node)
        location = node.location or ir.Location.unknown()
        if self.mask is None:
            ir.Operation.create("vector.store", operands=[value, memref, *where], loc=location)
        else:
            ir.Operation.create(
                "vector.maskedstore", operands=[memref, *where, self.mask, value], loc=location
            )


def _zero(node: Load | LoadAt) -> Any:
    type_ = node.result.type
    if isinstance(type_, ir.FloatType):
        return ir.FloatAttr.get(type_, 0.0)
    return ir.IntegerAttr.get(type_, 0)


def _broadcast(value: Any, type_: Any) -> Any:
    return ir.Operation.create("vector.broadcast", results=[type_], operands=[value]).results[0]


def _index_op(name: str, left: Any, right: Any) -> Any:
    return ir.Operation.create(name, results=[left.type], operands=[left, right]).results[0]


def _compare(predicate: str, left: Any, right: Any) -> Any:
    arith = dialect("arith")
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), left, right).result


def _extract(vector: Any, lane: int) -> Any:
    return ir.Operation.create(
        "vector.extract",
        results=[vector.type.element_type],
        operands=[vector],
        attributes={"static_position": ir.DenseI64ArrayAttr.get([lane])},
    ).results[0]


def _insert(value: Any, vector: Any, lane: int) -> Any:
    return ir.Operation.create(
        "vector.insert",
        results=[vector.type],
        operands=[value, vector],
        attributes={"static_position": ir.DenseI64ArrayAttr.get([lane])},
    ).results[0]
