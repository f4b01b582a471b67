"""The body of a kernel: nodes of the model become operations that every thread runs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import prod
from typing import Any

from polyblocks import mlir
from polyblocks.affine.analysis.dataflow import makers_of, slice_of
from polyblocks.affine.analysis.reductions import ROUNDING, identity
from polyblocks.affine.element import zero_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    AnyLoad,
    AnyStore,
    Buffer,
    Check,
    For,
    Index,
    IndirectAccess,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
    Op,
    Store,
    Value,
    walk,
)
from polyblocks.affine.vectors.reduction_vectors import IDEMPOTENT, combine
from polyblocks.codegen.gpu.emission.cascade import block_of, cascade, combiners_of, terms_inside
from polyblocks.codegen.gpu.emission.code import Code, as_bound
from polyblocks.codegen.gpu.emission.combine import Joiner, barrier
from polyblocks.codegen.gpu.emission.copies import copy_all
from polyblocks.codegen.gpu.emission.wide_body import WideBody
from polyblocks.codegen.gpu.mapping.atomics import KINDS
from polyblocks.codegen.gpu.mapping.contiguity import is_contiguous, offset
from polyblocks.codegen.gpu.mapping.kernel import DistributedLoop, Kernel, Place
from polyblocks.mlir import ir

#: Nodes up to which the iterations that one thread does of a distributed loop are written out.
UNROLLED = 192
#: Iterations up to which they are: as many loads in flight as pay.
ROUNDS = 8
#: Iterations up to which a loop with barriers in it is.
WRITTEN_OUT = 4


class Emitter:
    """Writes one kernel's body at the current insertion point.

    Attributes:
        kernel: how the nest runs.
        memrefs: the memref of every buffer.
        externals: values that come from outside of the nest.
        scratch: shared memory for the values that each distributed reduction carries.
        near: copies in shared memory of buffers of the program.
    """

    def __init__(
        self,
        code: Code,
        kernel: Kernel,
        memrefs: dict[Buffer, Any],
        externals: dict[Any, Any],
        scratch: dict[DistributedLoop, list[Any]],
        near: dict[Buffer, Any],
    ) -> None:
        self.near = near
        self.code = code
        self.kernel = kernel
        self.memrefs = memrefs
        self.externals = externals
        self.scratch = scratch
        self.values: dict[Value, Any] = {}
        self.variables: dict[Var, Any] = {}
        self.member: Any = None
        self.slot: Any = None
        self.part: Any = None
        self.valid: Any = None
        self.depth = 0
        self.round = 0
        #: The variables of the distributed loops around, and which of their iterations it is.
        self.walk: tuple[list[Var], Any] | None = None

    def emit(self) -> None:
        """The whole body, without the terminator."""
        kernel, code = self.kernel, self.code
        thread, block = code.id("thread"), code.id("block")
        self._place_thread(thread)
        copy_all(code, kernel, thread, self.memrefs, self.near)
        first = code.times(block, kernel.groups)
        outer = first if kernel.groups == 1 else code.add(first, self.slot)
        if kernel.ragged:
            self.valid = code.compare("ult", outer, code.integer(kernel.iterations))
        if kernel.group == 1:
            code.when(self.valid, lambda: self._thread(outer))
            return
        if kernel.ragged:
            # Groups without work go along, to the barriers, and store nothing.
            last = code.integer(kernel.iterations - 1)
            outer = code.value("arith.minui", code.index, outer, last)
        self.part = self._part()
        self._decode(outer, kernel.order)
        self.nodes(kernel.body, True, [])

    def _thread(self, outer: Any) -> list[Any]:
        if self.kernel.width > 1:
            return self._wide(outer)
        self._decode(outer, self.kernel.order)
        self.nodes(self.kernel.body, False, [])
        return []

    def _part(self) -> Any:
        """The group whose part of shared memory the thread uses.

        That of a group without work holds nothing. The values that its threads load may be indices,
        so they look at the first group's, which always has work.
        """
        if self.valid is None:
            return self.slot
        code = self.code
        return code.value("arith.select", code.index, self.valid, self.slot, code.integer(0))

    def _wide(self, outer: Any) -> list[Any]:
        """Several iterations, by wide accesses."""
        code, kernel = self.code, self.kernel
        last, width = kernel.order[-1], kernel.width
        body = WideBody(self, last, width)
        if not kernel.as_one:
            extents = [*(v.extent for v in kernel.order[:-1]), last.extent // width]
            self._decode(outer, kernel.order, extents)
            self.variables[last] = code.times(self.variables[last], width)
            body.nodes(kernel.body)
            return []
        first = code.times(outer, width)
        self._walk_at(first)
        total = prod(v.extent for v in kernel.order)
        rest = total % width

        def whole() -> list[Any]:
            body.nodes(kernel.body)
            return []

        def those_left() -> list[Any]:
            for i in range(rest):
                self._walk_at(code.plus(first, i))
                self.nodes(kernel.body, False, [])
            return []

        inside = code.compare("ult", first, code.integer(total - rest)) if rest else None
        code.when(inside, whole, those_left)
        return []

    def _walk_at(self, number: Any) -> None:
        """Iteration ``number`` of loops that all accesses go through as they are counted."""
        order = self.kernel.order
        self.variables[order[-1]] = number
        self.walk = order, number

    def _place_thread(self, thread: Any) -> None:
        """Set the thread's group, and its number in the group."""
        kernel, code = self.kernel, self.code
        zero = code.integer(0)
        if kernel.groups == 1:
            self.member, self.slot = thread, zero
        elif kernel.group == 1:
            self.member, self.slot = zero, thread
        elif kernel.strided:
            self.member = code.quotient(thread, kernel.groups)
            self.slot = code.remainder(thread, kernel.groups)
        else:
            self.member = code.remainder(thread, kernel.group)
            self.slot = code.quotient(thread, kernel.group)

    def _decode(self, number: Any, order: list[Var], counted: list[int] | None = None) -> None:
        """The variables of collapsed loops, from the number of the iteration."""
        rest = number
        extents = counted or [v.extent for v in order]
        for position, (var, extent) in enumerate(zip(order[::-1], extents[::-1], strict=True)):
            slowest = position == len(order) - 1
            self.variables[var] = rest if slowest else self.code.remainder(rest, extent)
            if not slowest:
                rest = self.code.quotient(rest, extent)

    # Nodes

    def nodes(self, nodes: list[Node], uniform: bool, outputs: list[Value]) -> list[Any]:
        """Run nodes in order; returns the values of ``outputs``.

        Args:
            nodes: what to run.
            uniform: whether all threads of a group run them together.
            outputs: values that what runs them wants.
        """
        for node in nodes:
            if uniform and node in self.kernel.barriers:
                barrier(self.code)
            self._node(node, uniform)
        return [self.use(v) for v in outputs]

    def _node(self, node: Node, uniform: bool) -> None:
        if isinstance(node, Op):
            operands = [self.use(v) for v in node.operands]
            types = [r.type for r in node.results]
            op = self.code.op(node.name, types, operands, node.attributes, node.location)
            self.values.update(zip(node.results, op.results, strict=True))
        elif isinstance(node, Index):
            self.values[node.result] = self.expr(node.expr)
        elif isinstance(node, Load):
            self._load(node, self._place(node))
        elif isinstance(node, IndirectLoad):
            self._load(node, self._place_at(node))
        elif isinstance(node, Store):
            self._store(node, self._place(node), uniform)
        elif isinstance(node, IndirectStore):
            self._store(node, self._place_at(node), uniform)
        elif isinstance(node, For):
            distributed = self.kernel.distributed.get(node) if uniform else None
            if distributed is not None and distributed.scan:
                self._scan(distributed)
            elif distributed is not None:
                self._shared(distributed)
            else:
                self._serial(node, uniform)
        elif isinstance(node, Check):
            condition = self.use(node.condition)
            self.code.op("cf.assert", [], [condition], {"msg": node.message}, node.location)
        elif isinstance(node, IndirectAtomic):
            self._atomic(node, uniform)
        else:
            assert isinstance(node, Alloca)

    def _place(self, node: AffineAccess) -> list[Any]:
        """The memref of an access, and its indices.

        Where it walks memory as the threads count, it does so in the memory as one row, and the
        last loop stands for all: one address and constants then do for all rounds, which otherwise
        keep one each.
        """
        memref = self.near.get(node.buffer, self.memrefs[node.buffer])
        apart = node.buffer in self.near
        if self.walk is None or apart or not is_contiguous(node, self.walk[0]):
            return [memref, *self._at(node.buffer, [self.expr(e) for e in node.index])]
        order, number = self.walk
        last = self.variables[order[-1]]
        self.variables[order[-1]] = number
        index = self.expr(offset(node, order))
        self.variables[order[-1]] = last
        return [self._row(memref), index]

    def _row(self, memref: Any) -> Any:
        """All elements of a memref, which follow each other, as one dimension."""
        rank = memref.type.rank
        if rank == 1:
            return memref
        i64 = self.code.i64
        whole = ir.ArrayAttr.get(
            [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in range(rank)])]
        )
        type_ = ir.MemRefType.get(
            [prod(memref.type.shape)],
            memref.type.element_type,
            memory_space=memref.type.memory_space,
        )
        return self.code.value("memref.collapse_shape", type_, memref, reassociation=whole)

    def _place_at(self, node: IndirectAccess) -> list[Any]:
        memref = self.near.get(node.buffer, self.memrefs[node.buffer])
        return [memref, *self._at(node.buffer, [self.use(v) for v in node.index])]

    def _load(self, node: AnyLoad, place: list[Any]) -> None:
        type_ = node.result.type

        def load() -> list[Any]:
            return list(self.code.op("memref.load", [type_], place, None, node.location).results)

        where = node.where if isinstance(node, Load) else ()
        (self.values[node.result],) = self.code.when(
            self.holds(where), load, lambda: [self._zero(type_)], [type_]
        )

    def holds(self, where: Iterable[Expr]) -> Any:
        """Whether none of these is negative; None if there are none."""
        code = self.code
        conditions = []
        for condition in where:
            moving, predicate, bound = as_bound(condition)
            conditions.append(code.compare(predicate, self.expr(moving), code.integer(bound)))
        return code.both(conditions)

    def _store(self, node: AnyStore, place: list[Any], uniform: bool) -> None:
        operands = [self.use(node.value), *place]

        def store() -> list[Any]:
            self.code.op("memref.store", [], operands, None, node.location)
            return []

        private = self.kernel.places.get(node.buffer) in (
            Place.PRIVATE,
            Place.DISTRIBUTED_REGISTERS,
        )
        self.code.when(self._leader() if uniform and not private else None, store)

    def _atomic(self, node: IndirectAtomic, uniform: bool) -> None:
        type_ = node.value.type
        operands = [self.use(node.value), self.memrefs[node.buffer]]
        operands += [self.use(v) for v in node.index]
        number = getattr(mlir.dialect("arith").AtomicRMWKind, KINDS[node.op])
        kind = ir.IntegerAttr.get(self.code.i64, int(number))

        def update() -> list[Any]:
            self.code.op("memref.atomic_rmw", [type_], operands, {"kind": kind}, node.location)
            return []

        self.code.when(self._leader() if uniform else None, update)

    def _at(self, buffer: Buffer, index: list[Any]) -> list[Any]:
        """Every group has its own part of shared memory, every thread its own elements."""
        if self.kernel.places.get(buffer) is Place.DISTRIBUTED_REGISTERS:
            return [self.code.integer(self.round)]
        if self.kernel.groups > 1 and self.kernel.places.get(buffer) is Place.SHARED:
            return [self.part, *index]
        return index

    def _leader(self) -> Any:
        """Whether the thread stores what all threads of the group have computed."""
        first = self.code.compare("eq", self.member, self.code.integer(0))
        return self.code.both([first] if self.valid is None else [first, self.valid])

    def _zero(self, type_: Any) -> Any:
        return self.code.constant(zero_of(type_))

    # Loops

    def _serial(self, node: For, uniform: bool) -> None:
        """A loop that the thread runs from the first iteration to the last."""
        code = self.code
        low, high = code.integer(0), code.integer(node.var.extent)
        for expr in node.lower:
            if expr.range()[1] > 0:
                low = code.value("arith.maxsi", code.index, low, self.expr(expr))
        for expr in node.upper:
            high = code.value("arith.minsi", code.index, high, self.expr(expr))

        def body(variable: Any, carried: list[Any]) -> list[Any]:
            self.variables[node.var] = variable
            self.values.update(zip(node.arguments, carried, strict=True))
            self.depth += uniform
            yielded = self.nodes(node.body, uniform, node.yields)
            self.depth -= uniform
            return yielded

        inits = [self.use(v) for v in node.inits]
        if ops := combiners_of(node):
            inside = terms_inside(node, lambda inner: uniform and inner in self.kernel.distributed)
            block = block_of(node.var.extent, inside)
            results = cascade(code, ops, node.var.extent, block, inits, body)
        elif uniform and self._picks_copies(node):
            results = inits
            for number in range(node.var.extent):
                bounds = [code.compare("sge", code.integer(number), low)] if node.lower else []
                bounds += [code.compare("slt", code.integer(number), high)] if node.upper else []
                results = code.when(
                    code.both(bounds),
                    partial(body, code.integer(number), results),
                    partial(list, results),
                    [v.type for v in results],
                )
        else:
            results = code.loop(low, high, code.integer(1), inits, body)
        self.values.update(zip(node.results, results, strict=True))

    def _picks_copies(self, node: For) -> bool:
        """Whether a short loop picks elements of what every thread has a copy of.

        Registers have no indices, and the assembler leaves loops with barriers as they are.
        """
        if node.var.extent > WRITTEN_OUT:
            return False
        waits = any(inner in self.kernel.distributed for inner in walk(node.body))
        return waits and any(
            isinstance(inner, AffineAccess)
            and self.kernel.places.get(inner.buffer) is Place.PRIVATE
            and node.var in {v for e in inner.index for v in e.variables()}
            for inner in walk(node.body)
        )

    def _shared(self, distributed: DistributedLoop) -> None:
        """A loop whose iterations the threads of the group take in turns."""
        first = distributed.loops[0]
        inits = [self.use(v) for v in first.inits]
        starts = [
            init if op.name in IDEMPOTENT else self._identity(op)
            for op, init in zip(distributed.combiners, inits, strict=True)
        ]
        types = [v.type for v in starts]
        parts = self.code.when(
            self.valid, lambda: self._rounds(distributed, starts), lambda: starts, types
        )
        if not distributed.combiners:
            return
        joiner = Joiner(self.code, self.kernel, self.member, self.slot)
        scratch = self.scratch.get(distributed, [])
        joined = joiner.join(distributed.combiners, parts, scratch, self.depth > 0)
        for op, init, value, result in zip(
            distributed.combiners, inits, joined, first.results, strict=True
        ):
            whole = value if op.name in IDEMPOTENT else combine(op, init, value)
            self.values[result] = whole

    def _identity(self, op: Op) -> Any:
        return self.code.constant(identity(op.name, op.results[0].type))

    def _rounds(self, distributed: DistributedLoop, carried: list[Any]) -> list[Any]:
        """The iterations of one thread: every ``group``-th one, or every ``group``-th few."""
        code, group = self.code, self.kernel.group
        width = distributed.width
        pieces = distributed.trips // width
        rounds, rest = divmod(pieces, group)
        size = width * sum(1 for _ in walk(distributed.body))
        has_loops = any(isinstance(n, For) for n in distributed.body)
        few = rounds <= ROUNDS and rounds * size <= UNROLLED and not has_loops
        if few or self._keeps(distributed):
            for round_ in range(rounds):
                self.round = round_ * width
                number, _ = code.round_of(self.member, round_, pieces, group)
                carried = self._iteration(distributed, number, None, carried)
        elif rounds:

            def body(count: Any, inside: list[Any]) -> list[Any]:
                number = code.add(code.times(count, group), self.member)
                return self._iteration(distributed, number, None, inside)

            long = any(op.name in ROUNDING for op in distributed.combiners)
            block = block_of(rounds, width) if long else rounds
            carried = cascade(code, distributed.combiners, rounds, block, carried, body)
        if rest:
            number, mine = code.round_of(self.member, rounds, pieces, group)
            self.round = rounds * width
            carried = self._iteration(distributed, number, mine, carried)
        return carried

    def _scan(self, distributed: DistributedLoop) -> None:
        """A scan whose ``group`` threads process as many iterations at a time."""
        code, (loop,), ops = self.code, distributed.loops, distributed.combiners
        terms = [
            next(v for v in op.operands if v is not argument)
            for op, argument in zip(ops, loop.arguments, strict=True)
        ]
        before, after = _parts(loop, ops, terms)
        made = {r for n in before for r in n.defines}
        used = dict.fromkeys(v for n in after for v in n.uses if v in made)
        outputs = [*terms, *used]
        starts = [self._identity(op) for op in ops]
        rounds, rest = divmod(distributed.trips, self.kernel.group)
        again = self.depth > 0 or distributed.trips > self.kernel.group
        joiner = Joiner(code, self.kernel, self.member, self.slot)

        def iterations(number: Any, condition: Any, carried: list[Any]) -> list[Any]:
            conditions = [c for c in (condition, self.valid) if c is not None]
            self._decode(number, distributed.order)
            guard = code.both([*conditions, *self._bounds(distributed)])
            zeros = [self._zero(v.type) for v in used]
            found = code.when(
                guard,
                lambda: self.nodes(before, False, outputs),
                lambda: [*starts, *zeros],
                [v.type for v in outputs],
            )
            self.values.update(zip(outputs, found, strict=True))
            values, totals = joiner.scan(
                ops, found[: len(ops)], self.scratch.get(distributed, []), again
            )
            for op, carry, value in zip(ops, carried, values, strict=True):
                self.values[op.results[0]] = combine(op, carry, value)
            code.when(guard, lambda: self.nodes(after, False, []))
            return [combine(op, c, t) for op, c, t in zip(ops, carried, totals, strict=True)]

        carried = [self.use(v) for v in loop.inits]
        if rounds:

            def body(count: Any, inside: list[Any]) -> list[Any]:
                number = code.add(code.times(count, self.kernel.group), self.member)
                return iterations(number, None, inside)

            carried = code.loop(
                code.integer(0), code.integer(rounds), code.integer(1), carried, body
            )
        if rest:
            number, mine = code.round_of(self.member, rounds, loop.var.extent, self.kernel.group)
            carried = iterations(number, mine, carried)
        self.values.update(zip(loop.results, carried, strict=True))

    def _keeps(self, distributed: DistributedLoop) -> bool:
        """Whether the loop's iterations have elements in registers."""
        places = self.kernel.places
        return any(
            isinstance(n, AffineAccess) and places.get(n.buffer) is Place.DISTRIBUTED_REGISTERS
            for n in distributed.body
        )

    def _iteration(
        self, distributed: DistributedLoop, number: Any, condition: Any, carried: list[Any]
    ) -> list[Any]:
        """Iteration ``number``; of several at once, the ``number``-th few."""
        innermost, width = distributed.loops[-1], distributed.width
        number = self.code.times(number, width)

        def inside() -> list[Any]:
            self._decode(number, distributed.order, distributed.counted)
            if distributed.lead:
                last = distributed.order[-1]
                before = self.code.integer(-distributed.lead)
                self.variables[last] = self.code.add(self.variables[last], before)
            return self.code.when(
                self.code.both(self._bounds(distributed)), run, lambda: carried, types
            )

        def run() -> list[Any]:
            self.walk = None if distributed.pitch else (distributed.order, number)
            if width > 1:
                body = WideBody(self, distributed.order[-1], width)
                given = innermost.body, innermost.arguments, carried, innermost.yields
                yielded = body.reduce(*given)
            else:
                self.values.update(zip(innermost.arguments, carried, strict=True))
                yielded = self.nodes(innermost.body, False, innermost.yields)
            self.walk = None
            return yielded

        types = [v.type for v in carried]
        return self.code.when(condition, inside, lambda: carried, types)

    def _bounds(self, distributed: DistributedLoop) -> list[Any]:
        """Conditions that the bounds of the loops set."""
        code = self.code
        found = []
        if distributed.pitch:
            last = distributed.order[-1]
            end = code.integer(last.extent)
            # Those before the first one are large numbers without a sign.
            found.append(code.compare("ult", self.variables[last], end))
        for loop in distributed.loops:
            variable = self.variables[loop.var]
            for expr in loop.upper:
                if expr.range()[0] < loop.var.extent:
                    found.append(code.compare("slt", variable, self.expr(expr)))
            for expr in loop.lower:
                if expr.range()[1] > 0:
                    found.append(code.compare("sge", variable, self.expr(expr)))
        return found

    # Values

    def use(self, value: Value) -> Any:
        """The MLIR value of a value that is there already."""
        if value.external is not None:
            return self.externals[value.external]
        return self.values[value]

    def expr(self, expr: Expr) -> Any:
        """An affine expression as a value of type index."""
        return self.code.expr(expr, self._variable)

    def _variable(self, var: Var) -> Any:
        return self.externals[var.value] if var.value is not None else self.variables[var]


def _parts(loop: For, ops: list[Op], terms: list[Value]) -> tuple[list[Node], list[Node]]:
    """The nodes of a scan's body that its terms need, and those that come after the scan."""
    needed = slice_of(terms, makers_of(loop.body))
    before = [n for n in loop.body if n in needed]
    return before, [n for n in loop.body if n not in needed and n not in ops]
