"""unroll-short-loops: vectors run along a long loop, the short ones inside of it are unrolled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import For, Node, Sequence, clone, remove_dead
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.subnests import change_subnests, parallel_shell
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class UnrollShortLoopsPass(NestPass):
    """Unroll parallel loops of few iterations, if those of the loop around can be lanes then.

    Coordinates, channels and small matrices give innermost loops that are too short for a vector.
    Unrolled, they are accesses that take turns in memory, which are moved in whole vectors.

    Before::

        affine.for %i = 0 to 1000 { affine.for %j = 0 to 3 {
          %x = affine.load %a[3 * %i + %j] ... %y = affine.load %a[3 * %i] ... } }

    After::

        affine.for %i = 0 to 1000 {
          %x0 = affine.load %a[3 * %i] ... %x1 = affine.load %a[3 * %i + 1] ...
          %x2 = affine.load %a[3 * %i + 2] ... }
    """

    name: ClassVar[str] = "unroll-short-loops"
    #: Iterations of one short loop, and of all of them: rows of 8 numbers, matrices of 4 x 4.
    max_trips: int = 8
    max_copies: int = 16
    #: Nodes of the unrolled body.
    max_nodes: int = 1000

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Unroll in every nest and sub-nest."""
        vector_bits = context.target.vector_bits
        for nest in sequence.nests():
            unrolled: list[int] = []

            def change(
                nodes: list[Node], around: list[For], unrolled: list[int] = unrolled
            ) -> list[Node] | None:
                del around
                found = self._unroll(nodes, vector_bits)
                if found is None:
                    return None
                changed, copies = found
                unrolled.append(copies)
                return changed

            if change_subnests(nest, change):
                remove_dead(nest.body)
                for copies in unrolled:
                    context.decide(self.name, nest.name, "unrolled", copies=copies)

    def _unroll(self, nodes: list[Node], vector_bits: int) -> tuple[list[Node], int] | None:
        """The nodes with their innermost loops unrolled, and how many copies; None if not worth."""
        loops, body = parallel_shell(nodes)
        if any(isinstance(n, For) for n in body) or len(loops) < 2:
            return None
        if any(f.bounded or f.level or f.lanes or f.unit or f.tile for f in loops):
            return None
        if _fills_vectors(loops[-1], vector_bits):
            return None
        copies, place = 1, len(loops)
        while place > 1 and loops[place - 1].var.extent <= self.max_trips:
            place -= 1
            copies *= loops[place].var.extent
        short, lane = loops[place:], loops[place - 1]
        if not short or copies > self.max_copies or copies * len(body) > self.max_nodes:
            return None
        if lane.trips < vector_bits // 32 or not all(
            is_parallel(f, nodes) for f in loops[place - 1 :]
        ):
            return None
        for loop in reversed(short):
            body = [
                node
                for k in range(loop.var.extent)
                for node in clone(body, {}, {loop.var: Expr(k)})
            ]
        eliminate_common(body)
        try:
            lanes_of(For(lane.var, body))
        except NoLanesError:
            return None
        lane.body = body
        return nodes, copies


def _fills_vectors(loop: For, vector_bits: int) -> bool:
    """Whether the iterations of an innermost loop are lanes of half a vector or more as it is.

    On Zen 4, rows of 8 divided by their lengths: 1.8 ms so, 2.5 ms by columns; rows of 4: 1.4 ms
    and 0.7 ms.
    """
    if loop.trips & (loop.trips - 1):
        return False
    try:
        lanes = lanes_of(loop)
    except NoLanesError:
        return False
    bits = max(dtype.bits for dtype in lanes.types)
    return not lanes.interleaved and 2 * loop.trips * bits >= vector_bits
