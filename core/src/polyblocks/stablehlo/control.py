"""Loops and conditionals: ``scf`` with tensors as carried values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks import mlir
from polyblocks.mlir import ir
from polyblocks.stablehlo import code
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.convert import convert
from polyblocks.stablehlo.element import I64, Element
from polyblocks.stablehlo.elementwise import direction
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule

#: Loops with a known number of iterations are written out up to this many operations.
UNROLL_ITERATIONS = 8
UNROLL_OPERATIONS = 512


@rule("stablehlo.while")
def _while(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    condition, body = (region.blocks[0] for region in op.regions)
    returned = list(_terminator(body).operands)
    # Values that an iteration does not change are not carried.
    fixed = [value == argument for value, argument in zip(returned, body.arguments, strict=True)]
    counter = _counter(lowering, condition, body, arguments, fixed)
    if counter is not None:
        trips = counter.trips
        if trips is not None:
            small = (
                trips <= UNROLL_ITERATIONS and trips * _size(lowering, body) <= UNROLL_OPERATIONS
            )
            if trips <= 1 or small:
                for _ in range(trips):
                    arguments = lowering.block(body, arguments)
                return arguments
        return _for(lowering, body, arguments, fixed, counter)
    return _general(lowering, condition, body, arguments, fixed)


def _terminator(block: Any) -> Any:
    return list(block.operations)[-1].operation


def _size(lowering: Lowering, block: Any) -> int:
    """Operations of a block, those of called functions and of regions included."""
    total = 0
    for op in block.operations:
        operation = op.operation
        if operation.name == "func.call":
            callee = lowering.functions[ir.FlatSymbolRefAttr(operation.attributes["callee"]).value]
            total += _size(lowering, callee.regions[0].blocks[0])
        elif operation.name not in ("stablehlo.constant", "stablehlo.return", "func.return"):
            total += 1
        for region in operation.regions:
            for inner in region.blocks:
                total += _size(lowering, inner)
    return total


@dataclass(frozen=True)
class _Counter:
    """A loop that counts.

    Attributes:
        position: of the counter among the carried values.
        start: its first value.
        step: what is added in every iteration, not 0.
        limit: the value that ends the loop.
        included: whether the loop runs at the limit itself.
    """

    position: int
    start: Array
    step: int
    limit: Array
    included: bool

    @property
    def trips(self) -> int | None:
        """Iterations, if they are known."""
        start, limit = self.start.number, self.limit.number
        if start is None or limit is None:
            return None
        end = limit + (1 if self.step > 0 else -1) * self.included
        trips = max(0, -((start - end) // self.step))
        # A counter that wraps around never ends, and is not meant.
        last = start + trips * self.step
        element = self.start.element
        return trips if element.lowest <= last <= element.highest else None


_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}


def _counter(
    lowering: Lowering, condition: Any, body: Any, arguments: list[Array], fixed: list[bool]
) -> _Counter | None:
    """The counter that alone decides when a loop ends, or None."""
    (value,) = _terminator(condition).operands
    compare = _definition(value)
    if compare is None or compare.name != "stablehlo.compare":
        return None
    sides = [_counted(lowering, v, condition, arguments, fixed) for v in compare.operands]
    for first, how in ((0, direction(compare)), (1, _MIRRORED.get(direction(compare), ""))):
        position, _ = sides[first]
        _, limit = sides[1 - first]
        if position is None or limit is None or fixed[position]:
            continue
        if not arguments[position].element.is_integer:
            continue
        step = _step(lowering, body, position)
        if step is None:
            continue
        upwards = how in ("LT", "LE") and step > 0
        downwards = how in ("GT", "GE") and step < 0
        if upwards or downwards:
            start = arguments[position]
            return _Counter(position, start, step, limit, how in ("LE", "GE"))
    return None


def _definition(value: Any) -> Any:
    """The operation that computes a value; None for an argument of a block."""
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def _counted(
    lowering: Lowering, value: Any, condition: Any, arguments: list[Array], fixed: list[bool]
) -> tuple[int | None, Array | None]:
    """(which carried value it is, the array that it is in all iterations), each if so."""
    if isinstance(value, ir.BlockArgument) and value.owner == condition:
        position = value.arg_number
        return position, arguments[position] if fixed[position] else None
    owner = _definition(value)
    if owner is not None and owner.name == "stablehlo.constant":
        if value not in lowering.values:
            lowering.operation(owner)
        return None, lowering.values[value]
    if owner is not None and value not in lowering.values:
        return None, None
    return None, lowering.values[value]


def _step(lowering: Lowering, body: Any, position: int) -> int | None:
    """The constant that the body adds to a carried value, or None."""
    op = _definition(list(_terminator(body).operands)[position])
    if op is None or op.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    argument = body.arguments[position]
    left, right = op.operands
    if right == argument and op.name == "stablehlo.add":
        left, right = right, left
    if left != argument:
        return None
    constant = _definition(right)
    if constant is None:
        return None
    if constant.name == "stablehlo.constant":
        lowering.operation(constant)
    known = lowering.values.get(right)
    number = None if known is None else known.number
    if not number:
        return None
    return number if op.name == "stablehlo.add" else -number


def _for(
    lowering: Lowering, body: Any, arguments: list[Array], fixed: list[bool], counter: _Counter
) -> list[Array]:
    """``scf.for`` over the iterations; counters are computed from its variable."""
    steps = {counter.position: counter.step}
    for position, array in enumerate(arguments):
        if not fixed[position] and array.rank == 0 and array.element.is_integer:
            step = _step(lowering, body, position)
            if step is not None:
                steps[position] = step
    carried = [i for i in range(len(arguments)) if not fixed[i] and i not in steps]
    trips = counter.trips
    count = code.index(trips) if trips is not None else _trip_count(lowering, counter)
    starts = [lowering.tensor(arguments[i]) for i in carried]
    loop = mlir.dialect("scf").ForOp(code.index(0), count, code.index(1), starts)
    variable = loop.induction_variable
    with lowering.inside(loop.body):
        inner = list(arguments)
        for i, step in steps.items():
            inner[i] = _value_at(lowering, arguments[i], step, variable, trips)
        for i, value in zip(carried, loop.inner_iter_args, strict=True):
            inner[i] = Array(arguments[i].shape, arguments[i].element, value)
        results = lowering.block(body, inner)
        mlir.dialect("scf").YieldOp([lowering.tensor(results[i]) for i in carried])
    after = list(arguments)
    for i, step in steps.items():
        after[i] = _value_at(lowering, arguments[i], step, count, trips, last=True)
    for i, value in zip(carried, loop.results, strict=True):
        after[i] = Array(arguments[i].shape, arguments[i].element, value)
    return after


def _value_at(
    lowering: Lowering, start: Array, step: int, trip: Any, trips: int | None, last: bool = False
) -> Array:
    """A counter's value in an iteration, or after the last one."""
    element = start.element
    span = None
    first = start.bounds
    if trips is not None and first is not None:
        ends = [0, step * (trips if last else max(trips - 1, 0))]
        span = first[0] + min(ends), first[1] + max(ends)
        if not (element.lowest <= span[0] and span[1] <= element.highest):
            span = None
        elif last and first[0] == first[1]:
            return Array((), element, splat=first[0] + step * trips)
    value = convert(code.emit("arith.index_cast", [trip], I64.type), I64, element)
    if step != 1:
        value = code.emit("arith.muli", [value, code.constant(element, step)])
    if start.number != 0:
        value = code.emit("arith.addi", [value, lowering.scalar(start)])
    return Array((), element, scalar=value, range=span)


def _trip_count(lowering: Lowering, counter: _Counter) -> Any:
    """How often the loop runs, computed at run time in 64 bits."""
    wide = [convert(lowering.scalar(a), a.element, I64) for a in (counter.start, counter.limit)]
    start, limit = wide if counter.step > 0 else wide[::-1]
    span = code.emit("arith.subi", [limit, start])
    if counter.included:
        span = code.emit("arith.addi", [span, code.constant(I64, 1)])
    size = abs(counter.step)
    if size != 1:
        span = code.emit("arith.ceildivsi", [span, code.constant(I64, size)])
    trips = code.emit("arith.maxsi", [span, code.constant(I64, 0)])
    return code.emit("arith.index_cast", [trips], ir.IndexType.get())


def _general(
    lowering: Lowering, condition: Any, body: Any, arguments: list[Array], fixed: list[bool]
) -> list[Array]:
    """``scf.while``: the condition decides on the carried values before every iteration."""
    scf = mlir.dialect("scf")
    carried = [i for i in range(len(arguments)) if not fixed[i]]
    starts = [lowering.tensor(arguments[i]) for i in carried]
    kinds = [start.type for start in starts]
    loop = scf.WhileOp(kinds, starts)
    where = [ir.Location.current] * len(kinds)
    before = ir.Block.create_at_start(loop.regions[0], kinds, where)
    after = ir.Block.create_at_start(loop.regions[1], kinds, where)

    def bound(block: Any) -> list[Array]:
        inner = list(arguments)
        for i, value in zip(carried, block.arguments, strict=True):
            inner[i] = Array(arguments[i].shape, arguments[i].element, value)
        return inner

    with lowering.inside(before):
        (goes_on,) = lowering.block(condition, bound(before))
        scf.ConditionOp(lowering.scalar(goes_on), list(before.arguments))
    with lowering.inside(after):
        results = lowering.block(body, bound(after))
        scf.YieldOp([lowering.tensor(results[i]) for i in carried])
    return bound_results(arguments, carried, loop.results)


def bound_results(arguments: list[Array], carried: list[int], results: Any) -> list[Array]:
    """The arrays after a loop."""
    after = list(arguments)
    for i, value in zip(carried, results, strict=True):
        after[i] = Array(arguments[i].shape, arguments[i].element, value)
    return after


@rule("stablehlo.if")
def _if(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    (condition,) = arguments
    then, otherwise = (region.blocks[0] for region in op.regions)
    if condition.splat is not None:
        return lowering.block(then if condition.splat else otherwise, [])
    return _branches(lowering, op, lowering.scalar(condition), then, otherwise)


def _branches(
    lowering: Lowering, op: Any, condition: Any, then: Any, otherwise: Any
) -> list[Array]:
    scf = mlir.dialect("scf")
    kinds = [lowering.type_of(v) for v in op.results]
    types = [element.tensor(shape) for shape, element in kinds]
    chosen = scf.IfOp(condition, types, has_else=True)
    for target, source in ((chosen.then_block, then), (chosen.else_block, otherwise)):
        with lowering.inside(target):
            results = lowering.block(source, [])
            scf.YieldOp([lowering.tensor(r) for r in results])
    return _arrays(kinds, chosen.results)


def _arrays(kinds: list[tuple[tuple[int, ...], Element]], values: Any) -> list[Array]:
    return [
        Array(shape, element, value) for (shape, element), value in zip(kinds, values, strict=True)
    ]


@rule("stablehlo.case")
def _case(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    """Indices out of range take the last branch."""
    (index,) = arguments
    blocks = [region.blocks[0] for region in op.regions]
    number = index.number
    if number is not None:
        return lowering.block(blocks[number if 0 <= number < len(blocks) else -1], [])
    if len(blocks) == 1:
        return lowering.block(blocks[0], [])
    scalar = lowering.scalar(index)
    if len(blocks) == 2:
        first = code.compare_int("eq", scalar, code.constant(index.element, 0))
        return _branches(lowering, op, first, *blocks)
    kinds = [lowering.type_of(v) for v in op.results]
    types = [element.tensor(shape) for shape, element in kinds]
    where = code.emit("arith.index_cast", [scalar], ir.IndexType.get())
    switch = ir.Operation.create(
        "scf.index_switch",
        results=types,
        operands=[where],
        attributes={"cases": ir.DenseI64ArrayAttr.get(list(range(len(blocks) - 1)))},
        regions=len(blocks),
    )
    # The default region comes first.
    for region, source in zip(switch.regions, [blocks[-1], *blocks[:-1]], strict=True):
        block = ir.Block.create_at_start(region, [])
        with lowering.inside(block):
            results = lowering.block(source, [])
            mlir.dialect("scf").YieldOp([lowering.tensor(r) for r in results])
    return _arrays(kinds, switch.results)
