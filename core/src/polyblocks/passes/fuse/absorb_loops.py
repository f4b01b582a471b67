"""absorb-loops: a program's loop of independent iterations is a loop of one nest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    Alloca,
    Buffer,
    ControlFlow,
    For,
    Nest,
    Node,
    Sequence,
    clone,
    walk,
)
from polyblocks.affine.subnests import mark_tiles
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class AbsorbLoopsPass(NestPass):
    """Make a counted loop of the program the outermost loop of the nests in it.

    ``lax.map`` and scans that compute one row after the other are loops of the program. Where no
    row needs another one, all of them are one nest, whose outermost loop threads share. Arrays that
    are made in each iteration are the row's own.

    Before::

        affine.for %i = 0 to 200 {
          %t = memref.alloc() : memref<64xf32>
          affine.for %j = 0 to 64 { ... affine.store %u, %t[%j] }
          affine.for %j = 0 to 64 { ... affine.store %v, %rows[%i, %j] }
        } {polyblocks.region = "loop1"}

    After::

        affine.for %i = 0 to 200 {
          %t = memref.alloca() : memref<64xf32>
          affine.for %j = 0 to 64 { ... affine.store %u, %t[%j] }
          affine.for %j = 0 to 64 { ... affine.store %v, %rows[%i, %j] } }

    Several nests need enough rows for all threads, and little memory of their own; else each of
    them is better shared by the threads alone. On targets with blocks of threads they stay apart.
    """

    name: ClassVar[str] = "absorb-loops"
    breaks: ClassVar[frozenset[str]] = frozenset({facts.UNFUSED})
    #: Bytes of a row's own arrays, on the stack of a thread.
    own_bytes: int = 1 << 15
    #: Rows of several nests for each thread, at least.
    rows: int = 4

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Absorb the loops that stand in a sequence, from the inside out."""
        for position, item in enumerate(sequence.items):
            if not isinstance(item, ControlFlow):
                continue
            for body in item.bodies:
                self.transform(body, context)
            nest = self._absorbed(item, context.target)
            if nest is None:
                continue
            sequence.items[position] = nest
            (loop,) = nest.body
            assert isinstance(loop, For)
            context.decide(self.name, nest.name, "absorbed", trips=loop.var.extent)

    def _absorbed(self, region: ControlFlow, target: Any) -> Nest | None:
        """The nest that does what a loop of the program does; None if there is no such nest."""
        op = region.operation
        if op.name != "affine.for" or len(op.results) or region.reads or region.writes:
            return None
        (body,) = region.bodies
        inner = body.nests()
        if not inner or len(inner) < len(body.items):
            return None
        nodes = [n for nest in inner for n in nest.body]
        var = _variable(nodes, op.regions[0].blocks[0].arguments[0])
        buffers = {n.buffer: n.buffer.outer for n in walk(nodes) if isinstance(n, Access)}
        own = [b for b, outer in buffers.items() if outer is None and b.kind != "local"]
        if var is None or any(b.kind != "alloc" or b.base is not b for b in own):
            return None
        if any(v.external is not None for n in walk(nodes) for v in n.uses):
            return None
        if len(inner) > 1 or own:
            few = var.extent < self.rows * target.shared_level.size
            large = sum(b.nbytes for b in own) > self.own_bytes
            if few or large or target.launches_nests:
                return None
        known = {b: outer for b, outer in buffers.items() if outer is not None}
        known |= {b: _local(b) for b in own}
        made: list[Node] = [Alloca(known[b]) for b in own]
        row = Var(var.extent, var.name)
        loop = For(row, [*made, *clone(nodes, {}, {var: Expr.of(row)}, dict(known))])
        absorbed: list[Node] = [loop]
        if not is_parallel(loop, absorbed):
            return None
        mark_tiles(absorbed)
        nest = Nest(absorbed, [op], changed=True)
        nest.name, nest.kind = inner[0].name, inner[-1].kind
        nest.sources = list(dict.fromkeys(s for n in inner for s in n.sources))
        return nest


def _local(buffer: Buffer) -> Buffer:
    size = buffer.bytes_per_element
    return Buffer(buffer.shape, buffer.element, "local", bytes_per_element=size)


def _variable(nodes: list[Node], value: Any) -> Var | None:
    """The variable of the loop around whose MLIR value this is, if a nest uses it."""
    for node in walk(nodes):
        for var in node.variables():
            if var.value is not None and var.value == value:
                return var
    return None
