"""split-reductions: a long reduction with too little around it is done in parallel parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.footprints import analyze
from polyblocks.affine.analysis.reductions import ReductionNest, identities
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.loop_order import shares
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    clone,
    remove_dead,
)
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class SplitReductionsPass(NestPass):
    """Give every thread a part of a reduction that has no parallel loops to share out.

    The outermost reduction loop is cut; each part starts from the identity of the operation and
    leaves its result in a buffer, which a second, small reduction reads. Only reductions whose
    order does not matter are split.

    Before::

        %r = affine.for %k = 0 to 1000000 iter_args(%s = %z) -> f32 { ... }
        affine.store %r, %out[]

    After::

        affine.for %c = 0 to 16 {
          %p = affine.for %k = 0 to 62500 iter_args(%s = %zero) -> f32 { ... %c * 62500 + %k ... }
          affine.store %p, %parts[%c] }
        %r = affine.for %c = 0 to 16 iter_args(%s = %z) -> f32 { ... affine.load %parts[%c] ... }
        affine.store %r, %out[]
    """

    name: ClassVar[str] = "split-reductions"
    #: Parts for each thread: a thread that comes late leaves its share to the others.
    parts_per_thread: int = 4
    #: The smallest gain, in times the start of a team, that is worth a second nest.
    min_gain: float = 4.0

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split where threads would be idle.

        How small is too small nothing tells where the target's description lacks a rate.
        """
        level = context.target.shared_level
        if level.size < 2:
            return
        for nest in sequence.nests():
            shape = ReductionNest.of(nest)
            if shape is None or any(f.bounded for f in (*shape.parallel, *shape.reductions)):
                continue
            blocks = context.target.multiprocessor is not None
            # Blocks share the inner loops as well, whichever they are.
            iterations = shape.iterations if blocks else shares(shape, context.target)
            extent = shape.reductions[0].var.extent
            # What a thread takes for all of it.
            seconds = rates.compute_seconds(context.target, cost.work(nest.body) * level.size)
            if blocks and seconds is not None:
                # Blocks have their shares of the memory's bandwidth, and do as many of the outer
                # iterations at once as there are.
                moved = rates.traffic_seconds(context.target, *_read(nest))
                at_once = min(level.size, max(iterations, 1))
                seconds = None if moved is None else max(seconds, moved * level.size) / at_once
            if iterations >= 2 * level.size:
                continue
            if seconds is not None and seconds < self.min_gain * level.overhead:
                continue
            combiners = shape.combiners()
            starts = None if combiners is None else identities(combiners)
            parts = min(self.parts_per_thread * level.size, extent // 2)
            if starts is None or parts < 2:
                continue
            sequence.items[sequence.items.index(nest) : sequence.items.index(nest) + 1] = _split(
                nest, shape, starts, extent, parts
            )
            context.decide(self.name, nest.name, "split", parts=parts, serial_seconds=seconds)


def _read(nest: Nest) -> tuple[int, int]:
    """Bytes that a nest reads, each once, and the same as a footprint."""
    touched = analyze(nest.body, 1).whole.values()
    read = sum(t.read for t in touched)
    return read, read


def _split(
    nest: Nest, shape: ReductionNest, starts: list[Op], extent: int, parts: int
) -> list[Nest]:
    """The nests of the parts (one, or two with a tail) and the nest that joins them."""
    length = extent // parts
    tail = extent - length * parts
    count = parts + (1 if tail else 0)
    outer = tuple(loop.var for loop in shape.parallel)
    buffers = [
        Buffer(
            # Parts first: neighbours of an outer loop stay neighbours.
            (count, *(v.extent for v in outer)),
            init.type,
            "alloc",
            bytes_per_element=element_bytes(init.type),
        )
        for init in shape.reductions[0].inits
    ]
    nests = [_part(shape, starts, buffers, Var(parts), length, 0, 0)]
    if tail:
        nests.append(_part(shape, starts, buffers, Var(1), tail, length * parts, parts))
    for part in nests:
        part.name, part.kind, part.sources = f"{nest.name}_parts", nest.kind, nest.sources

    combiners = shape.combiners()
    assert combiners is not None
    part_var = Var(count)
    arguments = [Value(v.type) for v in shape.reductions[0].arguments]
    body: list[Node] = []
    yields = []
    for buffer, argument, op in zip(buffers, arguments, combiners, strict=True):
        loaded, joined = Value(argument.type), Value(argument.type)
        index = (Expr.of(part_var), *(Expr.of(v) for v in outer))
        body.append(Load(loaded, buffer, index))
        body.append(Op(op.name, [argument, loaded], op.attributes, [joined], op.location))
        yields.append(joined)
    first = shape.reductions[0]
    join = For(part_var, body, list(first.inits), arguments, list(first.results), yields)
    new: list[Node] = [*shape.before, join, *shape.after]
    for loop in reversed(shape.parallel):
        new = [For(loop.var, new)]
    nest.body = new
    remove_dead(nest.body)
    nest.changed = True
    return [*nests, nest]


def _part(
    shape: ReductionNest,
    starts: list[Op],
    buffers: list[Buffer],
    part: Var,
    length: int,
    offset: int,
    slot: int,
) -> Nest:
    """Parts ``slot`` onwards: each reduces ``length`` iterations, from ``offset`` on."""
    loops = [Var(loop.var.extent) for loop in shape.parallel]
    substitution = {old.var: Expr.of(new) for old, new in zip(shape.parallel, loops, strict=True)}
    inner_var = Var(length)
    values: dict[Value, Value] = {}
    body = clone(shape.before, values, substitution)
    inits: list[Value] = []
    for start in starts:
        value = Value(start.results[0].type)
        body.append(Op(start.name, [], start.attributes, [value]))
        inits.append(value)
    substitution[shape.reductions[0].var] = Expr.of(part) * length + inner_var + offset
    variables = [inner_var, *(Var(r.var.extent) for r in shape.reductions[1:])]
    for old, new in zip(shape.reductions[1:], variables[1:], strict=True):
        substitution[old.var] = Expr.of(new)
    # The chain from the inside out, as it was.
    last = shape.reductions[-1]
    arguments = [Value(v.type) for v in last.arguments]
    values.update(zip(last.arguments, arguments, strict=True))
    inner = clone(shape.inner, values, substitution)
    yields = [values.get(v, v) for v in last.yields]
    chain: For | None = None
    for var in reversed(variables):
        results = [Value(v.type) for v in arguments]
        nodes: list[Node] = [chain] if chain is not None else inner
        loop = For(var, nodes, [], arguments, results, yields)
        arguments, yields = [Value(v.type) for v in arguments], results
        if chain is not None:
            chain.inits = loop.arguments
        chain = loop
    assert chain is not None
    chain.inits = inits
    body.append(chain)
    for buffer, result in zip(buffers, chain.results, strict=True):
        index = (Expr.of(part) + slot, *(Expr.of(v) for v in loops))
        body.append(Store(result, buffer, index))
    new_body = body
    for loop_var in reversed(loops):
        new_body = [For(loop_var, new_body)]
    new_body = [For(part, new_body)]
    remove_dead(new_body)
    return Nest(new_body, [], changed=True)
