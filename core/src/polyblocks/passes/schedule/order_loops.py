"""order-loops: the loop that walks memory in order becomes the innermost one of a reduction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.cost.loop_order import LoopOrder, loop_order, strip_size
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import For, Node, Sequence, clone, remove_dead
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.rewrites.strips import Strip
from polyblocks.affine.subnests import change_subnests
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class OrderLoopsPass(NestPass):
    """Choose the innermost loop of every reduction nest.

    If it is a parallel loop, it is done strip by strip, and the accumulators become a small array
    along the strip. Several iterations of the reduction share one pass over it.

    Before (``%b`` is walked by columns)::

        affine.for %i .. { affine.for %j = 0 to 64 {
          %r = affine.for %k .. iter_args(%s = %z) {
            ... affine.load %a[%i, %k] ... affine.load %b[%k, %j] ... }
          affine.store %r, %c[%i, %j] } }

    After (with two iterations in one pass)::

        affine.for %i .. {
          %acc = memref.alloca() : memref<64xf32>
          affine.for %j = 0 to 64 { affine.store %z, %acc[%j] }
          affine.for %k .. { affine.for %j = 0 to 64 {
            %s = affine.load %acc[%j]
            ... affine.load %b[2 * %k, %j] ... affine.load %b[2 * %k + 1, %j] ...
            ... affine.store %t, %acc[%j] } }
          affine.for %j = 0 to 64 { ... affine.store %r, %c[%i, %j] } }
    """

    name: ClassVar[str] = "order-loops"
    breaks: ClassVar[frozenset[str]] = frozenset(
        {facts.REDUCTIONS, facts.UNTILED, facts.WHOLE_LOOPS}
    )
    #: Iterations in one pass. On Zen 4, column sums of 64 MiB by two cores: 24 GB/s with 1, 32
    #: with 2, 48 with 4, 58 with 8, 60 with 16.
    jam: int = 8
    #: Nodes of the body of one pass, beyond which registers and compile time run out.
    max_nodes: int = 96

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Order the loops of every nest and sub-nest that has a reduction."""
        level = context.target.shared_level
        for nest in sequence.nests():
            chosen: list[LoopOrder] = []

            def change(
                nodes: list[Node], around: list[For], chosen: list[LoopOrder] = chosen
            ) -> list[Node] | None:
                shape = ReductionNest.of_nodes(nodes)
                order = None if shape is None else loop_order(shape, context.target)
                if shape is None or order is None:
                    return None
                chosen.append(order)
                if not order.strips:
                    _move_reduction_inside(shape, order.innermost)
                    return nodes
                threads = 1 if around else level.size
                return self._strips(shape, order.innermost, threads, context.target)

            if change_subnests(nest, change):
                eliminate_common(nest.body)
                remove_dead(nest.body)
                for order in chosen:
                    extent = order.innermost.extent
                    context.decide(self.name, nest.name, "innermost", extent=extent)

    def _strips(
        self, shape: ReductionNest, var: Var, threads: int, target: TargetDescription
    ) -> list[Node]:
        """The loops over strips that replace the loop over ``var``."""
        loop = next(p for p in shape.parallel if p.var is var)
        origin, extent = loop.origin, loop.trips
        size = strip_size(shape, var, extent, target, threads)
        strip, inner = Var(-(-extent // size)), Var(size)
        first = Expr.of(strip) * size
        # The last strip, or the tile, may be smaller; and the tile may begin behind the origin.
        begins = [low - origin for low in (Expr(0), *loop.lower) if low != origin]
        ends = [Expr(extent), *(high - origin for high in (*loop.upper, Expr(var.extent)))]
        lower = tuple(dict.fromkeys(e - first for e in begins if e.range()[1] > 0))
        upper = tuple(dict.fromkeys(e - first for e in ends if e.range()[0] < strip.extent * size))
        jam = max(1, min(self.jam, self.max_nodes // max(len(shape.inner), 1)))
        body = Strip(shape, var, origin + first + inner, inner, lower, upper, jam).nodes()
        # A loop of one iteration keeps the accumulators of a lone strip inside a loop.
        nodes: list[Node] = [For(strip, body, tile=True)]
        for other in reversed([p for p in shape.parallel if p is not loop]):
            nodes = [For(other.var, nodes, lower=other.lower, upper=other.upper)]
        return clone(nodes, {}, {})


def _move_reduction_inside(shape: ReductionNest, var: Var) -> None:
    """Exchange the variables of the chain so that ``var`` runs innermost."""
    order = [r.var for r in shape.reductions if r.var is not var] + [var]
    for loop, new in zip(shape.reductions, order, strict=True):
        loop.var = new
