"""The walk over a StableHLO module: every operation's rule appends linalg to a new module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from polyblocks import mlir
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.stablehlo import code, elementwise
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.constants import dense
from polyblocks.stablehlo.element import BOOL, Element
from polyblocks.stablehlo.folding import fold, range_of
from polyblocks.stablehlo.rules import RULES
from polyblocks.stablehlo.source import Sources

#: From an operation and its operands to its results.
#: An operand of a generic: a tensor and, for each of its dimensions, a loop or an expression.
Operand = tuple[Any, Sequence[Any]]


class Lowering:
    """Appends to the current insertion point what a StableHLO module computes.

    Functions are expanded where they are called.
    """

    def __init__(self, module: Any) -> None:
        self.functions = {
            op.operation.attributes["sym_name"].value: op.operation
            for op in module.body.operations
            if op.operation.name == "func.func"
        }
        self.values: dict[Any, Array] = {}
        self.sources = Sources()
        #: Modules of operations that were expanded; their values must live as long as this.
        self.expanded: list[Any] = []
        #: Modules of functions at linalg level that are called, to be inlined.
        self.helpers: list[Any] = []
        self._tensors: list[dict[Array, Any]] = [{}]
        self._scalars_only = False

    # Blocks and operations

    def block(self, block: Any, arguments: Sequence[Array]) -> list[Array]:
        """Append a block's operations; returns what its terminator returns."""
        for argument, array in zip(block.arguments, arguments, strict=True):
            self.values[argument] = array
        for op in block.operations:
            operation = op.operation
            if operation.name in ("func.return", "stablehlo.return"):
                return [self.values[v] for v in operation.operands]
            self.operation(operation)
        raise AssertionError("a block without a terminator")

    def operation(self, op: Any) -> None:
        """Append one operation."""
        with self.at(op):
            arguments = [self.values[v] for v in op.operands]
            results = self.results(op, arguments)
        for value, array in zip(op.results, results, strict=True):
            self.values[value] = array

    def results(self, op: Any, arguments: list[Array]) -> list[Array]:
        """The results of an operation on these operands."""
        name = op.name
        if name in RULES:
            results = RULES[name](self, op, arguments)
        elif name in elementwise.RULES and not _is_expanded(name, arguments):
            results = self.elementwise(op, arguments)
        else:
            from polyblocks.stablehlo.expand import expand

            results = expand(self, op, arguments)
        return results if isinstance(results, list) else [results]

    @contextmanager
    def at(self, op: Any) -> Iterator[None]:
        """Give appended operations the location of ``op``; errors name it."""
        with self.sources.location(op):
            try:
                yield
            except UnsupportedError as error:
                if error.op is not None:
                    raise
                name, where = self.sources.current
                raise UnsupportedError(error.reason, op=name or op.name, location=where) from error

    @contextmanager
    def inside(self, block: Any) -> Iterator[None]:
        """Append to a block of an operation with regions; tensors made there stay there."""
        self._tensors.append({})
        try:
            with ir.InsertionPoint(block):
                yield
        finally:
            self._tensors.pop()

    # Arrays

    def type_of(self, value: Any) -> tuple[tuple[int, ...], Element]:
        """Shape and element type of a StableHLO value."""
        kind = value.type
        if not isinstance(kind, ir.RankedTensorType):
            raise UnsupportedError(f"a value of type {kind}")
        if not kind.has_static_shape:
            raise UnsupportedError(f"the shape of {kind} is not static")
        return tuple(kind.shape), Element.of(kind)

    def tensor(self, array: Array) -> Any:
        """The array as an MLIR tensor."""
        if array.tensor is not None:
            return array.tensor
        for scope in self._tensors:
            if array in scope:
                return scope[array]
        made = self._make(array)
        self._tensors[-1][array] = made
        return made

    def _make(self, array: Array) -> Any:
        if array.numel == 0:
            return self.filled(array.shape, array.element, 0)
        if array.numbers is not None:
            return dense(array.element, array.shape, array.numbers)
        if array.splat is not None:
            if array.rank == 0 and not array.element.is_complex:
                return dense(array.element, (), array.splat)
            return self.filled(array.shape, array.element, array.splat)
        if array.scalar is not None:
            return code.emit("tensor.from_elements", [array.scalar], array.type)
        if array.pieces:
            from polyblocks.stablehlo.shapes import joined

            return joined(self, array)
        assert array.base is not None
        if array.numel == array.base.numel and _keeps_order(array):
            if array.base.scalar is not None:
                return code.emit("tensor.from_elements", [array.base.scalar], array.type)
            from polyblocks.stablehlo.shapes import reshape

            return self.tensor(reshape(self, array.base, array.shape))
        source = self.operand(array, range(array.rank))
        return self.generic(array.shape, [source], [array.element], lambda loaded: [loaded[0]])[
            0
        ].tensor

    def scalar(self, array: Array) -> Any:
        """The only element of an array of rank 0 as an MLIR scalar."""
        if array.scalar is not None:
            return array.scalar
        if array.splat is not None:
            return code.constant(array.element, array.splat)
        return code.emit("tensor.extract", [self.tensor(array)], array.element.type)

    def empty(self, shape: Sequence[int], element: Element) -> Any:
        """A tensor whose elements do not matter."""
        return mlir.dialect("tensor").EmptyOp(list(shape), element.type).result

    def filled(self, shape: Sequence[int], element: Element, value: Any) -> Any:
        """A tensor of one number, or of the element of a rank-0 array."""
        number = self.scalar(value) if isinstance(value, Array) else code.constant(element, value)
        return mlir.dialect("linalg").fill(number, outs=[self.empty(shape, element)])

    def operand(self, array: Array, loops: Sequence[Any]) -> Operand:
        """An array as an operand of a generic whose loops or expressions index its dimensions."""
        if array.base is not None and array.tensor is None:
            inner = [0 if d is None else _expr(loops[d]) for d in array.dims]
            return self.operand(array.base, [_constant(e) if e == 0 else e for e in inner])
        return self.tensor(array), list(loops)

    # Code

    def generic(
        self,
        shape: Sequence[int],
        inputs: Sequence[Operand],
        elements: Sequence[Element],
        body: Callable[[list[Any]], list[Any]],
    ) -> list[Array]:
        """Arrays of one shape that are computed element by element.

        Args:
            shape: of all results.
            inputs: operands; the loops are the dimensions of the results.
            elements: element types of the results.
            body: from the scalars of the inputs to those of the results.
        """
        loops = list(range(len(shape)))
        outs = [(self.empty(shape, element), loops) for element in elements]
        count = len(inputs)
        tensors = self.loops(
            ["parallel"] * len(shape), inputs, outs, lambda scalars: body(scalars[:count])
        )
        return [
            Array(tuple(shape), element, tensor)
            for element, tensor in zip(elements, tensors, strict=True)
        ]

    def loops(
        self,
        kinds: Sequence[str],
        inputs: Sequence[Operand],
        outs: Sequence[Operand],
        body: Callable[[list[Any]], list[Any]],
        extents: Sequence[int] | None = None,
    ) -> list[Any]:
        """A ``linalg.generic``; the body gets the scalars of inputs and outs.

        Args:
            kinds: ``parallel`` or ``reduction``, for each loop.
            inputs: operands that are read.
            outs: what the results begin with.
            body: from the scalars to those of the results.
            extents: of the loops; needed where the operands may not tell, as arrays that are
                broadcast along a loop do not.
        """
        linalg = mlir.dialect("linalg")
        count = len(kinds)
        read = len(inputs)
        told = {_loop(i) for _, index in (*inputs, *outs) for i in index}
        untold = [i for i in range(count) if i not in told]
        if extents is not None and untold:
            shape = self.empty([extents[i] for i in untold], BOOL)
            inputs = [*inputs, (shape, untold)]
        maps = []
        for _, index in (*inputs, *outs):
            exprs = [_expr(i) for i in index]
            maps.append(ir.AffineMapAttr.get(ir.AffineMap.get(count, 0, exprs)))
        generic = linalg.GenericOp(
            [tensor.type for tensor, _ in outs],
            [tensor for tensor, _ in inputs],
            [tensor for tensor, _ in outs],
            ir.ArrayAttr.get(maps),
            ir.ArrayAttr.get([_iterator(kind) for kind in kinds]),
        )
        types = [tensor.type.element_type for tensor, _ in (*inputs, *outs)]
        where = ir.Location.current
        block = ir.Block.create_at_start(generic.regions[0], types, arg_locs=[where] * len(types))
        scalars = list(block.arguments)
        with self.inside(block):
            linalg.YieldOp(body([*scalars[:read], *scalars[len(inputs) :]]))
        return list(generic.results)

    def elementwise(self, op: Any, arguments: list[Array]) -> list[Array]:
        """An operation of :data:`polyblocks.stablehlo.elementwise.RULES`."""
        shape, element = self.type_of(op.results[0])
        folded = fold(op, arguments, element)
        if folded is not None:
            return [folded]
        kinds = [a.element for a in arguments]
        if not shape and (self._scalars_only or all(_is_scalar(a) for a in arguments)):
            scalars = [self.scalar(a) for a in arguments]
            result = elementwise.compute(op, scalars, kinds, element)
            return [Array((), element, scalar=result, range=range_of(op, arguments, element))]
        inputs = []
        for a in arguments:
            if a.splat is None and a.numel:
                # Scalar conditions and bounds stand for arrays.
                inputs.append(self.operand(a, range(len(shape)) if a.rank else ()))

        def body(loaded: list[Any]) -> list[Any]:
            rest = iter(loaded)
            scalars = [
                code.constant(a.element, a.splat if a.splat is not None else 0)
                if a.splat is not None or not a.numel
                else next(rest)
                for a in arguments
            ]
            return [elementwise.compute(op, scalars, kinds, element)]

        return self.generic(shape, inputs, [element], body)

    def region(self, region: Any, scalars: Sequence[Any]) -> list[Any]:
        """The scalars that a region of rank-0 arrays returns for these scalars."""
        (block,) = region.blocks
        arguments = []
        for argument, scalar in zip(block.arguments, scalars, strict=True):
            _, element = self.type_of(argument)
            arguments.append(Array((), element, scalar=scalar))
        with self._scalar_code():
            return [self.scalar(array) for array in self.block(block, arguments)]

    def expression(self, value: Any, scalar: Any) -> Any:
        """A value of a region of rank-0 arrays that depends on one argument, for this scalar."""
        needed = _needed(value)
        with self._scalar_code():
            for argument in (v for v in needed if isinstance(v, ir.BlockArgument)):
                _, element = self.type_of(argument)
                self.values[argument] = Array((), element, scalar=scalar)
            for other in needed:
                if not isinstance(other, ir.BlockArgument):
                    self.operation(other.owner.operation)
            return self.scalar(self.values[value])

    @contextmanager
    def _scalar_code(self) -> Iterator[None]:
        """Append code on scalars; tensors made there stay there."""
        self._tensors.append({})
        before, self._scalars_only = self._scalars_only, True
        try:
            yield
        finally:
            self._scalars_only = before
            self._tensors.pop()


def _needed(value: Any) -> list[Any]:
    """The values that a value is computed of, operands first, and itself."""
    found: list[Any] = []

    def visit(value: Any) -> None:
        if value in found:
            return
        if not isinstance(value, ir.BlockArgument):
            for operand in value.owner.operation.operands:
                visit(operand)
        found.append(value)

    visit(value)
    return found


def _is_expanded(name: str, arguments: list[Array]) -> bool:
    """Functions of complex numbers that CHLO defines by others."""
    return name.startswith("chlo.") and any(a.element.is_complex for a in arguments)


def _is_scalar(array: Array) -> bool:
    return array.scalar is not None or array.splat is not None


def _iterator(kind: str) -> Any:
    return ir.Attribute.parse(f"#linalg.iterator_type<{kind}>")


def _keeps_order(array: Array) -> bool:
    """Whether a broadcast array has its base's elements in their order."""
    assert array.base is not None
    wide = [d for d, e in zip(array.dims, array.base.shape, strict=True) if e != 1]
    return None not in wide and wide == sorted(wide)  # type: ignore[type-var]


def _expr(index: Any) -> Any:
    return ir.AffineDimExpr.get(index) if isinstance(index, int) else index


def _loop(index: Any) -> int | None:
    """The loop that an operand's dimension is indexed by alone."""
    if isinstance(index, ir.AffineDimExpr):
        return int(index.position)
    return index if isinstance(index, int) else None


def _constant(value: int) -> Any:
    return ir.AffineConstantExpr.get(value)
