"""From MLIR to the model: reads ``@main`` after bufferization into nests and opaque operations."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.index_values import apply_map
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    Check,
    For,
    Index,
    Load,
    LoadAt,
    Nest,
    Node,
    Op,
    Opaque,
    Sequence,
    Store,
    StoreAt,
    Value,
    around,
)
from polyblocks.affine.views import VIEWS, IndexMap, view_index
from polyblocks.mlir import ir

#: Dialects whose operations without regions compute scalars from scalars.
SCALAR_DIALECTS = ("arith.", "math.", "complex.", "index.")
#: What else may stand at the top of ``@main`` without a loop around it.
STRAIGHT_LINE = {
    "affine.apply",
    "affine.load",
    "affine.store",
    "cf.assert",
    "memref.load",
    "memref.store",
}
#: The parallel level of an ``affine.parallel``.
LEVEL_ATTRIBUTE = "polyblocks.level"
#: Larger constants are left in memory.
MAX_CONSTANT = 4096


class _Unreadable(Exception):
    """This operation is not described by the model."""


def read(module: Any) -> Sequence:
    """Read the body of ``@main``."""
    from polyblocks import signature

    return _Reader(module, signature.main_of(module)).read()


class _Reader:
    def __init__(self, module: Any, function: Any) -> None:
        self.module = module
        self.function = function
        self.rows = signature_rows(module)
        self.buffers: dict[Any, Buffer] = {}
        self.constants: dict[Any, Any] = {}
        self.items: list[Nest | Opaque] = []
        self.run: list[Any] = []
        self.views: dict[Any, tuple[Any, IndexMap]] = {}

    def read(self) -> Sequence:
        block = self.function.body.blocks[0]
        for i, argument in enumerate(block.arguments):
            if isinstance(argument.type, ir.MemRefType):
                # A hand-written module may have no signature; nothing is assumed of its arguments.
                self._buffer(argument, self.rows[i]["role"] if self.rows else "input")
        for op in block.operations:
            self._top(op.operation)
        self._flush()
        return Sequence(self.items, list(self.buffers.values()))

    # Top-level operations

    def _top(self, op: Any) -> None:
        name = op.name
        if name in ("memref.alloc", "memref.alloca"):
            self._buffer(op.results[0], "alloc")
        elif name == "memref.get_global":
            buffer = self._buffer(op.results[0], "global")
            buffer.constant = self._global_values(op, buffer)
        elif name in VIEWS and op.operands[0] in self.buffers:
            self._buffer(op.results[0], "other", base=self.buffers[op.operands[0]])
            resolve = view_index(op)
            if resolve is not None:
                self.views[op.results[0]] = (op.operands[0], resolve)
        elif name == "arith.constant":
            self.constants[op.results[0]] = op
        elif name == "affine.for" and len(op.results):
            # What it carried out is stored by the operations behind it.
            self.run.append(op)
        elif name in ("affine.for", "affine.parallel"):
            self._flush()
            self._nest([op])
        elif name == "memref.copy":
            self._flush()
            self.items.append(self._copy(op))
        elif name == "func.return":
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
        for op in run:
            segment.append(op)
            missing.discard(op)
            missing.update(
                owner
                for result in op.results
                for use in result.uses
                if (owner := _owner_at_top(use.owner, self.function)) not in segment
            )
            if op.name.endswith(".store") and not missing:
                self._nest(segment)
                segment = []
        # What is left stores nothing, or hands values to operations that no nest describes.
        for op in segment:
            if op.name.split(".")[0] in ("affine", "memref"):
                self._opaque(op)

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
        named = [op.attributes for op in ops if "polyblocks.kernel" in op.attributes]
        if len(named) == 1:
            (attributes,) = named
            nest.name = attributes["polyblocks.kernel"].value
            nest.kind = attributes["polyblocks.kind"].value
            nest.sources = [s.value for s in attributes["polyblocks.sources"]]
            if "polyblocks.estimate" in attributes:
                nest.estimate = attributes["polyblocks.estimate"]
        self.items.append(nest)

    def _copy(self, op: Any) -> Nest | Opaque:
        source, target = (self.buffers.get(v) for v in op.operands)
        if source is None or target is None or any(e < 0 for e in source.shape):
            return self._as_opaque(op)
        loops = [Var(e) for e in source.shape]
        index = tuple(Expr.of(v) for v in loops)
        value = Value(source.element)
        body: list[Node] = [
            Load(value, *self._place(op.operands[0], index), op.location),
            Store(value, *self._place(op.operands[1], index), op.location),
        ]
        return Nest(around(loops, body), [op], changed=True)

    def _opaque(self, op: Any) -> None:
        self.items.append(self._as_opaque(op))

    def _as_opaque(self, op: Any) -> Opaque:
        touched: set[Buffer] = set()

        def visit(inner: Any) -> Any:
            for operand in inner.operands:
                if operand in self.buffers:
                    touched.add(self.buffers[operand])
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        for result in op.results:
            if isinstance(result.type, ir.MemRefType):
                self._buffer(result, "other")
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
        elif name == "affine.load":
            result = self._define(op.results[0], values)
            index = self._map(op.attributes["map"], list(op.operands)[1:], values, variables)
            buffer, index = self._place(op.operands[0], index)
            body.append(Load(result, buffer, index, op.location))
        elif name == "affine.store":
            index = self._map(op.attributes["map"], list(op.operands)[2:], values, variables)
            buffer, index = self._place(op.operands[1], index)
            value = self._use(op.operands[0], body, values, variables)
            body.append(Store(value, buffer, index, op.location))
        elif name == "memref.load":
            where = [self._use(v, body, values, variables) for v in list(op.operands)[1:]]
            buffer = self._get_buffer(op.operands[0])
            body.append(LoadAt(self._define(op.results[0], values), buffer, where, op.location))
        elif name == "memref.store":
            where = [self._use(v, body, values, variables) for v in list(op.operands)[2:]]
            buffer = self._get_buffer(op.operands[1])
            value = self._use(op.operands[0], body, values, variables)
            body.append(StoreAt(value, buffer, where, op.location))
        elif name == "cf.assert":
            condition = self._use(op.operands[0], body, values, variables)
            body.append(Check(condition, op.attributes["msg"], op.location))
        elif name == "affine.apply":
            if all(v in variables or v in self.constants for v in op.operands):
                (expr,) = self._map(op.attributes["map"], list(op.operands), values, variables)
                variables[op.results[0]] = expr
            else:
                operands = [self._use(v, body, values, variables) for v in op.operands]
                applied = apply_map(op, operands, body)
                if applied is None:
                    raise _Unreadable
                values[op.results[0]] = applied
        elif name.startswith(SCALAR_DIALECTS) and not len(op.regions):
            operands = [self._use(v, body, values, variables) for v in op.operands]
            attributes = {n: op.attributes[n] for n in op.attributes}
            results = [self._define(r, values) for r in op.results]
            body.append(Op(name, operands, attributes, results, op.location))
        elif name == "memref.alloca" and not len(op.operands):
            buffer = self._buffer(op.results[0], "local")
            body.append(Alloca(buffer))
        elif name == "affine.parallel":
            body.append(self._level(op, values, variables))
        elif name == "affine.yield":
            raise _Unreadable
        else:
            raise _Unreadable

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
            loop.var, inner, inits, arguments, results, yields, lower=loop.lower, upper=loop.upper
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
        if value in variables:
            # Not remembered: the Index must dominate its uses, and is cheap.
            result = Value(ir.IndexType.get(self.module.context))
            body.append(Index(result, variables[value]))
            return result
        if value in self.constants:
            op = self.constants[value]
            result = Value(value.type)
            body.append(Op("arith.constant", [], {"value": op.attributes["value"]}, [result]))
            return result
        if isinstance(value.type, ir.MemRefType):
            raise _Unreadable
        values[value] = Value(value.type, external=value)
        return values[value]

    def _map(
        self,
        attribute: Any,
        operands: list[Any],
        values: dict[Any, Value],
        variables: dict[Any, Expr],
    ) -> tuple[Expr, ...]:
        exprs = []
        for operand in operands:
            if operand in variables:
                exprs.append(variables[operand])
            elif operand in self.constants:
                exprs.append(
                    Expr(ir.IntegerAttr(self.constants[operand].attributes["value"]).value)
                )
            else:
                raise _Unreadable
        amap = ir.AffineMapAttr(attribute).value
        count = amap.n_dims
        return tuple(_convert(e, exprs[:count], exprs[count:]) for e in amap.results)

    # Buffers

    def _place(self, value: Any, index: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        """The buffer behind all views that are affine, and the index in it."""
        while value in self.views:
            value, resolve = self.views[value]
            index = resolve(index)
        return self._get_buffer(value), index

    def _get_buffer(self, value: Any) -> Buffer:
        if value not in self.buffers:
            raise _Unreadable
        return self.buffers[value]

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
        """Attributes of the elements of a small constant, in row-major order."""
        if buffer.numel > MAX_CONSTANT or any(e < 0 for e in buffer.shape):
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
    text = str(buffer.element)
    element = buffer.element
    if not isinstance(attribute, (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)):
        return None
    if text in ("f16", "bf16"):
        # The bindings cannot read the elements of these types one by one.
        return [attribute.get_splat_value()] * buffer.numel if attribute.is_splat else None
    values = [attribute[i] for i in range(buffer.numel)]
    if text in ("f32", "f64"):
        return [ir.FloatAttr.get(element, float(v)) for v in values]
    if text.startswith("i"):
        return [ir.IntegerAttr.get(element, int(v)) for v in values]
    return None


def _is_straight_line(op: Any) -> bool:
    name = op.name
    if len(op.regions):
        return False
    return name in STRAIGHT_LINE or bool(name.startswith(SCALAR_DIALECTS))


def _owner_at_top(op: Any, function: Any) -> Any:
    """The operation of the function's body that contains ``op``."""
    op = op.operation
    while op.parent is not None and op.parent.operation != function.operation:
        op = op.parent.operation
    return op


def _constant_bound(attribute: Any) -> int | None:
    amap = ir.AffineMapAttr(attribute).value
    if len(amap.results) != 1 or not isinstance(amap.results[0], ir.AffineConstantExpr):
        return None
    return int(amap.results[0].value)


def _convert(e: Any, dims: list[Expr], symbols: list[Expr]) -> Expr:
    if isinstance(e, ir.AffineDimExpr):
        return dims[e.position]
    if isinstance(e, ir.AffineSymbolExpr):
        return symbols[e.position]
    if isinstance(e, ir.AffineConstantExpr):
        return Expr(e.value)
    left, right = _convert(e.lhs, dims, symbols), _convert(e.rhs, dims, symbols)
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
