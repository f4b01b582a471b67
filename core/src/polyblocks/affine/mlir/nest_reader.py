"""Reads the operations of one nest into nodes of the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polyblocks.affine.buffers.copies import COPIES, Barrier, BoxCopy, Commit, Wait
from polyblocks.affine.element import zero_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.affine_maps import (
    UnreadableError,
    constant_bound,
    expr_of,
    map_of_set,
)
from polyblocks.affine.mlir.index_values import apply_map
from polyblocks.affine.mlir.json_attributes import from_attribute
from polyblocks.affine.mlir.scope import Scope
from polyblocks.affine.model import (
    Alloca,
    Check,
    For,
    GuardedStore,
    Index,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
    Op,
    Store,
    Value,
)
from polyblocks.affine.multiply import Multiply, UnitTile
from polyblocks.affine.ops import INTRINSIC, Ops
from polyblocks.affine.swizzles import Swizzle
from polyblocks.attributes import (
    BARRIER,
    COMMIT,
    COPY,
    GCD,
    LANES_ATTRIBUTE,
    LAYOUT_ATTRIBUTE,
    LEVEL_ATTRIBUTE,
    MULTIPLY,
    PADDING_ATTRIBUTE,
    SCHEDULE_ATTRIBUTE,
    STEPS_ATTRIBUTE,
    TILE_ATTRIBUTE,
    WAIT,
)
from polyblocks.mlir import ir
from polyblocks.target import DOT_PREFIX

#: Dialects whose operations without regions compute scalars from scalars.
SCALAR_DIALECTS = ("arith.", "math.", "complex.", "index.", GCD)


class NestReader:
    """Reads operations of one nest; methods raise UnreadableError for what the model lacks.

    Args:
        scope: of the block that the nest is in.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._values: dict[Any, Value] = {}
        #: Variables of the nest's loops, and what is affine in them.
        self._variables: dict[Any, Expr] = {}

    def node(self, op: Any, body: list[Node]) -> None:
        """Put the nodes of an operation behind those of ``body``."""
        name = op.name
        if name == "affine.for":
            body.append(self._loop(op, body))
        elif name == "affine.load" and self._is_at_run_time(op):
            where = self._places(op, body)
            buffer = self._scope.buffer(op.operands[0])
            body.append(IndirectLoad(self._define(op.results[0]), buffer, where, op.location))
        elif name == "affine.load":
            result = self._define(op.results[0])
            index = self.map(op.attributes["map"], list(op.operands)[1:])
            buffer, index = self._scope.resolve(op.operands[0], index)
            body.append(Load(result, buffer, index, op.location, padding=_padding(op)))
        elif name == "affine.if":
            body.append(self._load_where(op))
        elif name == "affine.store":
            index = self.map(op.attributes["map"], list(op.operands)[2:])
            buffer, index = self._scope.resolve(op.operands[1], index)
            value = self._use(op.operands[0], body)
            body.append(Store(value, buffer, index, op.location, padding=_padding(op)))
        elif name == "memref.load":
            where = [self._use(v, body) for v in list(op.operands)[1:]]
            buffer = self._scope.buffer(op.operands[0])
            body.append(IndirectLoad(self._define(op.results[0]), buffer, where, op.location))
        elif name == "memref.store":
            where = [self._use(v, body) for v in list(op.operands)[2:]]
            buffer = self._scope.buffer(op.operands[1])
            value = self._use(op.operands[0], body)
            body.append(IndirectStore(value, buffer, where, op.location))
        elif name == "scf.if":
            body.append(self._guarded_store(op, body))
        elif name == "cf.assert":
            condition = self._use(op.operands[0], body)
            body.append(Check(condition, op.attributes["msg"], op.location))
        elif name == "affine.apply":
            known = (self._variables, self._scope.exprs, self._scope.constants)
            if all(any(v in each for each in known) for v in op.operands):
                (expr,) = self.map(op.attributes["map"], list(op.operands))
                self._variables[op.results[0]] = expr
            else:
                operands = [self._use(v, body) for v in op.operands]
                applied = apply_map(op, operands, body)
                if applied is None:
                    raise UnreadableError
                self._values[op.results[0]] = applied
        elif name.startswith((*SCALAR_DIALECTS, INTRINSIC)) and not len(op.regions):
            operands = [self._use(v, body) for v in op.operands]
            attributes = {n: op.attributes[n] for n in op.attributes}
            results = [self._define(r) for r in op.results]
            node = Multiply if name == INTRINSIC and _is_of_a_unit(op) else Op
            body.append(node(name, operands, attributes, results, op.location))
        elif name == MULTIPLY:
            body.append(self._multiply(op))
        elif name == COPY:
            body.append(self._copy(op))
        elif name == COMMIT:
            body.append(Commit(op.location, _in_flight(op)))
        elif name == WAIT:
            pending = _number(op.attributes, "pending")
            body.append(Wait(pending, op.location, _in_flight(op)))
        elif name == BARRIER:
            body.append(Barrier(ir.StringAttr(op.attributes["scope"]).value, op.location))
        elif name == "memref.alloca" and not len(op.operands):
            body.append(self._alloca(op))
        elif name == "affine.parallel":
            body.append(self._level(op))
        elif name == "affine.yield":
            raise UnreadableError
        else:
            raise UnreadableError

    def _load_where(self, op: Any) -> Load:
        """A load under conditions, which is zero where they do not hold."""
        blocks = [list(block.operations) for region in op.regions for block in region.blocks]
        if len(op.results) != 1 or [len(b) for b in blocks] != [2, 2]:
            raise UnreadableError
        (load, yielded), (zero, otherwise) = ([o.operation for o in b] for b in blocks)
        if (
            (load.name, zero.name) != ("affine.load", "arith.constant")
            or [list(y.operands) for y in (yielded, otherwise)] != [[load.result], [zero.result]]
            or zero.attributes["value"] != zero_of(zero.result.type)
            or self._is_at_run_time(load)
        ):
            raise UnreadableError
        where = self.map(map_of_set(op.attributes["condition"]), list(op.operands))
        index = self.map(load.attributes["map"], list(load.operands)[1:])
        buffer, index = self._scope.resolve(load.operands[0], index)
        result = self._define(op.results[0])
        return Load(result, buffer, index, load.location, where, _padding(load))

    def _guarded_store(self, op: Any, body: list[Node]) -> GuardedStore:
        """A store under a condition, with nothing else."""
        inside = [o.operation for region in op.regions for block in region.blocks for o in block]
        if len(op.results) or [o.name for o in inside] != ["memref.store", "scf.yield"]:
            raise UnreadableError
        value, memref, *where = inside[0].operands
        return GuardedStore(
            self._use(op.operands[0], body),
            self._use(value, body),
            self._scope.buffer(memref),
            [self._use(v, body) for v in where],
            inside[0].location,
        )

    def _multiply(self, op: Any) -> For:
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
            index = self.map(amap, dims, [Expr.of(v) for v in own])
            places.append(self._scope.resolve(memref, index))
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

    def _copy(self, op: Any) -> For:
        """The loops that a copy of a box stands for."""
        given = op.attributes
        own = [Var(extent) for extent in ir.DenseI64ArrayAttr(given["shape"])]
        dims, symbols = list(op.operands)[2:], [Expr.of(v) for v in own]

        def bounds(name: str) -> list[tuple[Expr, ...]]:
            maps = ir.ArrayAttr(given[name]) if name in given else [None] * len(own)
            return [() if m is None else self.map(m, dims, symbols) for m in maps]

        pairs = zip(own, bounds("lower"), bounds("upper"), strict=True)
        loops = tuple(For(var, [], lower=lower, upper=upper) for var, lower, upper in pairs)
        source, index = self._scope.resolve(op.operands[0], self.map(given["from"], dims, symbols))
        buffer, place = self._scope.resolve(op.operands[1], self.map(given["to"], dims, symbols))
        value = Value(source.element)
        where = self.map(given["where"], dims, symbols) if "where" in given else ()
        load = Load(value, source, index, op.location, where, _padding(op))
        conversions = []
        for each in ir.ArrayAttr(given["conversions"]) if "conversions" in given else ():
            entry = ir.DictAttr(each)
            attributes = {a.name: a.attr for a in ir.DictAttr(entry["attributes"])}
            operand, value = value, Value(ir.TypeAttr(entry["type"]).value)
            name = ir.StringAttr(entry["name"]).value
            conversions.append(Op(name, [operand], attributes, [value], op.location))
        kind = ir.StringAttr(given["kind"]).value
        store = Store(value, buffer, place, op.location)
        return BoxCopy(kind, loops, load, tuple(conversions), store).loop()

    def _alloca(self, op: Any) -> Alloca:
        buffer = self._scope.declare(op.results[0], "local")
        space = ir.MemRefType(op.results[0].type).memory_space
        buffer.space = "" if space is None else str(ir.StringAttr(space).value)
        if LAYOUT_ATTRIBUTE in op.attributes:
            entries = from_attribute(op.attributes[LAYOUT_ATTRIBUTE])
            buffer.layout = tuple(Swizzle(e["of"], e["into"], tuple(e["masks"])) for e in entries)
        return Alloca(buffer)

    def _loop(self, op: Any, body: list[Node]) -> For:
        loop, first = self.bounds(op)
        block = op.regions[0].blocks[0]
        self._variables[block.arguments[0]] = first
        carried = list(op.operands)[len(op.operands) - len(op.results) :]
        inits = [self._use(v, body) for v in carried]
        arguments = [self._define(a) for a in list(block.arguments)[1:]]
        inner: list[Node] = []
        yields: list[Value] = []
        for child in block.operations:
            if child.operation.name == "affine.yield":
                operands = child.operation.operands
                yields = [self._use(v, inner) for v in operands]
            else:
                self.node(child.operation, inner)
        results = [self._define(r) for r in op.results]
        return For(
            *(loop.var, inner, inits, arguments, results, yields),
            lower=loop.lower,
            upper=loop.upper,
            tile=TILE_ATTRIBUTE in op.attributes,
            lanes=_number(op.attributes, LANES_ATTRIBUTE),
            schedule=_schedule(op.attributes),
            unit=_string(op.attributes, STEPS_ATTRIBUTE),
        )

    def _level(self, op: Any) -> For:
        """A loop that ``map-parallelism`` has given a level: one dimension from 0, step 1."""
        steps = [ir.IntegerAttr(a).value for a in ir.ArrayAttr(op.attributes["steps"])]
        low = constant_bound(op.attributes["lowerBoundsMap"])
        high = constant_bound(op.attributes["upperBoundsMap"])
        if steps != [1] or low != 0 or high is None or len(op.results):
            raise UnreadableError
        if LEVEL_ATTRIBUTE not in op.attributes:
            raise UnreadableError
        var = Var(high)
        block = op.regions[0].blocks[0]
        self._variables[block.arguments[0]] = Expr.of(var)
        inner: list[Node] = []
        for child in block.operations:
            if child.operation.name != "affine.yield":
                self.node(child.operation, inner)
        return For(var, inner, level=op.attributes[LEVEL_ATTRIBUTE].value)

    def bounds(self, op: Any) -> tuple[For, Expr]:
        """A loop without body and the value of the operation's variable in it."""
        step = ir.IntegerAttr(op.attributes["step"]).value
        low = constant_bound(op.attributes["lowerBoundMap"])
        high = constant_bound(op.attributes["upperBoundMap"])
        if low is not None and high is not None:
            var = Var(max(0, -((low - high) // step)))
            return For(var, []), Expr.of(var) * step + low
        if step != 1:
            raise UnreadableError
        segments = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
        operands, ends_at = list(op.operands), segments[0] + segments[1]
        starts, ends = operands[: segments[0]], operands[segments[0] : ends_at]
        lower = self.map(op.attributes["lowerBoundMap"], starts)
        upper = self.map(op.attributes["upperBoundMap"], ends)
        if max(e.range()[0] for e in lower) < 0:
            raise UnreadableError
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

    def _define(self, value: Any) -> Value:
        if isinstance(value.type, (ir.MemRefType, ir.RankedTensorType)):
            raise UnreadableError
        new = Value(value.type)
        self._values[value] = new
        return new

    def _use(self, value: Any, body: list[Node]) -> Value:
        if value in self._values:
            return self._values[value]
        expr = self._variables.get(value, self._scope.exprs.get(value))
        if expr is not None:
            # Not remembered: the Index must dominate its uses, and is cheap.
            result = Value(ir.IndexType.get(self._scope.module.context))
            body.append(Index(result, expr))
            return result
        if value in self._scope.constants:
            op = self._scope.constants[value]
            result = Value(value.type)
            body.append(Op("arith.constant", [], {"value": op.attributes["value"]}, [result]))
            return result
        if isinstance(value.type, ir.MemRefType):
            raise UnreadableError
        if self._repeatable(value):
            # Computed from the variables of loops around: of use where it can be seen how.
            op = value.owner.operation
            operands = [self._use(v, body) for v in op.operands]
            attributes = {n: op.attributes[n] for n in op.attributes}
            result = Value(value.type)
            body.append(Op(op.name, operands, attributes, [result], op.location))
            return result
        self._values[value] = Value(value.type, external=value)
        return self._values[value]

    def _repeatable(self, value: Any) -> bool:
        """Whether a scalar is computed from nothing but constants and variables around."""
        if value in self._scope.exprs or value in self._scope.constants:
            return True
        owner = value.owner
        if isinstance(owner, ir.Block):
            return False
        op = owner.operation
        scalar = op.name.startswith(SCALAR_DIALECTS) and not len(op.regions)
        if not scalar or len(op.results) != 1 or not len(op.operands):
            return False
        return all(self._repeatable(v) for v in op.operands)

    def _is_at_run_time(self, load: Any) -> bool:
        """Whether an index is a number that another has computed."""
        known = (self._variables, self._scope.exprs, self._scope.constants)
        return not all(any(v in each for each in known) for v in list(load.operands)[1:])

    def _places(self, load: Any, body: list[Node]) -> list[Value]:
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
                raise UnreadableError
            places.append(self._use(operands[place], body))
        return places

    def map(
        self,
        attribute: Any,
        operands: list[Any],
        symbols: Iterable[Expr] = (),
    ) -> tuple[Expr, ...]:
        """The results of an affine map.

        Args:
            attribute: the map.
            operands: MLIR values of its dimensions and symbols.
            symbols: values of the symbols behind those.
        """
        exprs = []
        for operand in operands:
            if operand in self._variables:
                exprs.append(self._variables[operand])
            elif operand in self._scope.exprs:
                exprs.append(self._scope.exprs[operand])
            elif operand in self._scope.constants:
                exprs.append(
                    Expr(ir.IntegerAttr(self._scope.constants[operand].attributes["value"]).value)
                )
            else:
                raise UnreadableError
        amap = ir.AffineMapAttr(attribute).value
        count = amap.n_dims
        exprs += symbols
        return tuple(expr_of(e, exprs[:count], exprs[count:]) for e in amap.results)


def _in_flight(op: Any) -> str:
    """The kind of asynchronous work that a commit or wait is about."""
    return ir.StringAttr(op.attributes["of"]).value if "of" in op.attributes else COPIES


def _number(attributes: Any, name: str) -> int:
    """An integer attribute; 0 if it is not there."""
    return int(ir.IntegerAttr(attributes[name]).value) if name in attributes else 0


def _string(attributes: Any, name: str) -> str:
    """A string; empty if it is not there."""
    return str(ir.StringAttr(attributes[name]).value) if name in attributes else ""


def _schedule(attributes: Any) -> Any:
    return (
        from_attribute(attributes[SCHEDULE_ATTRIBUTE]) if SCHEDULE_ATTRIBUTE in attributes else None
    )


def _is_of_a_unit(call: Any) -> bool:
    """Whether a call of an intrinsic stands for a matrix unit."""
    return str(ir.StringAttr(call.attributes["intrin"]).value).startswith(DOT_PREFIX)


def _padding(op: Any) -> frozenset[int]:
    """The paddings that an access is of."""
    given = op.attributes
    return frozenset(given[PADDING_ATTRIBUTE]) if PADDING_ATTRIBUTE in given else frozenset()
