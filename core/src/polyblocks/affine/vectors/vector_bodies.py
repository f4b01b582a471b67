"""Copies of a loop's body: one iteration, or as many as a vector has lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from polyblocks.affine.access import address
from polyblocks.affine.element import zero_of
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    AnyLoad,
    AnyStore,
    Buffer,
    Check,
    For,
    Index,
    IndirectAccess,
    IndirectLoad,
    Load,
    Node,
    Op,
    Prefetch,
    Store,
    Value,
)
from polyblocks.affine.ops import is_constant
from polyblocks.affine.vectors.interleaves import Interleave
from polyblocks.affine.vectors.lanes import Lanes
from polyblocks.affine.vectors.neighbours import Window, windows
from polyblocks.affine.vectors.reduction_vectors import combine, join_lanes
from polyblocks.affine.vectors.scan_vectors import last_lane, prefixes
from polyblocks.affine.vectors.turns import deinterleave, interleave
from polyblocks.affine.vectors.vector_ops import (
    alignment,
    broadcast,
    compare,
    constant_lanes,
    index_op,
    shuffle,
    store_masked,
)
from polyblocks.mlir import dialect, ir


class ScalarWriter(Protocol):
    """The part of the scalar writer that vector code uses."""

    values: dict[Value, Any]

    def apply(self, expr: Expr) -> Any:
        """An affine expression of the loops around, as a value of type index."""

    def use(self, value: Value) -> Any:
        """The MLIR value of a value that is defined outside of the loop."""

    def memref(self, buffer: Buffer) -> Any:
        """The MLIR value of a buffer."""

    def open_loop(self, loop: For, inits: list[Any]) -> Any:
        """An ``affine.for`` without body that carries ``inits``; its variable is known inside."""


class Frame:
    """Code in front of the loops that the copies of one loop's body share.

    Attributes:
        writer: writes what is not vectors.
        loop: the loop whose iterations are lanes.
        width: lanes of its vectors.
        lanes: what is known of its values.
        index: the type ``index``.
        first: the first operation; constants go in front of it.
    """

    def __init__(self, writer: ScalarWriter, loop: For, width: int, lanes: Lanes) -> None:
        self.writer = writer
        self.loop = loop
        self.width = width
        self.lanes = lanes
        self.index = ir.IndexType.get()
        self.bases: dict[Expr, Any] = {}
        self.first: Any = None
        self.constants: dict[Any, Any] = {}
        self.streaming = False
        simd = loop.simd
        self.windows = windows(loop, width, simd.line) if simd and simd.masked else {}

    def with_streams(self, make: Callable[[], None]) -> None:
        """Write what ``make`` writes, in two versions if stores may pass the caches.

        They do in the first one, which runs if all of their buffers are aligned for it.
        """
        streams = [n for n in self.loop.body if isinstance(n, Store) and n.stream]
        if not streams or any(n.peel for n in streams):
            self.streaming = bool(streams)
            make()
            return
        offsets = [self._offset(n) for n in streams]
        offset = offsets[0]
        for other in offsets[1:]:
            offset = index_op("arith.ori", offset, other)
        scf = dialect("scf")
        branch = scf.IfOp(compare("eq", offset, self.number(0)), has_else=True)
        for block, streaming in ((branch.then_block, True), (branch.else_block, False)):
            with ir.InsertionPoint(block):
                self.streaming = streaming
                make()
                scf.YieldOp([])

    def _offset(self, node: Store) -> Any:
        """By how many bytes the buffer of a store misses its alignment."""
        pointer = ir.Operation.create(
            "memref.extract_aligned_pointer_as_index",
            results=[self.index],
            operands=[self.writer.memref(node.buffer)],
        )
        return index_op("arith.andi", pointer.results[0], self.number(node.stream - 1))

    def unaligned(self, node: Store, begin: Any) -> Any:
        """How many iterations from ``begin`` on come before the first aligned element."""
        size = node.buffer.bytes_per_element
        pointer = ir.Operation.create(
            "memref.extract_aligned_pointer_as_index",
            results=[self.index],
            operands=[self.writer.memref(node.buffer)],
        )
        base = self.fixed(address(node.buffer, node.index))
        element = self.number(base.const) if base.is_constant else self.writer.apply(base)
        element = index_op("arith.addi", element, begin)
        offset = index_op("arith.muli", element, self.number(size))
        place = index_op("arith.addi", pointer.results[0], offset)
        left = index_op("arith.subi", self.number(0), place)
        left = index_op("arith.andi", left, self.number(node.stream - 1))
        return index_op("arith.divui", left, self.number(size))

    def store_vector(self, node: AnyStore, value: Any, where: list[Any]) -> None:
        """A whole vector, past the caches in the version for that."""
        attributes = {}
        if self.streaming and isinstance(node, Store) and node.stream:
            i64 = ir.IntegerType.get_signless(64)
            attributes["nontemporal"] = ir.BoolAttr.get(True)
            attributes["alignment"] = ir.IntegerAttr.get(i64, node.stream)
        ir.Operation.create(
            "vector.store",
            operands=[value, self.writer.memref(node.buffer), *where],
            attributes=attributes,
            loc=node.location or ir.Location.unknown(),
        )

    def mark(self) -> None:
        """Everything follows what is at the insertion point now."""
        self.first = self.number(0).owner.operation

    def prepare(self) -> None:
        """The parts of all indices that do not move with the loop."""
        for node in self.loop.body:
            if not isinstance(node, For):
                self._prepare(node.exprs)
        for fetch in self.loop.prefetches:
            self._prepare(fetch.index)
        for window, _ in self.windows.values():
            self._prepare(window.index)

    def _prepare(self, exprs: Sequence[Expr]) -> None:
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

    def vector(self, element: Any, width: int | None = None) -> Any:
        """The vector type of an element type; of as many lanes as all but the last vectors."""
        return ir.VectorType.get([width or self.width], element)


class Body:
    """One copy of the loop's body at one position."""

    def __init__(self, owner: Frame, position: Any) -> None:
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
        fixed = owner.number(base.const) if base.is_constant else self._fixed(base)
        if not factor:
            return fixed
        moving = self.position
        if factor != 1:
            moving = index_op("arith.muli", moving, owner.number(factor))
        return moving if base == Expr(0) else index_op("arith.addi", moving, fixed)

    def _fixed(self, base: Expr) -> Any:
        """The value of a part that does not move with the loop; of loops inside, for here.

        Those that differ in a constant share what they have in common, so that code generation
        finds one pointer and displacements.
        """
        if base in self.owner.bases:
            return self.owner.bases[base]
        common = base - base.const
        if common not in self.indices:
            self.indices[common] = self.writer.apply(common)
        if not base.const:
            return self.indices[common]
        return index_op("arith.addi", self.indices[common], self.owner.number(base.const))

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
        elif isinstance(node, AnyLoad):
            op = ir.Operation.create(
                "memref.load",
                results=[node.result.type],
                operands=[self.writer.memref(node.buffer), *self.where(node)],
                attributes=alignment(node.buffer),
                loc=location,
            )
            self.values[node.result] = op.results[0]
        elif isinstance(node, AnyStore):
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

    def where(self, node: Access) -> list[Any]:
        """The indices of an access in this iteration, or of lane 0."""
        return node.index_by(self.at, self.scalar)


class ScalarBody(Body):
    """One iteration."""

    def node(self, node: Node) -> None:
        self.write_scalar(node)


class VectorBody(Body):
    """As many iterations as a vector has lanes; under a mask only the first of them count."""

    def __init__(self, owner: Frame, position: Any, width: int, mask: Any = None) -> None:
        super().__init__(owner, position)
        self.width = width
        self.mask = mask
        self.splats: dict[Value, Any] = {}
        #: Varying indices in lane 0, for loads of neighbours.
        self.firsts: dict[Value, Any] = {}
        #: Total that a scan passes to the next vector, by the running value.
        self.totals: dict[Value, Any] = {}
        #: Constants of the body, to be written as constants of vectors.
        self.constants: dict[Value, Any] = {}
        #: The two vectors of each window.
        self.windows: dict[Window, tuple[Any, Any]] = {}
        #: Results of interleaved loads, and values of interleaved stores, by their places.
        self.parts: dict[Interleave, list[Any]] = {}
        self.turns: dict[Interleave, dict[int, Any]] = {}

    def node(self, node: Node) -> None:
        varying = self.owner.lanes.varying
        if isinstance(node, For):
            self._loop(node)
        elif self.owner.lanes.scan and node in self.owner.lanes.combiners:
            self._running(node)
        elif isinstance(node, Op) and any(v in varying for v in node.operands):
            self._op(node)
        elif isinstance(node, Index) and node.result in varying:
            self._index(node)
        elif isinstance(node, AnyLoad) and node.result in varying:
            self.load(node)
        elif isinstance(node, AnyStore):
            self.store(node)
        elif isinstance(node, Check) and node.condition in varying:
            self._check(node)
        else:
            if is_constant(node):
                self.constants[node.results[0]] = node.attributes["value"]
            self.write_scalar(node)

    def _loop(self, node: For) -> None:
        """A loop inside: all lanes go through it together, and it carries vectors."""
        op = self.writer.open_loop(node, [self.lanes(v) for v in node.inits])
        block = op.regions[0].blocks[0]
        self.values.update(zip(node.arguments, list(block.arguments)[1:], strict=True))
        # Values defined in the loop do not dominate the code behind it.
        made = self.indices, self.splats, self.firsts
        self.indices, self.splats, self.firsts = ({**known} for known in made)
        with ir.InsertionPoint(block):
            for fetch in node.prefetches:
                self._prefetch(fetch)
            for child in node.body:
                self.node(child)
            dialect("affine").AffineYieldOp([self.lanes(v) for v in node.yields])
        self.indices, self.splats, self.firsts = made
        self.values.update(zip(node.results, op.results, strict=True))

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
                self.splats[value] = broadcast(self.scalar(value), type_)
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
        self.values[node.result] = index_op("arith.addi", broadcast(first, type_), lanes)

    def where(self, node: Access) -> list[Any]:
        if not isinstance(node, IndirectAccess):
            return super().where(node)
        *outer, last = node.index
        first = self.firsts[last] if last in self.firsts else self.scalar(last)
        return [*(self.scalar(v) for v in outer), first]

    def load(self, node: AnyLoad) -> None:
        type_ = self.vector(node.result.type)
        location = node.location or ir.Location.unknown()
        if isinstance(node, IndirectLoad) and node in self.owner.lanes.gathered:
            self.values[node.result] = self._gather(node, type_, location)
            return
        memref, where = self.writer.memref(node.buffer), self.where(node)
        if isinstance(node, Load) and node in self.owner.lanes.interleaved:
            self.values[node.result] = self._of_parts(node)
            return
        if isinstance(node, Load) and self._whole and node in self.owner.windows:
            window, offset = self.owner.windows[node]
            self.values[node.result] = self._of_window(window, offset, location)
            return
        if self.mask is None:
            op = ir.Operation.create(
                "vector.load",
                results=[type_],
                operands=[memref, *where],
                attributes=alignment(node.buffer),
                loc=location,
            )
        else:
            zero = self.owner.constant(ir.DenseElementsAttr.get_splat(type_, _zero(type_)))
            op = ir.Operation.create(
                "vector.maskedload",
                results=[type_],
                operands=[memref, *where, self.mask, zero],
                attributes=alignment(node.buffer),
                loc=location,
            )
        self.values[node.result] = op.results[0]

    def _gather(self, node: IndirectLoad, type_: Any, location: Any) -> Any:
        """Every lane from its own place in a row."""
        owner = self.owner
        outer = [self.scalar(v) for v in node.index[:-1]]
        zero = owner.constant(ir.DenseElementsAttr.get_splat(type_, _zero(type_)))
        return ir.Operation.create(
            "vector.gather",
            results=[type_],
            operands=[
                self.writer.memref(node.buffer),
                *outer,
                owner.number(0),
                self.lanes(owner.lanes.gathered[node]),
                self._all if self.mask is None else self.mask,
                zero,
            ],
            loc=location,
        ).results[0]

    @property
    def _all(self) -> Any:
        """A mask with all lanes set."""
        bits = self.vector(ir.IntegerType.get_signless(1))
        return self.owner.constant(ir.DenseElementsAttr.get_splat(bits, ir.BoolAttr.get(True)))

    def _check(self, node: Check) -> None:
        """One check for all lanes that count."""
        condition = self.lanes(node.condition)
        if self.mask is not None:
            left = index_op("arith.xori", self.mask, self._all)
            condition = index_op("arith.ori", condition, left)
        joined = join_lanes(Op("arith.andi", [], {}, []), condition)
        ir.Operation.create(
            "cf.assert",
            operands=[joined],
            attributes={"msg": node.message},
            loc=node.location or ir.Location.unknown(),
        )

    @property
    def _whole(self) -> bool:
        """Whether it is one vector with all of its lanes."""
        return self.mask is None and self.width == self.owner.width

    def _of_window(self, window: Window, offset: int, location: Any) -> Any:
        """A load from a row that is loaded at several offsets: lanes of two vectors."""
        if window not in self.windows:
            self.windows[window] = self._load_window(window, location)
        first, behind = self.windows[window]
        if not offset:
            return first
        return shuffle(first, behind, list(range(offset, offset + self.width)))

    def _load_window(self, window: Window, location: Any) -> tuple[Any, Any]:
        """The vector at the first offset, and as much of the next one as is needed."""
        owner = self.owner
        memref = self.writer.memref(window.buffer)
        *outer, last = (self.at(e) for e in window.index)
        type_ = self.vector(memref.type.element_type)
        first = ir.Operation.create(
            "vector.load", results=[type_], operands=[memref, *outer, last], loc=location
        )
        bits = [ir.BoolAttr.get(lane < window.reach) for lane in range(self.width)]
        mask = self.vector(ir.IntegerType.get_signless(1))
        behind = ir.Operation.create(
            "vector.maskedload",
            results=[type_],
            operands=[
                memref,
                *outer,
                index_op("arith.addi", last, owner.number(self.width)),
                owner.constant(ir.DenseElementsAttr.get(bits, mask)),
                owner.constant(ir.DenseElementsAttr.get_splat(type_, _zero(type_))),
            ],
            loc=location,
        )
        return first.results[0], behind.results[0]

    def run(self, carried: list[Any]) -> list[Any]:
        if self.mask is None:
            for fetch in self.owner.loop.prefetches:
                self._prefetch(fetch)
        return super().run(carried)

    def _prefetch(self, fetch: Prefetch) -> None:
        """Fetch the lines of one vector, or the one line that is the same for all."""
        memref = self.writer.memref(fetch.buffer)
        *outer, last = (self.at(e) for e in fetch.index)
        simd = self.owner.loop.simd
        assert simd is not None
        line = max(1, simd.line // fetch.buffer.bytes_per_element)
        i32 = ir.IntegerType.get_signless(32)
        moves = any(e.coefficient(self.owner.loop.var) for e in fetch.index)
        for lane in range(0, self.width if moves else 1, line):
            there = index_op("arith.addi", last, self.owner.number(lane)) if lane else last
            ir.Operation.create(
                "memref.prefetch",
                operands=[memref, *outer, there],
                attributes={
                    "isWrite": ir.BoolAttr.get(fetch.write),
                    "localityHint": ir.IntegerAttr.get(i32, 3 - fetch.level),
                    "isDataCache": ir.BoolAttr.get(True),
                },
            )

    def _of_parts(self, node: Load) -> Any:
        """The lanes of a strided load, deinterleaved from consecutive vectors."""
        group, offset = self.owner.lanes.interleaved[node]
        if group not in self.parts:
            parts = deinterleave([self._part(group, k) for k in range(group.step)], self.width)
            if group.backward:
                backward = list(reversed(range(self.width)))
                parts = [shuffle(part, part, backward) for part in parts]
            self.parts[group] = parts
        return self.parts[group][offset]

    def _part(self, group: Interleave, number: int) -> Any:
        """One of the vectors that interleaved loads take their lanes from."""
        owner, node = self.owner, group.first
        type_ = self.vector(node.buffer.element)
        mask = self._part_mask(group, number)
        name, more = "vector.load", []
        if mask is not None:
            zero = owner.constant(ir.DenseElementsAttr.get_splat(type_, _zero(type_)))
            name, more = "vector.maskedload", [mask, zero]
        return ir.Operation.create(
            name,
            results=[type_],
            operands=[
                self.writer.memref(node.buffer),
                *self._further(node, number, group.step if group.backward else 0),
                *more,
            ],
            loc=node.location or ir.Location.unknown(),
        ).results[0]

    def _further(self, node: AffineAccess, number: int, back: int = 0) -> list[Any]:
        """The index ``number`` vectors behind an access of the first lane, or of the last one.

        Args:
            node: the access.
            number: vectors.
            back: how far a lane is before the one before it; 0 to begin with the first lane.
        """
        *outer, last = self.where(node)
        if back:
            last = self.at(node.index[-1] - back * (self.width - 1))
        if number:
            last = index_op("arith.addi", last, self.owner.number(number * self.width))
        return [*outer, last]

    def _part_mask(self, group: Interleave, number: int) -> Any:
        """Which elements of one of the vectors exist; None if all do.

        Those behind the last access of the last lane may be outside of the buffer.
        """
        places = range(number * self.width, (number + 1) * self.width)
        lanes = [p // group.step + (p % group.step > group.reach) for p in places]
        if group.backward and self.mask is not None:
            lanes = [self.width - 1 - lane if lane < self.width else lane for lane in lanes]
        if self.mask is None:
            if max(lanes) < self.width:
                return None
            bits = [ir.BoolAttr.get(lane < self.width) for lane in lanes]
            mask = self.vector(ir.IntegerType.get_signless(1))
            return self.owner.constant(ir.DenseElementsAttr.get(bits, mask))
        known = constant_lanes(self.mask)
        if known is not None:
            bits = [ir.BoolAttr.get(lane < self.width and known[lane]) for lane in lanes]
            return self.owner.constant(ir.DenseElementsAttr.get(bits, self.mask.type))
        none = ir.DenseElementsAttr.get_splat(self.mask.type, ir.BoolAttr.get(False))
        return shuffle(self.mask, self.owner.constant(none), lanes)

    def _store_in_turns(self, node: Store) -> None:
        """Keep the value until the last one of its group is there, and store all of them."""
        group, offset = self.owner.lanes.interleaved[node]
        values = self.turns.setdefault(group, {})
        values[offset] = self.lanes(node.value)
        if node is not group.last:
            return
        parts = interleave([values[k] for k in range(group.step)], self.width)
        for number, part in enumerate(parts):
            mask = self._part_mask(group, number)
            memref, where = self.writer.memref(node.buffer), self._further(group.first, number)
            location = node.location or ir.Location.unknown()
            if mask is not None:
                store_masked(part, mask, memref, where, location, self.owner.number)
            elif self.width >= self.owner.width:
                self.owner.store_vector(node, part, where)
            else:
                ir.Operation.create("vector.store", operands=[part, memref, *where], loc=location)

    def store(self, node: AnyStore) -> None:
        if isinstance(node, Store) and node in self.owner.lanes.interleaved:
            self._store_in_turns(node)
            return
        value, where = self.lanes(node.value), self.where(node)
        if self.mask is None and self.width >= self.owner.width:
            self.owner.store_vector(node, value, where)
            return
        memref, location = self.writer.memref(node.buffer), node.location or ir.Location.unknown()
        if self.mask is not None:
            store_masked(value, self.mask, memref, where, location, self.owner.number)
        else:
            ir.Operation.create("vector.store", operands=[value, memref, *where], loc=location)


def _zero(vector: Any) -> Any:
    return zero_of(vector.element_type)
