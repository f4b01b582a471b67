"""Nests with the copies, waits and multiplications of their product, and back to the plain nest."""

from __future__ import annotations

from typing import Any, TypeGuard

from polyblocks.affine.buffers.copies import MAIN, REGISTERS, BoxCopy
from polyblocks.affine.expr import Var
from polyblocks.affine.gpu.plans.kernel import Pipeline
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.staged.pipeline import CopyPipeline
from polyblocks.affine.gpu.staged.steps import number_of
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Op, Value, clone, walk
from polyblocks.affine.multiply import UnitSteps
from polyblocks.affine.subnests import parallel_shell


def is_staged(plan: Any) -> TypeGuard[UnitPlan]:
    """Whether the copies of a plan are nodes of the nest."""
    return isinstance(plan, UnitPlan) and not plan.copies_through_registers


def stage(body: list[Node], plan: UnitPlan) -> list[Node]:
    """The body of a nest with the steps of its product as nodes.

    The loops over rows and columns stay as they are: nodes say what each element needs, and the
    threads of a block do it together for all of theirs. A row is copied once for all columns.
    """
    from polyblocks.mlir import ir

    parts = plan.sizes.parts
    shell, _ = parallel_shell(body)
    element = ir.Type.parse(plan.product.element.name)
    nodes: list[Node] = [*parts.before, *CopyPipeline(plan, element).nodes(), *parts.after]
    for loop in reversed(shell):
        nodes = [For(loop.var, nodes, schedule=loop.schedule)]
    return nodes


def counted_steps(plan: UnitPlan) -> list[list[int]]:
    """The loops of the reduction that a step's number counts, and their extents.

    In the order in which they are counted, the last one fastest.
    """
    loops = plan.sizes.parts.reduction.order
    return [[loops.index(var), var.extent] for var in plan.product.order]


class StagedError(Exception):
    """A nest does not have the nodes that its schedule says it has."""


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
    before, nodes, after = inside[:begin], inside[begin : ends[-1] + 1], inside[ends[-1] + 1 :]
    copies = [BoxCopy.of(n) for n in walk(nodes) if isinstance(n, For) and n.copy]
    multiplies = [UnitSteps.of(n) for n in walk(nodes) if isinstance(n, For) and n.unit]
    if not multiplies:
        raise StagedError("expected multiplications by a unit")
    pipeline = _pipeline(nodes, copies, multiplies[0])
    loops = [Var(extent) for _, extent in sorted(counted)]
    order = [loops[number] for number in _ranks(counted)]
    carrying = [n for n in nodes if isinstance(n, For) and n.inits]
    reduction = _reduction(loops, order, carrying, multiplies[0], copies, pipeline)
    made: list[Node] = [*before, reduction, *after]
    for loop in reversed(shell):
        made = [For(loop.var, made, schedule=loop.schedule)]
    return made, pipeline


def _ranks(counted: list[list[int]]) -> list[int]:
    """Which of the loops each counted one is, if those without an entry are left out."""
    numbers = sorted(number for number, _ in counted)
    return [numbers.index(number) for number, _ in counted]


def _pipeline(nodes: list[Node], copies: list[BoxCopy], multiply: UnitSteps) -> Pipeline:
    fragments = [load.buffer for load in multiply.loads]
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


def _reduction(
    loops: list[Var],
    order: list[Var],
    carrying: list[For],
    multiply: UnitSteps,
    copies: list[BoxCopy],
    pipeline: Pipeline,
) -> For:
    """The loops over all steps that the multiplications stand for."""
    number = number_of(order)
    inner = multiply.loop
    carried = Value(inner.arguments[0].type)
    values = {inner.arguments[0]: carried}
    body: list[Node] = []
    for side, load in enumerate(multiply.loads):
        of_memory, conversions = _source(copies, pipeline, side)
        (step,) = of_memory.variables
        source = of_memory.source
        at = {step: number}
        element = Load(
            *(Value(source.result.type), source.buffer),
            *(tuple(e.substitute(at) for e in source.index), source.location),
            where=tuple(e.substitute(at) for e in source.where),
            padding=source.padding,
        )
        body.append(element)
        value = element.result
        for op in conversions:
            operands, value = [value], Value(op.results[0].type)
            body.append(Op(op.name, operands, op.attributes, [value], op.location))
        values[load.result] = value
    body += clone([n for n in inner.body if not isinstance(n, Load)], values, {})
    (init,), (total,) = carrying[0].inits, carrying[-1].results
    yields = [values[inner.yields[0]]]
    made: For | None = None
    for var in reversed(loops):
        inside: list[Node] = body if made is None else [made]
        outermost = var is loops[0]
        argument = carried if made is None else Value(carried.type)
        if made is not None:
            made.inits, yields = [argument], list(made.results)
        results = [total if outermost else Value(carried.type)]
        made = For(var, inside, [init], [argument], results, yields)
    assert made is not None
    return made


def _source(copies: list[BoxCopy], pipeline: Pipeline, side: int) -> tuple[BoxCopy, tuple[Op, ...]]:
    """The copy of an operand from memory, and what is done with its elements on the way."""
    conversions: tuple[Op, ...] = ()
    if pipeline.loaded[side] is not None:
        stores = [c for c in copies if c.source.buffer is pipeline.loaded[side]]
        conversions = stores[0].conversions
    ends = (pipeline.tiles[side], pipeline.loaded[side])
    found = [c for c in copies if c.source.buffer.space == MAIN and c.destination.buffer in ends]
    if not found or len(found[0].variables) != 1:
        raise StagedError(f"expected copies of steps from memory to {pipeline.tiles[side]}")
    return found[0], conversions


def mismatch(pipeline: Pipeline, plan: UnitPlan) -> str:
    """How the buffers of a pipeline differ from those of a plan; empty if they do not."""
    for operand, tiles in zip(plan.product.operands, pipeline.tiles, strict=True):
        expected = plan.shape(operand), plan.layout(operand)
        if (tiles.shape, tiles.layout) != expected:
            return (
                f"expected tiles of shape {list(expected[0])} in the layout {expected[1]}, got "
                f"{list(tiles.shape)} in {tiles.layout}"
            )
    return ""
