"""Nodes of the model become operations that every thread runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from polyblocks import mlir
from polyblocks.affine.element import zero_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.mapping.atomics import KINDS
from polyblocks.affine.gpu.mapping.contiguity import is_contiguous, offset
from polyblocks.affine.gpu.plans.groups import GroupPlan, Place
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
)
from polyblocks.affine.vectors.rows import Row
from polyblocks.codegen.gpu.emission.code import Code, as_bound
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.mlir import ir


@dataclass
class Thread:
    """Which thread of a block runs the code; of a block without groups nothing is known.

    Attributes:
        member: number of the thread in its group.
        slot: number of the group in its block.
        part: the group whose part of shared memory the thread uses.
        valid: whether the group has work; None if all have.
    """

    member: Any = None
    slot: Any = None
    part: Any = None
    valid: Any = None


class NodeEmitter:
    """Writes nodes at the current insertion point.

    Args:
        code: of the kernel.
        plan: how the nest runs; of a tile's elements one without groups.
        memrefs: the memref of every buffer.
        externals: values that come from outside of the nest.
        near: copies in shared memory of buffers of the program.

    Attributes:
        values, variables: those of the nest that there are so far.
        thread: which one it is.
        round: the iteration of a thread whose elements in registers are meant.
        walk: the variables of the distributed loops around, and which of their iterations it is.
        rows: accesses that are done at once, by their nodes.
        loop: writes a loop; gets whether all threads of a group run it together.
    """

    def __init__(
        self,
        code: Code,
        plan: GroupPlan,
        memrefs: dict[Buffer, Any],
        externals: dict[Any, Any],
        near: dict[Buffer, Any],
    ) -> None:
        self.code, self.plan = code, plan
        self.memrefs, self.externals, self.near = memrefs, externals, near
        self.values: dict[Value, Any] = {}
        self.variables: dict[Var, Any] = {}
        self.thread = Thread()
        self.round = 0
        self.walk: tuple[list[Var], Any] | None = None
        self.rows: dict[Node, Row] = {}
        self.loop: Callable[[For, bool], None] = _no_loop

    def run(self, nodes: list[Node], uniform: bool, outputs: list[Value]) -> list[Any]:
        """Run nodes in order; returns the values of ``outputs``.

        Args:
            nodes: what to run.
            uniform: whether all threads of a group run them together.
            outputs: values that what runs them wants.
        """
        for node in nodes:
            if uniform and node in self.plan.barriers:
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
        elif node in self.rows:
            self._row(node, self.rows[node])
        elif isinstance(node, Load):
            self.load(node, self.place(node))
        elif isinstance(node, IndirectLoad):
            self.load(node, self._place_at(node))
        elif isinstance(node, Store):
            self._store(node, self.place(node), uniform)
        elif isinstance(node, IndirectStore):
            self._store(node, self._place_at(node), uniform)
        elif isinstance(node, For):
            self.loop(node, uniform)
        elif isinstance(node, Check):
            condition = self.use(node.condition)
            self.code.op("cf.assert", [], [condition], {"msg": node.message}, node.location)
        elif isinstance(node, IndirectAtomic):
            self._atomic(node, uniform)
        else:
            assert isinstance(node, Alloca)

    def place(self, node: AffineAccess) -> list[Any]:
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
        return [self.row(memref), index]

    def row(self, memref: Any) -> Any:
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

    def _row(self, node: Node, row: Row) -> None:
        """The access of a row, at the node where it stands; nothing at its other ones."""
        code, first = self.code, row.nodes[0]
        if node is not row.stands_at:
            return
        memref = self.near.get(first.buffer, self.memrefs[first.buffer])
        place, location = [self.row(memref), self.expr(row.first)], first.location
        if isinstance(first, Load):
            vector = ir.VectorType.get([row.width], first.result.type)

            def load() -> list[Any]:
                return list(code.op("vector.load", [vector], place, None, location).results)

            def zeros() -> list[Any]:
                zero = ir.DenseElementsAttr.get_splat(vector, zero_of(vector.element_type))
                return [code.constant(zero)]

            (loaded,) = code.when(self.holds(first.where), load, zeros, [vector])
            elements = code.elements(loaded)
            for each, k in zip(row.nodes, row.places, strict=True):
                if isinstance(each, Load):
                    self.values[each.result] = elements[k]
            return
        at = {
            k: n.value for n, k in zip(row.nodes, row.places, strict=True) if isinstance(n, Store)
        }
        values = [self.use(at[k]) for k in range(row.width)]
        vector = ir.VectorType.get([row.width], first.value.type)
        value = code.value("vector.from_elements", vector, *values)
        code.op("vector.store", [], [value, *place], None, location)

    def _place_at(self, node: IndirectAccess) -> list[Any]:
        memref = self.near.get(node.buffer, self.memrefs[node.buffer])
        return [memref, *self._at(node.buffer, [self.use(v) for v in node.index])]

    def load(self, node: AnyLoad, place: list[Any]) -> None:
        type_ = node.result.type

        def load() -> list[Any]:
            return list(self.code.op("memref.load", [type_], place, None, node.location).results)

        where = node.where if isinstance(node, Load) else ()
        (self.values[node.result],) = self.code.when(
            self.holds(where), load, lambda: [self.zero(type_)], [type_]
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

        private = self.plan.places.get(node.buffer) in (
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
        if self.plan.places.get(buffer) is Place.DISTRIBUTED_REGISTERS:
            return [self.code.integer(self.round)]
        if self.plan.groups > 1 and self.plan.places.get(buffer) is Place.SHARED:
            return [self.thread.part, *index]
        return index

    def _leader(self) -> Any:
        """Whether the thread stores what all threads of the group have computed."""
        first = self.code.compare("eq", self.thread.member, self.code.integer(0))
        return self.code.both([first] if self.thread.valid is None else [first, self.thread.valid])

    def zero(self, type_: Any) -> Any:
        return self.code.constant(zero_of(type_))

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

    def decode(self, number: Any, order: list[Var], counted: list[int] | None = None) -> None:
        """The variables of collapsed loops, from the number of the iteration."""
        rest = number
        extents = counted or [v.extent for v in order]
        for position, (var, extent) in enumerate(zip(order[::-1], extents[::-1], strict=True)):
            slowest = position == len(order) - 1
            self.variables[var] = rest if slowest else self.code.remainder(rest, extent)
            if not slowest:
                rest = self.code.quotient(rest, extent)


def _no_loop(node: For, uniform: bool) -> None:
    raise ValueError(f"the elements of a tile have no loops, got one of {node.var.extent} steps")
