"""share-indices: lanes compute the indices of gathers once for all channels."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.cleanup.invariants import invariants
from polyblocks.affine.expr import Var
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.model import For, IndirectLoad, Nest, Node, Sequence, remove_dead
from polyblocks.affine.rewrites.flat_addresses import flatten_addresses
from polyblocks.affine.rewrites.folding import fold
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.subnests import parallel_shell
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class ShareIndicesPass(NestPass):
    """Run a loop along which run-time indices stay the same inside of those that compute them.

    Samples of an image are taken at the same places in all of its channels, and most of the work
    is to compute where that is. The innermost loop keeps its lanes: all of them go through the
    channels together, and hold places and weights in registers.

    Before::

        affine.for %c = 0 to 16 { affine.for %i = 0 to 64 { affine.for %j = 0 to 64 {
          %x = affine.load %places[%i, %j] ... %at = arith.index_cast ...
          cf.assert %inside, "index out of range"
          %v = memref.load %image[%c, %at] ... affine.store %r, %out[%c, %i, %j] } } }

    After::

        affine.for %i = 0 to 64 { affine.for %j = 0 to 64 {
          %x = affine.load %places[%i, %j] ... %at = arith.index_cast ...
          cf.assert %inside, "index out of range"
          affine.for %c = 0 to 16 {
            %v = memref.load %image[%c, %at] ... affine.store %r, %out[%c, %i, %j] } } }

    Threads need enough iterations of the other loops, and what is shared must be a third of the
    work at least: the channels lie far apart.
    """

    name: ClassVar[str] = "share-indices"
    #: Of the work of an iteration, the part that is the same for all channels, at least.
    part: float = 1 / 3
    #: Iterations of the loops that stay outside, for each thread.
    shares: int = 4
    #: Nodes that are computed once, at most: more results than registers are reloaded.
    most: int = 2000

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Move one loop of every nest that gathers."""
        views = FlatViews(sequence)
        for nest in sequence.nests():
            channels = context.target.gathers and self._moved(nest, views, context.target)
            if channels:
                context.decide(self.name, nest.name, "shared", trips=channels)

    def _moved(self, nest: Nest, views: FlatViews, target: TargetDescription) -> int:
        """Move a loop if it pays; its trips, or 0."""
        loops, body = parallel_shell(nest.body)
        if len(loops) < 3 or any(loop.bounded or loop.level or loop.lanes for loop in loops):
            return 0
        if not any(isinstance(n, IndirectLoad) for n in body) or _has_loops(body):
            return 0
        moved = self._chosen(loops, body, target)
        if moved is None or not all(is_parallel(loop, nest.body) for loop in loops):
            return 0
        # As `narrow-values` does later: lanes are loaded at one index each.
        intervals, _ = fold(nest.body)
        if flatten_addresses(nest.body, views, intervals):
            eliminate_common(nest.body)
            remove_dead(nest.body)
        nest.replace()
        loops, body = parallel_shell(nest.body)
        shared, own = invariants(For(moved, body))
        lanes = For(loops[-1].var, [*shared, For(moved, own)], lanes=target.vector_bits // 32)
        if not _gathers(lanes):
            return 0
        nodes: list[Node] = [lanes]
        for loop in reversed(loops[:-1]):
            if loop.var is not moved:
                nodes = [For(loop.var, nodes)]
        nest.replace(nodes)
        return moved.extent

    def _chosen(self, loops: list[For], body: list[Node], target: TargetDescription) -> Var | None:
        """The variable of the loop that saves most by running inside of the others."""
        enough = self.shares * target.shared_level.size
        most, best = 0.0, None
        for loop in loops[:-1]:
            others = prod(other.trips for other in loops[:-1] if other is not loop)
            shared, own = invariants(For(loop.var, body))
            once, each = cost.operations(shared), cost.operations(own)
            saved = once * (1 - 1 / max(1, loop.trips))
            pays = len(shared) <= self.most and once >= self.part * (once + each)
            if pays and others >= enough and saved > most:
                most, best = saved, loop.var
        return best


def _has_loops(nodes: list[Node]) -> bool:
    return any(isinstance(node, For) for node in nodes)


def _gathers(loop: For) -> bool:
    """Whether its iterations can be lanes, some of whose loads are at a place each."""
    try:
        return bool(lanes_of(loop).gathered)
    except NoLanesError:
        return False
