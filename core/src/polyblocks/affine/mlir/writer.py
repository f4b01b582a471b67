"""From the model back to MLIR: the nests that changed replace their sources."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.buffers.copies import COPIES, Barrier, BoxCopy, Commit, Wait
from polyblocks.affine.element import zero_of
from polyblocks.affine.expr import Expr, Mod, Var
from polyblocks.affine.likeness import likeness, of_equal_size
from polyblocks.affine.mlir.constant_tables import constant_table
from polyblocks.affine.mlir.json_attributes import to_attribute
from polyblocks.affine.model import (
    Access,
    Alloca,
    Buffer,
    Check,
    ControlFlow,
    For,
    GuardedStore,
    Index,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Node,
    Op,
    Opaque,
    Sequence,
    Store,
    Value,
    walk,
)
from polyblocks.affine.multiply import UnitTile, is_tile
from polyblocks.affine.vectors.transpose_writer import write_square
from polyblocks.affine.vectors.vector_writer import write_loop
from polyblocks.attributes import (
    BARRIER,
    COMMIT,
    COPY,
    ESTIMATE_ATTRIBUTE,
    KERNEL_ATTRIBUTE,
    KIND_ATTRIBUTE,
    LANES_ATTRIBUTE,
    LAYOUT_ATTRIBUTE,
    LEVEL_ATTRIBUTE,
    MULTIPLY,
    PADDING_ATTRIBUTE,
    SCHEDULE_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
    STEPS_ATTRIBUTE,
    TILE_ATTRIBUTE,
    VECTOR_ATTRIBUTE,
    WAIT,
)
from polyblocks.mlir import dialect, ir


def write(before: Iterable[Nest | Opaque], after: Sequence) -> None:
    """Make the block of ``after`` say what ``after`` says; ``before`` is what it says now.

    The bodies of loops and branches in it are left as they are; those that are gone are erased.

    A changed nest is written where the last of its sources stands; nests that are gone are erased.
    Afterwards nothing is changed any more: the sources of every nest are its new operations.
    """
    kept = {
        id(op)
        for item in after.items
        if isinstance(item, Nest) and not item.changed
        for op in item.source
    }
    to_erase = [
        op for item in before if isinstance(item, Nest) for op in item.source if id(op) not in kept
    ]
    # Loops that became nests.
    to_erase += [
        item.operation
        for item in before
        if isinstance(item, ControlFlow) and not any(item is other for other in after.items)
    ]
    block = after.block
    # The code written for a nest stands between a mark and its anchor.
    written: list[tuple[Nest, Any, Any]] = []
    equal = _EqualNests([n for n in after.nests() if n.changed])
    with ir.Location.unknown():
        end: Any = block.operations[len(block.operations) - 1].operation
        for item in reversed(after.items):
            if isinstance(item, Opaque):
                end = item.operation
            elif not item.changed:
                end = item.source[0]
            else:
                anchor = item.source[-1] if item.source else end
                with ir.InsertionPoint(anchor):
                    end = ir.Operation.create("builtin.unrealized_conversion_cast")
                equal.write(item, _Writer(block, anchor))
                written.append((item, end, anchor))
        _find_sources(block, written)
        for op in reversed(to_erase):
            op.erase()
        for _, mark, _ in written:
            mark.erase()
        _drop_unused_buffers(block, after)


def write_nodes(nodes: Iterable[Node], anchor: Any) -> list[Any]:
    """Write loops and operations in front of an operation; their buffers have values.

    Returns:
        For each node what it is written as; None if it is a value that is there already.
    """
    writer = _Writer(anchor.block, anchor)
    with ir.Location.unknown(), ir.InsertionPoint(anchor):
        return [writer._node(node) for node in nodes]


def _find_sources(block: Any, written: list[tuple[Nest, Any, Any]]) -> None:
    """Tell every written nest its operations."""
    operations = [op.operation for op in block.operations]
    position = {op: i for i, op in enumerate(operations)}
    for nest, mark, anchor in written:
        nest.written(operations[position[mark] + 1 : position[anchor]])


def describe(attributes: Any, nest: Nest, name: str, estimate: Any) -> None:
    """Write a nest's name, kind, sources and estimate (None: not known) on an operation of it."""
    attributes[KERNEL_ATTRIBUTE] = ir.StringAttr.get(name)
    attributes[KIND_ATTRIBUTE] = ir.StringAttr.get(nest.kind)
    attributes[SOURCES_ATTRIBUTE] = ir.ArrayAttr.get([ir.StringAttr.get(s) for s in nest.sources])
    if estimate is not None:
        attributes[ESTIMATE_ATTRIBUTE] = estimate


@dataclass
class _Captured:
    """Buffers, values and variables from outside of a nest, in the order of its nodes."""

    buffers: list[Buffer]
    values: list[Value]
    variables: list[Var]

    @staticmethod
    def by(nest: Nest) -> _Captured:
        """Collect it."""
        buffers: dict[Buffer, None] = {}
        values: dict[Value, None] = {}
        variables: dict[Var, None] = {}
        for node in walk(nest.body):
            values.update((v, None) for v in node.uses if v.external is not None)
            variables.update((v, None) for v in node.variables() if v.value is not None)
            if isinstance(node, Access) and node.buffer.kind != "local":
                buffers[node.buffer] = None
            for fetch in node.prefetches if isinstance(node, For) else ():
                buffers[fetch.buffer] = None
                used = (v for e in fetch.index for v in e.variables())
                variables.update((v, None) for v in used if v.value is not None)
        return _Captured(list(buffers), list(values), list(variables))

    def written(self, writer: _Writer) -> list[Any]:
        """The MLIR values that say it."""
        return [
            *map(writer.memref, self.buffers),
            *(v.external for v in self.values),
            *(v.value for v in self.variables),
        ]

    @contextmanager
    def standing_for(self, arguments: list[Any]) -> Iterator[None]:
        """Let other MLIR values say it inside of the context."""
        holders: list[tuple[Any, str]] = [
            *((b, "value") for b in self.buffers),
            *((v, "external") for v in self.values),
            *((v, "value") for v in self.variables),
        ]
        before = [getattr(holder, name) for holder, name in holders]
        try:
            for (holder, name), argument in zip(holders, arguments, strict=True):
                setattr(holder, name, argument)
            yield
        finally:
            for (holder, name), value in zip(holders, before, strict=True):
                setattr(holder, name, value)


class _EqualNests:
    """Nests that differ only in captured values are written once, and then copied.

    MLIR copies an operation fifty times as fast as the writer makes one, and the layers of a
    network are mostly equal. A function around the nest is copied, and its arguments replaced.

    Args:
        nests: all that will be written.
    """

    def __init__(self, nests: Iterable[Nest]) -> None:
        self._keys = {nest: _key(nest) for nest in of_equal_size(nests)}
        self._counts = Counter(self._keys.values())
        #: A function around a nest by its key and the types of what it captures, and which of its
        #: operations say the nest's name.
        self._written: dict[Hashable, tuple[Any, list[int]]] = {}

    def write(self, nest: Nest, writer: _Writer) -> None:
        """Write a nest before the writer's anchor."""
        nests = self._keys.get(nest)
        if nests is None or self._counts[nests] == 1:
            writer.nest(nest)
            return
        captured = _Captured.by(nest)
        values = captured.written(writer)
        key = nests, tuple([v.type for v in values])
        if key not in self._written:
            self._written[key] = _as_function(nest, captured, values)
        function, named = self._written[key]
        copy = function.clone(ip=False)
        block = copy.regions[0].blocks[0]
        operations = [op.operation for op in block.operations][:-1]
        for op in operations:
            op.move_before(writer.anchor)
        for argument, value in zip(list(block.arguments), values, strict=True):
            argument.replace_all_uses_with(value)
        for position in named:
            describe(operations[position].attributes, nest, nest.name, nest.estimate)


def _key(nest: Nest) -> Hashable:
    """All that is written of a nest, but what it has from outside and what it is called."""
    nodes = list(walk(nest.body))
    paddings = tuple([n.padding for n in nodes if isinstance(n, (Load, Store))])
    messages = tuple([n.message for n in nodes if isinstance(n, Check)])
    described = bool(nest.name), nest.estimate is None
    return likeness(nest.body), paddings, messages, described


def _as_function(nest: Nest, captured: _Captured, values: list[Any]) -> tuple[Any, list[int]]:
    """A function around a nest, in no module, and which of its operations say the nest's name."""
    types = [v.type for v in values]
    function = ir.Operation.create(
        "func.func",
        regions=1,
        attributes={
            "sym_name": ir.StringAttr.get("nest"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
        },
        ip=False,
    )
    block = function.regions[0].blocks.append(*types)
    with ir.InsertionPoint(block):
        end = ir.Operation.create("func.return")
    with captured.standing_for(list(block.arguments)):
        named = _Writer(block, end).nest(nest)
    # Each copy has its own.
    for node in walk(nest.body):
        if isinstance(node, Alloca):
            node.buffer.value = None
    operations = [op.operation for op in block.operations]
    return function, [operations.index(op) for op in named]


class _Writer:
    def __init__(self, block: Any, anchor: Any) -> None:
        self.block = block
        self.anchor = anchor
        self.values: dict[Value, Any] = {}
        self.variables: dict[Var, Any] = {}
        self.unknown = ir.Location.unknown()
        self.index = ir.IndexType.get()

    def nest(self, nest: Nest) -> list[Any]:
        """Write one nest before the anchor; returns what says the nest's name of it."""
        named: list[Any] = []
        with ir.InsertionPoint(self.anchor):
            for node in nest.body:
                written = self._node(node)
                if isinstance(node, For) and nest.name:
                    named.append(written)
                    describe(written.attributes, nest, nest.name, nest.estimate)
                    widths = {n.simd.width for n in walk([node]) if isinstance(n, For) and n.simd}
                    if widths:
                        width = ir.DenseI64ArrayAttr.get(sorted(widths))
                        written.attributes[VECTOR_ATTRIBUTE] = width
        return named

    def _node(self, node: Node) -> Any:
        if isinstance(node, Op):
            op = ir.Operation.create(
                node.name,
                results=[r.type for r in node.results],
                operands=[self.use(v) for v in node.operands],
                attributes=node.attributes,
                loc=node.location or self.unknown,
            )
            for result, value in zip(node.results, op.results, strict=True):
                self.values[result] = value
            return op
        if isinstance(node, Index):
            value = self.apply(node.expr)
            self.values[node.result] = value
            return None if isinstance(value.owner, ir.Block) else value.owner.operation
        if isinstance(node, Load):
            op = self._load_where(node) if node.where else self._load(node)
            self.values[node.result] = op.results[0]
            return op
        if isinstance(node, Store):
            amap, operands = self._map(node.index)
            return ir.Operation.create(
                "affine.store",
                operands=[self.use(node.value), self.memref(node.buffer), *operands],
                attributes={"map": amap, **_padding(node)},
                loc=node.location or self.unknown,
            )
        if isinstance(node, IndirectLoad):
            op = ir.Operation.create(
                "memref.load",
                results=[node.result.type],
                operands=[self.memref(node.buffer), *map(self.use, node.index)],
                loc=node.location or self.unknown,
            )
            self.values[node.result] = op.results[0]
            return op
        if isinstance(node, IndirectStore):
            return self._indirect_store(node)
        if isinstance(node, GuardedStore):
            scf = dialect("scf")
            branch = scf.IfOp(self.use(node.condition))
            with ir.InsertionPoint(branch.then_block):
                self._indirect_store(node)
                scf.YieldOp([])
            return branch.operation
        if isinstance(node, Check):
            return ir.Operation.create(
                "cf.assert",
                operands=[self.use(node.condition)],
                attributes={"msg": node.message},
                loc=node.location or self.unknown,
            )
        if isinstance(node, Alloca):
            return self._alloca(node.buffer)
        if isinstance(node, (Commit, Wait, Barrier)):
            return self._synchronization(node)
        # Atomic updates are formed in kernels, which are written elsewhere.
        assert isinstance(node, For)
        if node.copy:
            return self._copy(BoxCopy.of(node))
        if node.unit and is_tile(node):
            return self._multiply(UnitTile.of(node))
        return self._parallel(node) if node.level else self._for(node)

    def _multiply(self, tile: UnitTile) -> Any:
        """A matrix unit's product of tiles: its own variables are the symbols of the maps."""
        accesses = {
            "a": (tile.a, (tile.row, tile.step)),
            "b": (tile.b, (tile.step, tile.column)),
            "accumulator": (tile.accumulator, (tile.row, tile.column)),
        }
        own = {tile.row, tile.column, tile.step}
        indices = [e for access, _ in accesses.values() for e in access.index]
        around = dict.fromkeys(v for e in indices for v in e.variables() if v not in own)
        dims = {var: ir.AffineDimExpr.get(i) for i, var in enumerate(around)}
        maps = {}
        for name, (access, variables) in accesses.items():
            symbols = {var: ir.AffineSymbolExpr.get(i) for i, var in enumerate(variables)}
            results = [affine_expr(e, dims | symbols) for e in access.index]
            maps[name] = ir.AffineMapAttr.get(ir.AffineMap.get(len(dims), 2, results))
        memrefs = [self.memref(access.buffer) for access, _ in accesses.values()]
        return ir.Operation.create(
            MULTIPLY,
            operands=[*memrefs, *map(self.variable, around)],
            attributes={
                "unit": ir.StringAttr.get(tile.multiply.unit),
                "shape": ir.DenseI64ArrayAttr.get(list(tile.shape)),
                **maps,
            },
            loc=tile.multiply.location or self.unknown,
        )

    def _copy(self, copy: BoxCopy) -> Any:
        """A copy of a box: its own variables are the symbols of the maps."""
        source, destination = copy.source, copy.destination
        bounds = [e for loop in copy.loops for e in loop.bounds]
        own = set(copy.variables)
        exprs = (*source.exprs, *destination.index, *bounds)
        around = dict.fromkeys(v for e in exprs for v in e.variables() if v not in own)
        known: dict[Var, Any] = {v: ir.AffineDimExpr.get(i) for i, v in enumerate(around)}
        known |= {v: ir.AffineSymbolExpr.get(i) for i, v in enumerate(copy.variables)}

        def map_of(index: tuple[Expr, ...]) -> Any:
            results = [affine_expr(e, known) for e in index]
            return ir.AffineMapAttr.get(ir.AffineMap.get(len(around), len(own), results))

        attributes = {
            "kind": ir.StringAttr.get(copy.kind),
            "shape": ir.DenseI64ArrayAttr.get([v.extent for v in copy.variables]),
            "from": map_of(source.index),
            "to": map_of(destination.index),
            **_padding(source),
        }
        for name in ("lower", "upper"):
            if any(getattr(loop, name) for loop in copy.loops):
                maps = [map_of(getattr(loop, name)) for loop in copy.loops]
                attributes[name] = ir.ArrayAttr.get(maps)
        if source.where:
            attributes["where"] = map_of(source.where)
        if copy.conversions:
            attributes["conversions"] = ir.ArrayAttr.get(list(map(_conversion, copy.conversions)))
        return ir.Operation.create(
            COPY,
            operands=[
                *(self.memref(source.buffer), self.memref(destination.buffer)),
                *map(self.variable, around),
            ],
            attributes=attributes,
            loc=source.location or self.unknown,
        )

    def _synchronization(self, node: Commit | Wait | Barrier) -> Any:
        name, attributes = COMMIT, {}
        if isinstance(node, Wait):
            i64 = ir.IntegerType.get_signless(64)
            name, attributes = WAIT, {"pending": ir.IntegerAttr.get(i64, node.pending)}
        if not isinstance(node, Barrier) and node.of != COPIES:
            attributes = {**attributes, "of": ir.StringAttr.get(node.of)}
        if isinstance(node, Barrier):
            name, attributes = BARRIER, {"scope": ir.StringAttr.get(node.scope)}
        location = node.location or self.unknown
        return ir.Operation.create(name, attributes=attributes, loc=location)

    def _indirect_store(self, node: IndirectStore | GuardedStore) -> Any:
        where = map(self.use, node.index)
        return ir.Operation.create(
            "memref.store",
            operands=[self.use(node.value), self.memref(node.buffer), *where],
            loc=node.location or self.unknown,
        )

    def _load(self, node: Load) -> Any:
        amap, operands = self._map(node.index)
        return ir.Operation.create(
            "affine.load",
            results=[node.result.type],
            operands=[self.memref(node.buffer), *operands],
            attributes={"map": amap, **_padding(node)},
            loc=node.location or self.unknown,
        )

    def _load_where(self, node: Load) -> Any:
        """A load where conditions hold, and zero elsewhere."""
        amap, operands = self._map(node.where)
        exprs = list(amap.value.results)
        holds = ir.IntegerSet.get(amap.value.n_dims, 0, exprs, [False] * len(exprs))
        type_, location = node.result.type, node.location or self.unknown
        op = ir.Operation.create(
            "affine.if",
            results=[type_],
            operands=operands,
            attributes={"condition": ir.IntegerSetAttr.get(holds)},
            regions=2,
            loc=location,
        )
        for region, holds_there in zip(op.regions, (True, False), strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                made = self._load(node) if holds_there else self._zero(type_)
                dialect("affine").AffineYieldOp([made.results[0]])
        return op

    def _zero(self, type_: Any) -> Any:
        value = {"value": zero_of(type_)}
        return ir.Operation.create("arith.constant", results=[type_], attributes=value)

    def apply(self, expr: Expr) -> Any:
        """An affine expression of the loops around, as a value of type index."""
        if expr.const == 0 and len(expr.terms) == 1 and expr.terms[0][1] == 1:
            atom = expr.terms[0][0]
            if isinstance(atom, Var):
                return self.variable(atom)
        if expr.is_constant:
            value = ir.IntegerAttr.get(self.index, expr.const)
            op = ir.Operation.create(
                "arith.constant", results=[self.index], attributes={"value": value}
            )
        else:
            amap, operands = self._map((expr,))
            op = ir.Operation.create(
                "affine.apply", results=[self.index], operands=operands, attributes={"map": amap}
            )
        return op.results[0]

    def _alloca(self, buffer: Buffer) -> Any:
        space = ir.StringAttr.get(buffer.space) if buffer.space else None
        type_ = ir.MemRefType.get(list(buffer.shape), buffer.element, memory_space=space)
        i64 = ir.IntegerType.get_signless(64)
        attributes = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            "alignment": ir.IntegerAttr.get(i64, 64),
        }
        if buffer.layout:
            layout = [dataclasses.asdict(s) | {"masks": list(s.masks)} for s in buffer.layout]
            attributes[LAYOUT_ATTRIBUTE] = to_attribute(layout)
        op = ir.Operation.create("memref.alloca", results=[type_], attributes=attributes)
        buffer.value = op.results[0]
        return op

    def _for(self, node: For) -> Any:
        if node.simd is not None:
            return write_square(self, node) if node.simd.square else write_loop(self, node)
        affine = dialect("affine")
        op = self.open_loop(node, [self.use(v) for v in node.inits])
        block = op.regions[0].blocks[0]
        for argument, value in zip(node.arguments, list(block.arguments)[1:], strict=True):
            self.values[argument] = value
        with ir.InsertionPoint(block):
            for child in node.body:
                self._node(child)
            affine.AffineYieldOp([self.use(v) for v in node.yields])
        for result, value in zip(node.results, op.results, strict=True):
            self.values[result] = value
        return op.operation

    def open_loop(self, node: For, inits: list[Any]) -> Any:
        """An ``affine.for`` without body that carries ``inits``; its variable is known inside."""
        op = self._for_op(node, inits)
        if node.tile:
            op.operation.attributes[TILE_ATTRIBUTE] = ir.UnitAttr.get()
        if node.lanes:
            i64 = ir.IntegerType.get_signless(64)
            op.operation.attributes[LANES_ATTRIBUTE] = ir.IntegerAttr.get(i64, node.lanes)
        if node.unit:
            op.operation.attributes[STEPS_ATTRIBUTE] = ir.StringAttr.get(node.unit)
        if node.schedule is not None:
            op.operation.attributes[SCHEDULE_ATTRIBUTE] = to_attribute(node.schedule)
        self.variables[node.var] = op.regions[0].blocks[0].arguments[0]
        return op

    def _for_op(self, node: For, inits: list[Any]) -> Any:
        affine = dialect("affine")
        if not node.bounded:
            return affine.AffineForOp(0, node.var.extent, 1, inits)
        lower, upper = node.lower, node.upper
        if max((e.range()[0] for e in lower), default=-1) < 0:
            lower = (Expr(0), *lower)
        if min((e.range()[1] for e in upper), default=node.var.extent + 1) > node.var.extent:
            upper = (*upper, Expr(node.var.extent))
        low, starts = self._map(lower)
        high, ends = self._map(upper)
        return affine.AffineForOp(
            low.value,
            high.value,
            1,
            inits,
            lower_bound_operands=starts,
            upper_bound_operands=ends,
        )

    def _parallel(self, node: For) -> Any:
        zero = ir.AffineMap.get(0, 0, [ir.AffineConstantExpr.get(0)])
        high = ir.AffineMap.get(0, 0, [ir.AffineConstantExpr.get(node.var.extent)])
        one = ir.DenseElementsAttr.get(_ones(), type=ir.IntegerType.get_signless(32))
        i64 = ir.IntegerType.get_signless(64)
        op = ir.Operation.create(
            "affine.parallel",
            regions=1,
            attributes={
                "reductions": ir.ArrayAttr.get([]),
                "lowerBoundsMap": ir.AffineMapAttr.get(zero),
                "lowerBoundsGroups": one,
                "upperBoundsMap": ir.AffineMapAttr.get(high),
                "upperBoundsGroups": one,
                "steps": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, 1)]),
                LEVEL_ATTRIBUTE: ir.StringAttr.get(node.level),
            },
        )
        block = op.regions[0].blocks.append(self.index)
        self.variables[node.var] = block.arguments[0]
        with ir.InsertionPoint(block):
            for child in node.body:
                self._node(child)
            dialect("affine").AffineYieldOp([])
        return op

    def use(self, value: Value) -> Any:
        """The MLIR value of a value that is already written."""
        return value.external if value.external is not None else self.values[value]

    def memref(self, buffer: Buffer) -> Any:
        """The MLIR value of a buffer, which is allocated if it has none yet, or is a constant."""
        if buffer.value is None:
            type_ = ir.MemRefType.get(list(buffer.shape), buffer.element)
            if buffer.viewed is not None and buffer.element != buffer.viewed.element:
                self._words(buffer, type_)
            elif buffer.viewed is not None:
                self._flat_view(buffer, type_)
            elif buffer.constant is not None:
                buffer.value = constant_table(self.block, type_, buffer.constant)
            else:
                with ir.InsertionPoint.at_block_begin(self.block):
                    buffer.value = dialect("memref").AllocOp(type_, [], []).result
        return buffer.value

    def _flat_view(self, buffer: Buffer, type_: Any) -> None:
        """A one-dimensional view of the whole of what it views, right behind that.

        Buffers of the enclosing block are viewed where the block begins.
        """
        assert buffer.viewed is not None
        source = self.memref(buffer.viewed)
        point = self._insertion_after(source)
        offset = source.type.get_strides_and_offset()[1]
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        operands = [source]
        with point:
            if offset == dynamic:
                # A view that begins at a run-time offset: so does a view of it.
                parts = dialect("memref").ExtractStridedMetadataOp(source)
                operands.append(parts.operation.results[1])
            if offset:
                layout = ir.StridedLayoutAttr.get(offset, [1])
                type_ = ir.MemRefType.get(type_.shape, type_.element_type, layout)
            view = ir.Operation.create(
                "memref.reinterpret_cast",
                results=[type_],
                operands=operands,
                attributes={
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(operands) - 1, 0, 0]),
                    "static_offsets": ir.DenseI64ArrayAttr.get([offset]),
                    "static_sizes": ir.DenseI64ArrayAttr.get(list(buffer.shape)),
                    "static_strides": ir.DenseI64ArrayAttr.get([1]),
                },
            )
        buffer.value = view.results[0]

    def _words(self, buffer: Buffer, type_: Any) -> None:
        """A view of elements as words, in which only the type of the memory differs."""
        assert buffer.viewed is not None
        source = self.memref(buffer.viewed)
        with self._insertion_after(source):
            buffer.value = ir.Operation.create(
                "builtin.unrealized_conversion_cast", results=[type_], operands=[source]
            ).results[0]

    def _insertion_after(self, source: Any) -> Any:
        """Where a view of a buffer is made."""
        owner = source.owner
        if isinstance(owner, ir.Block) or owner.operation.block != self.block:
            return ir.InsertionPoint.at_block_begin(self.block)
        return ir.InsertionPoint.after(owner.operation)

    def variable(self, var: Var) -> Any:
        """The MLIR value of a loop's variable."""
        return var.value if var.value is not None else self.variables[var]

    def _map(self, index: tuple[Expr, ...]) -> tuple[Any, list[Any]]:
        order: dict[Var, int] = {}
        for expr in index:
            for var in expr.variables():
                order.setdefault(var, len(order))
        dims = {var: ir.AffineDimExpr.get(i) for var, i in order.items()}
        results = [affine_expr(e, dims) for e in index]
        amap = ir.AffineMap.get(len(order), 0, results)
        return ir.AffineMapAttr.get(amap), [self.variable(v) for v in order]


def affine_expr(expr: Expr, known: Mapping[Var, Any]) -> Any:
    """An expression in MLIR, of the dimension or symbol that each variable is."""
    result: Any = None
    for atom, coefficient in expr.terms:
        if isinstance(atom, Var):
            term = known[atom]
        elif isinstance(atom, Mod):
            term = ir.AffineExpr.get_mod(affine_expr(atom.dividend, known), atom.divisor)
        else:
            term = ir.AffineExpr.get_floor_div(affine_expr(atom.dividend, known), atom.divisor)
        if coefficient != 1:
            term = term * coefficient
        result = term if result is None else result + term
    if result is None:
        return ir.AffineConstantExpr.get(expr.const)
    return result + expr.const if expr.const else result


def _ones() -> Any:
    import numpy as np

    return np.ones(1, dtype=np.int32)


def _drop_unused_buffers(block: Any, sequence: Sequence) -> None:
    """Erase allocations and views that nothing uses any more."""
    from polyblocks.affine.mlir.views import VIEWS

    removable = VIEWS | {"memref.alloc", "memref.alloca", "memref.get_global", "arith.constant"}
    removable |= {"memref.extract_strided_metadata"}
    holder = {b.value: b for b in sequence.buffers if b.value is not None}
    for op in reversed(list(block.operations)):
        o = op.operation
        if o.name in removable and not any(True for r in o.results for _ in r.uses):
            for result in o.results:
                if result in holder:
                    holder[result].value = None
            o.erase()


def _padding(node: Load | Store) -> dict[str, Any]:
    """The attribute of the paddings that an access is of, if there are some."""
    if not node.padding:
        return {}
    return {PADDING_ATTRIBUTE: ir.DenseI64ArrayAttr.get(sorted(node.padding))}


def _conversion(op: Op) -> Any:
    """An operation of one operand and one result, as an attribute of a copy."""
    return ir.DictAttr.get(
        {
            "name": ir.StringAttr.get(op.name),
            "type": ir.TypeAttr.get(op.results[0].type),
            "attributes": ir.DictAttr.get(op.attributes),
        }
    )
