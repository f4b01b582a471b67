"""absorb-loops: a program's loop around one nest, of independent iterations, is a loop of it."""

from __future__ import annotations

from typing import Any, ClassVar

from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    Buffer,
    ControlFlow,
    For,
    Index,
    Nest,
    Node,
    Sequence,
    clone,
    operands,
    walk,
)
from polyblocks.affine.subnests import mark_tiles
from polyblocks.passes.base import NestPass


class AbsorbLoopsPass(NestPass):
    """Make a counted loop of the program the outermost loop of the only nest in it.

    ``lax.map`` and scans that compute one row after the other are loops of the program. Where no
    row needs another one, all of them are one nest, whose outermost loop threads share.

    Before::

        affine.for %i = 0 to 200 {
          affine.for %j = 0 to 64 { ... affine.store %v, %rows[%i, %j] }
        } {polyblocks.region = "loop1"}

    After::

        affine.for %i = 0 to 200 { affine.for %j = 0 to 64 {
          ... affine.store %v, %rows[%i, %j] } }

    Loops stay with the program whose nests use scalars or arrays that are made in each iteration.
    """

    name: ClassVar[str] = "absorb-loops"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Absorb the loops that stand in a sequence, from the inside out."""
        for position, item in enumerate(sequence.items):
            if not isinstance(item, ControlFlow):
                continue
            for body in item.bodies:
                self.transform(body, context)
            nest = _absorbed(item)
            if nest is None:
                continue
            sequence.items[position] = nest
            (loop,) = nest.body
            assert isinstance(loop, For)
            context.decide(self.name, nest.name, "absorbed", trips=loop.var.extent)


def _absorbed(region: ControlFlow) -> Nest | None:
    """The nest that does what a loop of the program does; None if there is no such nest."""
    op = region.operation
    if op.name != "affine.for" or len(op.results) or region.reads or region.writes:
        return None
    (body,) = region.bodies
    if len(body.items) != 1 or not isinstance(body.items[0], Nest):
        return None
    (inner,) = body.items
    assert isinstance(inner, Nest)
    var = _variable(inner.body, op.regions[0].blocks[0].arguments[0])
    buffers = {n.buffer: n.buffer.outer for n in walk(inner.body) if isinstance(n, Access)}
    known = {new: outer for new, outer in buffers.items() if outer is not None}
    if var is None or any(b.kind != "local" and b not in known for b in buffers):
        return None
    if any(v.external is not None for n in walk(inner.body) for v in operands(n)):
        return None
    row = Var(var.extent, var.name)
    loop = For(row, clone(inner.body, {}, {var: Expr.of(row)}, dict[Buffer, Buffer](known)))
    nodes: list[Node] = [loop]
    if not is_parallel(loop, nodes):
        return None
    mark_tiles(nodes)
    nest = Nest(nodes, [op], changed=True)
    nest.name, nest.kind, nest.sources = inner.name, inner.kind, inner.sources
    return nest


def _variable(nodes: list[Node], value: Any) -> Var | None:
    """The variable of the loop around whose MLIR value this is, if a nest uses it."""
    for node in walk(nodes):
        exprs: tuple[Expr, ...] = ()
        if isinstance(node, Index):
            exprs = (node.expr,)
        elif isinstance(node, For):
            exprs = node.bounds
        elif isinstance(getattr(node, "index", None), tuple):
            exprs = (*node.index, *getattr(node, "where", ()))
        for expr in exprs:
            for var in expr.variables():
                if var.value is not None and var.value == value:
                    return var
    return None
