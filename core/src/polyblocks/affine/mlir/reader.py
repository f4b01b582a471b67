"""From MLIR to the model: reads ``@main`` after bufferization into nests and opaque operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polyblocks.affine.element import element_bytes, printed, zero_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.index_values import apply_map
from polyblocks.affine.mlir.json_attributes import from_attribute
from polyblocks.affine.mlir.views import VIEWS, IndexMap, view_index
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    Check,
    ControlFlow,
    For,
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
    around,
)
from polyblocks.affine.multiply import Multiply, UnitTile
from polyblocks.affine.ops import INTRINSIC, Ops
from polyblocks.attributes import (
    ESTIMATE_ATTRIBUTE,
    KERNEL_ATTRIBUTE,
    KIND_ATTRIBUTE,
    LANES_ATTRIBUTE,
    LEVEL_ATTRIBUTE,
    MULTIPLY,
    PADDING_ATTRIBUTE,
    REGION_ATTRIBUTE,
    SCHEDULE_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
    TILE_ATTRIBUTE,
)
from polyblocks.mlir import ir
from polyblocks.target import DOT_PREFIX

#: Dialects whose operations without regions compute scalars from scalars.
SCALAR_DIALECTS = ("arith.", "math.", "complex.", "index.")
#: Further operations allowed at the top of ``@main`` without a loop around them.
STRAIGHT_LINE = {
    "affine.apply",
    "affine.load",
    "affine.store",
    "cf.assert",
    "memref.load",
    "memref.store",
}
#: Terminators of blocks.
TERMINATORS = {"affine.yield", "func.return", "scf.condition", "scf.yield"}
#: Larger constants are left in memory.
MAX_CONSTANT = 4096


class _Unreadable(Exception):
    """This operation is not described by the model."""


def read(module: Any) -> Sequence:
    """Read the body of ``@main``.

    Scalars that say where views begin, or that several nests use, are part of no nest.
    """
    from polyblocks import signature

    rows = signature_rows(module)
    block = signature.main_of(module).body.blocks[0]
    reader = _Reader(module, block)
    for i, argument in enumerate(block.arguments):
        if isinstance(argument.type, ir.MemRefType):
            # A hand-written module may have no signature; nothing is assumed of its arguments.
            row = rows[i] if rows else {"role": "input", "constant": False}
            lasts = row["role"] == "input" and row["constant"] and row["updates"] is None
            reader.argument(argument, str(row["role"]), bool(lasts))
    return reader.read()


class _Reader:
    """Reads one block.

    Attributes:
        around: the reader of the block around, for the body of a loop or branch.
        exprs: values of type index that are affine in the variables of loops around the block.
    """

    def __init__(
        self, module: Any, block: Any, around: _Reader | None = None, name: str = ""
    ) -> None:
        self.module = module
        self.block = block
        self.around = around
        self.name = name
        self.buffers: dict[Any, Buffer] = {}
        self.constants: dict[Any, Any] = dict(around.constants) if around else {}
        self.exprs: dict[Any, Expr] = dict(around.exprs) if around else {}
        self.items: list[Nest | Opaque] = []
        self.run: list[Any] = []
        self.views: dict[Any, tuple[Any, IndexMap]] = dict(around.views) if around else {}
        #: Memrefs that operations without description make, and the buffers that they may be.
        self.handed: dict[Any, set[Buffer]] = {}
        if around is not None:
            for value, buffers in around.handed.items():
                found = {self._find_buffer(b.value) for b in buffers}
                self.handed[value] = {b for b in found if b is not None}

    def argument(self, value: Any, kind: str, lasting: bool) -> None:
        """Take note of a buffer that the block's function is called with."""
        self._buffer(value, kind).lasting = lasting

    def read(self) -> Sequence:
        """The block as a sequence."""
        for op in self.block.operations:
            self._top(op.operation)
        self._flush()
        sequence = Sequence(self.items, list(self.buffers.values()), self.block, self.name)
        for item in self.items:
            if isinstance(item, ControlFlow):
                for body in item.bodies:
                    sequence.contains(body)
        return sequence

    # Top-level operations

    def _top(self, op: Any) -> None:
        name = op.name
        if name in ("memref.alloc", "memref.alloca"):
            self._buffer(op.results[0], "alloc")
        elif name == "memref.get_global":
            buffer = self._buffer(op.results[0], "global")
            buffer.constant = self._global_values(op, buffer)
        elif name in VIEWS and self._find_buffer(op.operands[0]) is not None:
            self._buffer(op.results[0], "other", base=self._find_buffer(op.operands[0]))
            resolve = view_index(op, self.exprs)
            if resolve is not None:
                self.views[op.results[0]] = (op.operands[0], resolve)
        elif name == "arith.constant":
            self.constants[op.results[0]] = op
        elif REGION_ATTRIBUTE in op.attributes:
            self._flush()
            self._region(op)
        elif name == "affine.apply" and self._apply(op):
            # Its value is an expression from here on; the operation stays for others.
            pass
        elif name == "affine.for" and len(op.results):
            # The operations behind it store its results.
            self.run.append(op)
        elif name in ("affine.for", "affine.parallel"):
            self._flush()
            self._nest([op])
        elif name == "memref.copy":
            self._flush()
            self.items.append(self._copy(op))
        elif name in TERMINATORS:
            self._flush()
        elif _is_straight_line(op):
            self.run.append(op)
        else:
            self._flush()
            self._opaque(op)

    def _flush(self) -> None:
        """End a run of straight-line operations: nests, cut where no value is carried on."""
        run, self.run = self.run, []
        segment: list[Any] = []
        # Operations of the segment whose users have not all been seen yet.
        missing: set[Any] = set()
        apart = self._for_others(run)
        # Loads for others that come behind a store of the segment, by what they load from.
        behind: dict[Buffer, Any] = {}
        for op in run:
            if op in apart:
                source = self._loaded_from(op)
                if source is not None and source in self._stored_by(segment):
                    behind[source] = op
                elif source is not None:
                    self._opaque(op)
                continue
            if behind and behind.keys() & self._stored_by([op]):
                # The load is neither before nor behind the nest that this would be.
                self._opaque_all([*segment, *behind.values()])
                segment, missing, behind = [], set(), {}
            segment.append(op)
            missing.discard(op)
            missing.update(
                owner
                for result in op.results
                for use in result.uses
                if (owner := _owner_at_top(use.owner, self.block)) not in segment
            )
            ends = op.name.endswith(".store") or op.name == "affine.for"
            if ends and not missing:
                self._nest(segment)
                self._opaque_all(behind.values())
                segment, behind = [], {}
        # The remainder stores nothing, or hands values to operations that no nest describes.
        self._opaque_all([*segment, *behind.values()])

    def _opaque_all(self, ops: Iterable[Any]) -> None:
        """Operations that are part of no nest, as far as they touch memory, as they stand."""
        chosen = set(ops)
        for op in self.block.operations if chosen else ():
            if op.operation in chosen and op.operation.name.split(".")[0] in ("affine", "memref"):
                self._opaque(op.operation)

    def _loaded_from(self, op: Any) -> Buffer | None:
        """The memory that a load reads; None of other operations, and of memory that is unknown."""
        if op.name not in ("affine.load", "memref.load"):
            return None
        found = self._find_buffer(op.operands[0])
        return None if found is None else found.base

    def _stored_by(self, ops: Iterable[Any]) -> set[Buffer]:
        """The memory that operations store to, those inside of them included."""
        found: set[Buffer] = set()

        def visit(op: Any) -> Any:
            if op.name.endswith(".store"):
                buffer = self._find_buffer(op.operands[1])
                if buffer is not None:
                    found.add(buffer.base)
            return ir.WalkResult.ADVANCE

        for op in ops:
            op.walk(visit)
        return found

    def _for_others(self, run: list[Any]) -> set[Any]:
        """The operations of a run that compute where views begin, or what users behind it need."""
        found: set[Any] = set()
        inside = set(run)
        for op in reversed(run):
            users = [use.owner.operation for result in op.results for use in result.uses]
            if any(user.name in VIEWS or user in found for user in users) or (
                not len(op.regions)
                and any(_owner_at_top(user, self.block) not in inside for user in users)
            ):
                found.add(op)
        return found

    def _nest(self, ops: list[Any]) -> None:
        values: dict[Any, Value] = {}
        try:
            body: list[Node] = []
            for op in ops:
                self._node(op, body, values, {})
        except _Unreadable:
            for op in ops:
                self._opaque(op)
            return
        nest = Nest(body, list(ops))
        named = [op.attributes for op in ops if KERNEL_ATTRIBUTE in op.attributes]
        if len(named) == 1:
            (attributes,) = named
            nest.name = attributes[KERNEL_ATTRIBUTE].value
            nest.kind = attributes[KIND_ATTRIBUTE].value
            nest.sources = [s.value for s in attributes[SOURCES_ATTRIBUTE]]
            if ESTIMATE_ATTRIBUTE in attributes:
                nest.estimate = attributes[ESTIMATE_ATTRIBUTE]
        self.items.append(nest)

    def _apply(self, op: Any) -> bool:
        """Learn what an ``affine.apply`` of variables of loops around is; whether it is one."""
        if not len(op.operands) or not all(v in self.exprs for v in op.operands):
            return False
        (expr,) = self._map(op.attributes["map"], list(op.operands), {}, {})
        self.exprs[op.results[0]] = expr
        return True

    def _region(self, op: Any) -> None:
        """A loop or branch: a sequence for each of its blocks."""
        if any(isinstance(v.type, ir.MemRefType) for v in (*op.operands, *op.results)):
            self._opaque(op)
            return
        bodies = []
        name = f"{op.attributes[REGION_ATTRIBUTE].value}_"
        for block in (block for region in op.regions for block in region.blocks):
            inner = _Reader(self.module, block, self, name)
            if op.name == "affine.for":
                variable = block.arguments[0]
                loop, first = self._bounds(op, {}, {})
                if first == Expr.of(loop.var):
                    loop.var.value = variable
                    inner.exprs[variable] = first
            bodies.append(inner.read())
        self.items.append(ControlFlow(op, set(), set(), bodies))

    def _copy(self, op: Any) -> Nest | Opaque:
        source, target = (self._find_buffer(v) for v in op.operands)
        if source is None or target is None or any(e < 0 for e in source.shape):
            return self._as_opaque(op)
        loops = [Var(e) for e in source.shape]
        index = tuple(Expr.of(v) for v in loops)
        value = Value(source.element)
        places = [self._place(v, index) for v in op.operands]
        if places[0] == places[1]:
            # A part of a tensor that was made in its place.
            return Nest([], [op], changed=True)
        body: list[Node] = [
            Load(value, *places[0], op.location),
            Store(value, *places[1], op.location),
        ]
        return Nest(around(loops, body), [op], changed=True)

    def _opaque(self, op: Any) -> None:
        self.items.append(self._as_opaque(op))

    def _as_opaque(self, op: Any) -> Opaque:
        touched: set[Buffer] = set()

        def visit(inner: Any) -> Any:
            for operand in inner.operands:
                buffer = self._find_buffer(operand)
                if buffer is not None:
                    touched.add(buffer)
                touched.update(self.handed.get(operand, ()))
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        for result in op.results:
            if isinstance(result.type, ir.MemRefType):
                # It may be any of them.
                self.handed[result] = set(touched)
        name = op.name
        if name in ("affine.load", "memref.load"):
            return Opaque(op, touched, set())
        return Opaque(op, set(touched), set(touched))

    # Nodes of a nest

    def _node(
        self, op: Any, body: list[Node], values: dict[Any, Value], variables: dict[Any, Expr]
    ) -> None:
        name = op.name
        if name == "affine.for":
            body.append(self._loop(op, body, values, variables))
        elif name == "affine.load" and self._is_at_run_time(op, variables):
            where = self._places(op, body, values, variables)
            buffer = self._get_buffer(op.operands[0])
            body.append(
                IndirectLoad(self._define(op.results[0], values), buffer, where, op.location)
            )
        elif name == "affine.load":
            result = self._define(op.results[0], values)
            index = self._map(op.attributes["map"], list(op.operands)[1:], values, variables)
            buffer, index = self._place(op.operands[0], index)
            body.append(Load(result, buffer, index, op.location, padding=_padding(op)))
        elif name == "affine.if":
            body.append(self._load_where(op, values, variables))
        elif name == "affine.store":
            index = self._map(op.attributes["map"], list(op.operands)[2:], values, variables)
            buffer, index = self._place(op.operands[1], index)
            value = self._use(op.operands[0], body, values, variables)
            body.append(Store(value, buffer, index, op.location, padding=_padding(op)))
        elif name == "memref.load":
            where = [self._use(v, body, values, variables) for v in list(op.operands)[1:]]
            buffer = self._get_buffer(op.operands[0])
            body.append(
                IndirectLoad(self._define(op.results[0], values), buffer, where, op.location)
            )
        elif name == "memref.store":
            where = [self._use(v, body, values, variables) for v in list(op.operands)[2:]]
            buffer = self._get_buffer(op.operands[1])
            value = self._use(op.operands[0], body, values, variables)
            body.append(IndirectStore(value, buffer, where, op.location))
        elif name == "cf.assert":
            condition = self._use(op.operands[0], body, values, variables)
            body.append(Check(condition, op.attributes["msg"], op.location))
        elif name == "affine.apply":
            known = (variables, self.exprs, self.constants)
            if all(any(v in each for each in known) for v in op.operands):
                (expr,) = self._map(op.attributes["map"], list(op.operands), values, variables)
                variables[op.results[0]] = expr
            else:
                operands = [self._use(v, body, values, variables) for v in op.operands]
                applied = apply_map(op, operands, body)
                if applied is None:
                    raise _Unreadable
                values[op.results[0]] = applied
        elif name.startswith((*SCALAR_DIALECTS, INTRINSIC)) and not len(op.regions):
            operands = [self._use(v, body, values, variables) for v in op.operands]
            attributes = {n: op.attributes[n] for n in op.attributes}
            results = [self._define(r, values) for r in op.results]
            node = Multiply if name == INTRINSIC and _is_of_a_unit(op) else Op
            body.append(node(name, operands, attributes, results, op.location))
        elif name == MULTIPLY:
            body.append(self._multiply(op, values, variables))
        elif name == "memref.alloca" and not len(op.operands):
            buffer = self._buffer(op.results[0], "local")
            body.append(Alloca(buffer))
        elif name == "affine.parallel":
            body.append(self._level(op, values, variables))
        elif name == "affine.yield":
            raise _Unreadable
        else:
            raise _Unreadable

    def _load_where(self, op: Any, values: dict[Any, Value], variables: dict[Any, Expr]) -> Load:
        """A load under conditions, which is zero where they do not hold."""
        blocks = [list(block.operations) for region in op.regions for block in region.blocks]
        if len(op.results) != 1 or [len(b) for b in blocks] != [2, 2]:
            raise _Unreadable
        (load, yielded), (zero, otherwise) = ([o.operation for o in b] for b in blocks)
        if (
            (load.name, zero.name) != ("affine.load", "arith.constant")
            or [list(y.operands) for y in (yielded, otherwise)] != [[load.result], [zero.result]]
            or zero.attributes["value"] != zero_of(zero.result.type)
            or self._is_at_run_time(load, variables)
        ):
            raise _Unreadable
        where = self._map(_map_of_set(op.attributes["condition"]), list(op.operands), {}, variables)
        index = self._map(load.attributes["map"], list(load.operands)[1:], values, variables)
        buffer, index = self._place(load.operands[0], index)
        result = self._define(op.results[0], values)
        return Load(result, buffer, index, load.location, where, _padding(load))

    def _multiply(self, op: Any, values: dict[Any, Value], variables: dict[Any, Expr]) -> For:
        """The loops that a matrix unit's product of tiles stands for."""
        rows, columns, steps = ir.DenseI64ArrayAttr(op.attributes["shape"])
        row, column, step = Var(rows), Var(columns), Var(steps)
        places = []
        for memref, name, own in zip(
            op.operands,
            ("a", "b", "accumulator"),
            ((row, step), (step, column), (row, column)),
            strict=False,
        ):
            amap = ir.AffineMapAttr(op.attributes[name])
            dims = list(op.operands)[3:]
            index = self._map(amap, dims, values, variables, [Expr.of(v) for v in own])
            places.append(self._place(memref, index))
        (first, a), (second, b), (sums, at) = places
        zero, total, carried = (Value(sums.element) for _ in range(3))
        x, y = Value(first.element), Value(second.element)
        ops = Ops(location=op.location)
        ops.multiply(ir.StringAttr(op.attributes["unit"]).value, carried, x, y)
        (multiply,) = ops.out
        assert isinstance(multiply, Multiply)
        return UnitTile(
            *(row, column, step),
            Store(total, sums, at, op.location),
            Load(x, first, a, op.location),
            Load(y, second, b, op.location),
            Op("arith.constant", [], {"value": zero_of(sums.element)}, [zero], op.location),
            multiply,
        ).loops()

    def _loop(
        self, op: Any, body: list[Node], values: dict[Any, Value], variables: dict[Any, Expr]
    ) -> For:
        loop, first = self._bounds(op, values, variables)
        block = op.regions[0].blocks[0]
        variables[block.arguments[0]] = first
        carried = list(op.operands)[len(op.operands) - len(op.results) :]
        inits = [self._use(v, body, values, variables) for v in carried]
        arguments = [self._define(a, values) for a in list(block.arguments)[1:]]
        inner: list[Node] = []
        yields: list[Value] = []
        for child in block.operations:
            if child.operation.name == "affine.yield":
                operands = child.operation.operands
                yields = [self._use(v, inner, values, variables) for v in operands]
            else:
                self._node(child.operation, inner, values, variables)
        results = [self._define(r, values) for r in op.results]
        return For(
            *(loop.var, inner, inits, arguments, results, yields),
            lower=loop.lower,
            upper=loop.upper,
            tile=TILE_ATTRIBUTE in op.attributes,
            lanes=_number(op.attributes, LANES_ATTRIBUTE),
            schedule=_schedule(op.attributes),
        )

    def _level(self, op: Any, values: dict[Any, Value], variables: dict[Any, Expr]) -> For:
        """A loop that ``map-parallelism`` has given a level: one dimension from 0, step 1."""
        steps = [ir.IntegerAttr(a).value for a in ir.ArrayAttr(op.attributes["steps"])]
        low = _constant_bound(op.attributes["lowerBoundsMap"])
        high = _constant_bound(op.attributes["upperBoundsMap"])
        if steps != [1] or low != 0 or high is None or len(op.results):
            raise _Unreadable
        if LEVEL_ATTRIBUTE not in op.attributes:
            raise _Unreadable
        var = Var(high)
        block = op.regions[0].blocks[0]
        variables[block.arguments[0]] = Expr.of(var)
        inner: list[Node] = []
        for child in block.operations:
            if child.operation.name != "affine.yield":
                self._node(child.operation, inner, values, variables)
        return For(var, inner, level=op.attributes[LEVEL_ATTRIBUTE].value)

    def _bounds(
        self, op: Any, values: dict[Any, Value], variables: dict[Any, Expr]
    ) -> tuple[For, Expr]:
        """A loop without body and the value of the operation's variable in it."""
        step = ir.IntegerAttr(op.attributes["step"]).value
        low = _constant_bound(op.attributes["lowerBoundMap"])
        high = _constant_bound(op.attributes["upperBoundMap"])
        if low is not None and high is not None:
            var = Var(max(0, -((low - high) // step)))
            return For(var, []), Expr.of(var) * step + low
        if step != 1:
            raise _Unreadable
        segments = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
        operands, ends_at = list(op.operands), segments[0] + segments[1]
        starts, ends = operands[: segments[0]], operands[segments[0] : ends_at]
        lower = self._map(op.attributes["lowerBoundMap"], starts, values, variables)
        upper = self._map(op.attributes["upperBoundMap"], ends, values, variables)
        if max(e.range()[0] for e in lower) < 0:
            raise _Unreadable
        var = Var(max(0, min(e.range()[1] for e in upper)))
        return (
            For(
                var,
                [],
                lower=tuple(e for e in lower if not e.is_constant or e.const > 0),
                upper=tuple(e for e in upper if not e.is_constant or e.const < var.extent),
            ),
            Expr.of(var),
        )

    def _define(self, value: Any, values: dict[Any, Value]) -> Value:
        if isinstance(value.type, (ir.MemRefType, ir.RankedTensorType)):
            raise _Unreadable
        new = Value(value.type)
        values[value] = new
        return new

    def _use(
        self, value: Any, body: list[Node], values: dict[Any, Value], variables: dict[Any, Expr]
    ) -> Value:
        if value in values:
            return values[value]
        expr = variables.get(value, self.exprs.get(value))
        if expr is not None:
            # Not remembered: the Index must dominate its uses, and is cheap.
            result = Value(ir.IndexType.get(self.module.context))
            body.append(Index(result, expr))
            return result
        if value in self.constants:
            op = self.constants[value]
            result = Value(value.type)
            body.append(Op("arith.constant", [], {"value": op.attributes["value"]}, [result]))
            return result
        if isinstance(value.type, ir.MemRefType):
            raise _Unreadable
        if self._repeatable(value):
            # Computed from the variables of loops around: of use where it can be seen how.
            op = value.owner.operation
            operands = [self._use(v, body, values, variables) for v in op.operands]
            attributes = {n: op.attributes[n] for n in op.attributes}
            result = Value(value.type)
            body.append(Op(op.name, operands, attributes, [result], op.location))
            return result
        values[value] = Value(value.type, external=value)
        return values[value]

    def _repeatable(self, value: Any) -> bool:
        """Whether a scalar is computed from nothing but constants and variables around."""
        if value in self.exprs or value in self.constants:
            return True
        owner = value.owner
        if isinstance(owner, ir.Block):
            return False
        op = owner.operation
        scalar = op.name.startswith(SCALAR_DIALECTS) and not len(op.regions)
        if not scalar or len(op.results) != 1 or not len(op.operands):
            return False
        return all(self._repeatable(v) for v in op.operands)

    def _is_at_run_time(self, load: Any, variables: dict[Any, Expr]) -> bool:
        """Whether an index is a number that another has computed."""
        known = (variables, self.exprs, self.constants)
        return not all(any(v in each for each in known) for v in list(load.operands)[1:])

    def _places(
        self, load: Any, body: list[Node], values: dict[Any, Value], variables: dict[Any, Expr]
    ) -> list[Value]:
        """The indices of an ``affine.load`` that are variables or numbers, not sums of them."""
        amap = ir.AffineMapAttr(load.attributes["map"]).value
        operands = list(load.operands)[1:]
        places = []
        for expr in amap.results:
            if isinstance(expr, ir.AffineDimExpr):
                place = expr.position
            elif isinstance(expr, ir.AffineSymbolExpr):
                place = amap.n_dims + expr.position
            else:
                raise _Unreadable
            places.append(self._use(operands[place], body, values, variables))
        return places

    def _map(
        self,
        attribute: Any,
        operands: list[Any],
        values: dict[Any, Value],
        variables: dict[Any, Expr],
        symbols: Iterable[Expr] = (),
    ) -> tuple[Expr, ...]:
        exprs = []
        for operand in operands:
            if operand in variables:
                exprs.append(variables[operand])
            elif operand in self.exprs:
                exprs.append(self.exprs[operand])
            elif operand in self.constants:
                exprs.append(
                    Expr(ir.IntegerAttr(self.constants[operand].attributes["value"]).value)
                )
            else:
                raise _Unreadable
        amap = ir.AffineMapAttr(attribute).value
        count = amap.n_dims
        exprs += symbols
        return tuple(expr_of(e, exprs[:count], exprs[count:]) for e in amap.results)

    # Buffers

    def _place(self, value: Any, index: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        """The buffer behind all views that are affine, and the index in it."""
        while value in self.views:
            value, resolve = self.views[value]
            index = resolve(index)
        return self._get_buffer(value), index

    def _get_buffer(self, value: Any) -> Buffer:
        found = self._find_buffer(value)
        if found is None:
            raise _Unreadable
        return found

    def _find_buffer(self, value: Any) -> Buffer | None:
        """The buffer of a memref; one of the block around has a buffer of its own here."""
        if value in self.buffers or self.around is None:
            return self.buffers.get(value)
        outer = self.around._find_buffer(value)
        if outer is None:
            return None
        base = None if outer.viewed is None else self._find_buffer(outer.viewed.value)
        kind = "carried" if outer.kind in ("alloc", "output") else outer.kind
        buffer = self._buffer(value, kind, base)
        buffer.constant = outer.constant
        buffer.lasting = outer.lasting
        buffer.outer = outer
        return buffer

    def _buffer(self, value: Any, kind: str, base: Buffer | None = None) -> Buffer:
        type_ = ir.MemRefType(value.type)
        shape = tuple(type_.shape) if type_.has_static_shape else (-1,) * type_.rank
        buffer = Buffer(
            shape,
            type_.element_type,
            kind,
            value,
            bytes_per_element=element_bytes(type_.element_type),
            memref_type=type_,
            base=base,
        )
        self.buffers[value] = buffer
        return buffer

    def _global_values(self, op: Any, buffer: Buffer) -> list[Any] | None:
        """Attributes of the elements of a small constant, in row-major order.

        One stands for all where they are equal, however many there are.
        """
        if any(e < 0 for e in buffer.shape):
            return None
        symbol = ir.FlatSymbolRefAttr(op.attributes["name"]).value
        for other in self.module.body.operations:
            o = other.operation
            if o.name == "memref.global" and o.attributes["sym_name"].value == symbol:
                if "constant" not in o.attributes or "initial_value" not in o.attributes:
                    return None
                return _elements(o.attributes["initial_value"], buffer)
        return None


def signature_rows(module: Any) -> list[dict[str, Any]]:
    """The rows of ``@main``'s arguments."""
    from polyblocks import signature

    return signature.rows(module)


def _elements(attribute: Any, buffer: Buffer) -> list[Any] | None:
    text = printed(buffer.element)
    element = buffer.element
    if not isinstance(attribute, (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)):
        return None
    if attribute.is_splat and buffer.numel:
        return [attribute.get_splat_value()]
    # The bindings cannot read the elements of 16-bit floats one by one.
    if text in ("f16", "bf16") or buffer.numel > MAX_CONSTANT:
        return None
    values = [attribute[i] for i in range(buffer.numel)]
    if text in ("f32", "f64"):
        return [ir.FloatAttr.get(element, float(v)) for v in values]
    if text.startswith("i"):
        return [ir.IntegerAttr.get(element, int(v)) for v in values]
    return None


def _is_straight_line(op: Any) -> bool:
    name = op.name
    if len(op.regions) or any(isinstance(r.type, ir.MemRefType) for r in op.results):
        return False
    return name in STRAIGHT_LINE or bool(name.startswith(SCALAR_DIALECTS))


def _owner_at_top(op: Any, block: Any) -> Any:
    """The operation of the block that contains ``op``."""
    op = op.operation
    while op.block != block:
        op = op.parent.operation
    return op


def _number(attributes: Any, name: str) -> int:
    """An integer attribute; 0 if it is not there."""
    return int(ir.IntegerAttr(attributes[name]).value) if name in attributes else 0


def _schedule(attributes: Any) -> Any:
    return (
        from_attribute(attributes[SCHEDULE_ATTRIBUTE]) if SCHEDULE_ATTRIBUTE in attributes else None
    )


def _is_of_a_unit(call: Any) -> bool:
    """Whether a call of an intrinsic stands for a matrix unit."""
    return str(ir.StringAttr(call.attributes["intrin"]).value).startswith(DOT_PREFIX)


def _map_of_set(attribute: Any) -> Any:
    """The map whose results an integer set wants not to be negative."""
    text = str(attribute)
    if "==" in text:
        raise _Unreadable
    text = text.replace("affine_set", "affine_map").replace(" : ", " -> ").replace(" >= 0", "")
    return ir.Attribute.parse(text)


def _constant_bound(attribute: Any) -> int | None:
    amap = ir.AffineMapAttr(attribute).value
    if len(amap.results) != 1 or not isinstance(amap.results[0], ir.AffineConstantExpr):
        return None
    return int(amap.results[0].value)


def expr_of(e: Any, dims: list[Expr], symbols: list[Expr]) -> Expr:
    """The value of an MLIR affine expression of these dimensions and symbols."""
    if isinstance(e, ir.AffineDimExpr):
        return dims[e.position]
    if isinstance(e, ir.AffineSymbolExpr):
        return symbols[e.position]
    if isinstance(e, ir.AffineConstantExpr):
        return Expr(e.value)
    left, right = expr_of(e.lhs, dims, symbols), expr_of(e.rhs, dims, symbols)
    if isinstance(e, ir.AffineAddExpr):
        return left + right
    if isinstance(e, ir.AffineMulExpr):
        if right.is_constant:
            return left * right.const
        if left.is_constant:
            return right * left.const
    elif right.is_constant and right.const > 0:
        if isinstance(e, ir.AffineFloorDivExpr):
            return left // right.const
        if isinstance(e, ir.AffineModExpr):
            return left % right.const
        if isinstance(e, ir.AffineCeilDivExpr):
            return (left + (right.const - 1)) // right.const
    raise _Unreadable


def _padding(op: Any) -> frozenset[int]:
    """The paddings that an access is of."""
    given = op.attributes
    return frozenset(given[PADDING_ATTRIBUTE]) if PADDING_ATTRIBUTE in given else frozenset()
