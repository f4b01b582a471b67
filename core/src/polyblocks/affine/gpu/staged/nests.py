"""Nests with the copies and waits of their contraction as nodes, and back to the plain nest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

from polyblocks.affine.buffers.copies import MAIN, REGISTERS, SHARED, BoxCopy, Commit, Wait
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.kernel import Exchange, Pipeline
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.staged.copy_pipeline import CopyPipeline
from polyblocks.affine.gpu.staged.errors import StagedError
from polyblocks.affine.gpu.staged.exchange import exchange, exchange_of, layout, shape
from polyblocks.affine.gpu.staged.group_pipeline import GroupPipeline
from polyblocks.affine.gpu.staged.lane_steps import LaneSteps
from polyblocks.affine.gpu.staged.register_pipeline import RegisterPipeline
from polyblocks.affine.gpu.staged.results import boxes, boxes_of
from polyblocks.affine.gpu.staged.role_pipeline import RolePipeline
from polyblocks.affine.gpu.staged.steps import number_of
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Op, Value, clone, walk
from polyblocks.affine.multiply import UnitSteps
from polyblocks.affine.subnests import parallel_shell
from polyblocks.affine.swizzles import Swizzle


def is_staged(plan: Any) -> TypeGuard[UnitPlan | LanePlan]:
    """Whether a plan has tiles in shared memory, copies to which are nodes of the nest."""
    return isinstance(plan, (UnitPlan, LanePlan))


def stage(body: list[Node], plan: UnitPlan | LanePlan) -> list[Node]:
    """The body of a nest with the steps of its contraction as nodes.

    The loops over rows and columns stay as they are: nodes say what each element needs, and the
    threads of a block do it together for all of theirs. A row is copied once for all columns.
    """
    from polyblocks.mlir import ir

    parts = plan.sizes.parts
    shell, _ = parallel_shell(body)
    if isinstance(plan, UnitPlan):
        element = ir.Type.parse(plan.product.element.name)
        if isinstance(plan, GroupUnitPlan):
            of_groups = GroupPipeline if plan.bulk is None else RolePipeline
            steps = of_groups(plan, element).nodes()
        else:
            pipeline = RegisterPipeline if plan.copies_through_registers else CopyPipeline
            steps = pipeline(plan, element).nodes()
    else:
        steps = LaneSteps(plan).nodes()
    after = parts.after
    if isinstance(plan, GroupUnitPlan) and plan.result is not None:
        after = boxes(plan, after)
    elif isinstance(plan, UnitPlan) and plan.exchanges_sums:
        after = exchange(plan, parts.reduction.loops[0].results[0], after)
    nodes: list[Node] = [*parts.before, *steps, *after]
    for loop in reversed(shell):
        nodes = [For(loop.var, nodes, schedule=loop.schedule)]
    return nodes


def counted_steps(plan: UnitPlan | LanePlan) -> list[list[int]]:
    """The loops of the reduction that a step's number counts, and their extents.

    In the order in which they are counted, the last one fastest.
    """
    loops = plan.sizes.parts.reduction.order
    order = plan.product.steps if isinstance(plan, UnitPlan) else loops
    return [[loops.index(var), var.extent] for var in order]


def plain(body: list[Node], counted: list[list[int]]) -> tuple[list[Node], Pipeline]:
    """The nest without copies, and its pipeline.

    Args:
        body: of a nest that :func:`stage` made.
        counted: see :func:`counted_steps`.

    Raises:
        StagedError: it has other nodes.
    """
    shell, inside = parallel_shell(body)
    begin = next((i for i, n in enumerate(inside) if isinstance(n, Alloca)), None)
    ends = [i for i, n in enumerate(inside) if isinstance(n, For) and n.inits]
    if begin is None or not ends or ends[-1] < begin:
        raise StagedError("expected buffers and multiplications behind each other")
    end = _end_of_waits(inside, ends[-1] + 1)
    before, nodes = inside[:begin], inside[begin:end]
    exchanged, after = boxes_of(inside[end:])
    if exchanged is None:
        exchanged, after = exchange_of(after)
    copies = [BoxCopy.of(n) for n in walk(nodes) if isinstance(n, For) and n.copy]
    multiplies = [UnitSteps.of(n) for n in walk(nodes) if isinstance(n, For) and n.unit]
    loops = [Var(extent) for _, extent in sorted(counted)]
    number = number_of([loops[rank] for rank in _ranks(counted)])
    if multiplies:
        pipeline = _pipeline(nodes, copies, multiplies[0])
        innermost = _of_unit(number, multiplies[0], copies, pipeline)
    else:
        pipeline = _of_lanes(nodes, copies)
        innermost = _step(number, nodes, copies, pipeline)
    carrying = [n for n in nodes if isinstance(n, For) and n.inits]
    reduction = _reduction(loops, innermost, carrying[0].inits, carrying[-1].results)
    made: list[Node] = [*before, reduction, *after]
    for loop in reversed(shell):
        made = [For(loop.var, made, schedule=loop.schedule)]
    return made, replace(pipeline, exchange=exchanged)


def _end_of_waits(nodes: list[Node], begin: int) -> int:
    """Where the nodes end that wait for what is multiplied before them."""
    end = begin
    while end < len(nodes) and isinstance(nodes[end], (Commit, Wait)):
        end += 1
    return end


def _ranks(counted: list[list[int]]) -> list[int]:
    """Which of the loops each counted one is, if those without an entry are left out."""
    numbers = sorted(number for number, _ in counted)
    return [numbers.index(number) for number, _ in counted]


def _pipeline(nodes: list[Node], copies: list[BoxCopy], multiply: UnitSteps) -> Pipeline:
    fragments = [load.buffer for load in multiply.loads]
    if fragments[0].space == SHARED:
        first, second = fragments
        return Pipeline(nodes, (first, second), (), (None, None))
    into = {c.destination.buffer: c for c in copies if c.kind == "fragments"}
    if set(into) != set(fragments):
        raise StagedError("expected that the operands of multiplications come from shared memory")
    tiles = [into[buffer].source.buffer for buffer in fragments]
    loaded: list[Buffer | None] = []
    for tile in tiles:
        filled = [c.source.buffer for c in copies if c.destination.buffer is tile]
        if not filled:
            raise StagedError(f"expected a copy to {tile}")
        loaded.append(filled[0] if filled[0].space == REGISTERS else None)
    return Pipeline(
        nodes, (tiles[0], tiles[1]), (fragments[0], fragments[1]), (loaded[0], loaded[1])
    )


def _of_lanes(nodes: list[Node], copies: list[BoxCopy]) -> Pipeline:
    """Tiles in the order in which operands are loaded."""
    stored = {c.destination.buffer: c.source.buffer for c in copies if c.source.buffer.space}
    if not stored or any(c.kind == "fragments" for c in copies):
        raise StagedError("expected multiplications by a unit, or copies to shared memory alone")
    tiles = tuple(n.buffer for n in nodes if isinstance(n, Alloca) and n.buffer in stored)
    return Pipeline(nodes, tiles, (), tuple(stored[tile] for tile in tiles))


def _of_unit(number: Expr, multiply: UnitSteps, copies: list[BoxCopy], pipeline: Pipeline) -> For:
    """A step of the multiplications with operands from memory, as a loop without bounds."""
    inner = multiply.loop
    arguments = [Value(v.type) for v in inner.arguments]
    values = dict(zip(inner.arguments, arguments, strict=True))
    body: list[Node] = []
    for side, load in enumerate(multiply.loads):
        copy, conversions = _source(copies, pipeline, side)
        value = _element(copy, number, load.result, values, body)
        for op in conversions:
            operands, value = [value], Value(op.results[0].type)
            body.append(Op(op.name, operands, op.attributes, [value], op.location))
        values[load.result] = value
    body += clone([n for n in inner.body if not isinstance(n, Load)], values, {})
    return For(inner.var, body, [], arguments, [], [values[v] for v in inner.yields])


def _step(number: Expr, nodes: list[Node], copies: list[BoxCopy], pipeline: Pipeline) -> For:
    """A step of lanes with operands from memory, as a loop without bounds."""
    inner = next(
        n
        for n in walk(nodes)
        if isinstance(n, For) and n.inits and not any(isinstance(m, For) for m in n.body)
    )
    arguments = [Value(v.type) for v in inner.arguments]
    values = dict(zip(inner.arguments, arguments, strict=True))
    body: list[Node] = []
    for node in inner.body:
        if isinstance(node, Load) and node.buffer in pipeline.tiles:
            copy, _ = _source(copies, pipeline, pipeline.side(node.buffer))
            values[node.result] = _element(copy, number, node.result, values, body)
        else:
            body += clone([node], values, {inner.var: number})
    return For(inner.var, body, [], arguments, [], [values[v] for v in inner.yields])


def _element(
    copy: BoxCopy, number: Expr, result: Value, values: dict[Value, Value], body: list[Node]
) -> Value:
    """Load what a copy reads for a step of this number; the value."""
    (step,) = copy.variables
    at, source = {step: number}, copy.source
    value = values[result] = Value(source.result.type)
    body.append(
        Load(
            *(value, source.buffer),
            *(tuple(e.substitute(at) for e in source.index), source.location),
            where=tuple(e.substitute(at) for e in source.where),
            padding=source.padding,
        )
    )
    return value


def _reduction(loops: list[Var], step: For, inits: list[Value], results: list[Value]) -> For:
    """The loops over all steps, with the body of one."""
    made = For(loops[-1], step.body, [], step.arguments, [], step.yields)
    for var in reversed(loops[:-1]):
        arguments = [Value(v.type) for v in inits]
        made.inits, made.results = arguments, [Value(v.type) for v in inits]
        made = For(var, [made], [], arguments, [], list(made.results))
    made.inits, made.results = list(inits), list(results)
    return made


def _source(copies: list[BoxCopy], pipeline: Pipeline, side: int) -> tuple[BoxCopy, tuple[Op, ...]]:
    """The copy of an operand from memory, and the conversions of its elements on the way."""
    conversions: tuple[Op, ...] = ()
    if pipeline.loaded[side] is not None:
        stores = [c for c in copies if c.source.buffer is pipeline.loaded[side]]
        conversions = stores[0].conversions
    ends = (pipeline.tiles[side], pipeline.loaded[side])
    found = [c for c in copies if c.source.buffer.space == MAIN and c.destination.buffer in ends]
    if not found or len(found[0].variables) != 1:
        raise StagedError(f"expected copies of steps from memory to {pipeline.tiles[side]}")
    return found[0], conversions


def mismatch(pipeline: Pipeline, plan: UnitPlan | LanePlan) -> str:
    """How the buffers of a pipeline differ from those of a plan; empty if they do not."""
    expected: list[tuple[tuple[int, ...], tuple[Swizzle, ...]]]
    if isinstance(plan, UnitPlan):
        past = [plan.is_asynchronous(o) for o in plan.product.operands]
        if (given := [buffer is None for buffer in pipeline.loaded]) != past:
            return f"expected operands whose copies are asynchronous {past}, got {given}"
        if reason := _exchange_mismatch(pipeline.exchange, plan):
            return reason
        expected = [(plan.shape(o), plan.layout(o)) for o in plan.product.operands]
    else:
        expected = [(plan.shape(o), ()) for o in plan.sizes.parts.operands]
    found = [(tiles.shape, tiles.layout) for tiles in pipeline.tiles]
    if found == expected:
        return ""
    one, other = (" and ".join(map(_in_words, each)) for each in (expected, found))
    return f"expected tiles {one} in shared memory, got {other}"


def _exchange_mismatch(found: Exchange | None, plan: UnitPlan) -> str:
    """How an exchange of sums is none that a plan allows for; empty if it is one, or none."""
    boxed = isinstance(plan, GroupUnitPlan) and plan.result is not None
    if found is None:
        return "expected that results leave shared memory in boxes" if boxed else ""
    if not boxed and not plan.exchanges_sums:
        return "expected no exchange of sums, whose columns are not stored together"
    given, expected = (found.buffer.shape, found.buffer.layout), (shape(plan), layout(plan))
    if isinstance(plan, GroupUnitPlan) and boxed:
        expected = plan.result_shape, plan.result_layout
    if given == expected:
        return ""
    return f"expected an exchange of sums through {_in_words(expected)}, got {_in_words(given)}"


def _in_words(tile: tuple[tuple[int, ...], tuple[Swizzle, ...]]) -> str:
    shape, layout = tile
    swizzles = [f"{s.of} into {s.into} by {list(s.masks)}" for s in layout]
    return f"{list(shape)} ({'; '.join(swizzles) or 'not swizzled'})"
