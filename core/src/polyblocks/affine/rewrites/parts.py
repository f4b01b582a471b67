"""A reduction in parts that do not depend on each other, and the nest that joins them in order."""

from __future__ import annotations

from polyblocks.affine.analysis.reductions import ReductionNest, identities
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Op,
    Store,
    Value,
    clone,
    remove_dead,
    walk,
)
from polyblocks.affine.ops import Ops

#: Parts up to which they are joined without a loop.
FEW_PARTS = 8


def split(
    nest: Nest, shape: ReductionNest, combiners: list[Op], length: int, *, zeros: bool = False
) -> list[Nest]:
    """Cut the outermost reduction loop of a nest, which becomes the one that joins.

    Args:
        nest: changed in place.
        shape: its parts; no loop has bounds of its own.
        combiners: of its carried values; each has an identity, which parts start from.
        length: iterations of a part.
        zeros: whether steps that read only zeros add nothing. The last part is then as long as
            the others and loads under conditions; else the remainder is a nest.

    Returns:
        The nests of the parts, and the one that joins them.
    """
    starts = identities(combiners)
    assert starts is not None
    extent = shape.reductions[0].var.extent
    parts, tail = divmod(extent, length)
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
    if tail and zeros:
        nests = [part_nest(shape, starts, buffers, Var(count), length, 0, 0, extent)]
    else:
        nests = [part_nest(shape, starts, buffers, Var(parts), length, 0, 0)]
        if tail:
            nests.append(part_nest(shape, starts, buffers, Var(1), tail, length * parts, parts))
    for part in nests:
        part.name, part.kind, part.sources = f"{nest.name}_parts", nest.kind, nest.sources
    if nest.kind == "contraction":
        # The remainder joins them.
        nest.kind = "reduction" if count > FEW_PARTS else "pointwise"
    new: list[Node] = [*shape.before, *_join(shape, combiners, buffers, count), *shape.after]
    for loop in reversed(shape.parallel):
        new = [For(loop.var, new)]
    remove_dead(new)
    nest.replace(new)
    return [*nests, nest]


def _join(
    shape: ReductionNest, combiners: list[Op], buffers: list[Buffer], count: int
) -> list[Node]:
    """Code that combines what parts left, in order: a loop, or without one if parts are few."""
    first, outer = shape.reductions[0], [Expr.of(loop.var) for loop in shape.parallel]
    if count <= FEW_PARTS:
        nodes: list[Node] = []
        for buffer, op, init, result in zip(
            buffers, combiners, first.inits, first.results, strict=True
        ):
            value = init
            for part in range(count):
                loaded = Value(init.type)
                nodes.append(Load(loaded, buffer, (Expr(part), *outer)))
                value = Ops(nodes).like(op, [value, loaded])
            last = nodes[-1]
            assert isinstance(last, Op)
            last.results = [result]
        return nodes
    part_var = Var(count)
    arguments = [Value(v.type) for v in first.arguments]
    body: list[Node] = []
    yields = []
    for buffer, argument, op in zip(buffers, arguments, combiners, strict=True):
        loaded = Value(argument.type)
        body.append(Load(loaded, buffer, (Expr.of(part_var), *outer)))
        yields.append(Ops(body).like(op, [argument, loaded]))
    return [For(part_var, body, list(first.inits), arguments, list(first.results), yields)]


def part_nest(
    shape: ReductionNest,
    starts: list[Op],
    buffers: list[Buffer],
    part: Var,
    length: int,
    offset: int,
    slot: int,
    end: int | None = None,
) -> Nest:
    """Parts ``slot`` onwards: each reduces ``length`` iterations, from ``offset`` on.

    Iterations from ``end`` on, if it is given, load zeros.
    """
    loops = [Var(loop.var.extent) for loop in shape.parallel]
    substitution = {old.var: Expr.of(new) for old, new in zip(shape.parallel, loops, strict=True)}
    inner_var = Var(length)
    values: dict[Value, Value] = {}
    body = clone(shape.before, values, substitution)
    inits = [Ops(body).like(start, []) for start in starts]
    step = Expr.of(part) * length + inner_var + offset
    substitution[shape.reductions[0].var] = step
    variables = [inner_var, *(Var(r.var.extent) for r in shape.reductions[1:])]
    for old, new in zip(shape.reductions[1:], variables[1:], strict=True):
        substitution[old.var] = Expr.of(new)
    # The chain from the inside out, as it was.
    last = shape.reductions[-1]
    arguments = [Value(v.type) for v in last.arguments]
    values.update(zip(last.arguments, arguments, strict=True))
    inner = clone(shape.inner, values, substitution)
    if end is not None:
        for node in walk(inner):
            if isinstance(node, Load) and {part, inner_var} & _variables(node):
                node.where = (*node.where, Expr(end - 1) - step)
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


def _variables(load: Load) -> set[Var]:
    return {v for e in load.index for v in e.variables()}
