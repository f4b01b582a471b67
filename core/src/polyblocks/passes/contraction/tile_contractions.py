"""tile-contractions: contractions in tiles for registers, caches and threads."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from polyblocks.affine.analysis.facts import NestFacts
from polyblocks.affine.contraction.tile_prologue import Prologues, prologues_of
from polyblocks.affine.contraction.tilings.choice import Tiled, candidate_products, cost_of
from polyblocks.affine.contraction.tilings.schedule import scheduled
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.model import Buffer, For, Nest, Node, Sequence, remove_dead
from polyblocks.affine.padding.margins import Margin, margins_of
from polyblocks.affine.plan.old_keys import read
from polyblocks.affine.preheader import Preheader
from polyblocks.affine.preparation import Preparation
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.subnests import change_subnests
from polyblocks.affine.vectors.lanes import NoLanesError
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.passes.contraction.tiled_nodes import tiled_nodes


@dataclass(frozen=True)
class TileContractionsPass(NestPass):
    """Cut contractions into tiles for registers, blocks for caches, and pieces for threads.

    Rows of the result are jammed and columns are lanes of vectors, around the steps of the
    reduction: each element of an operand that a step loads is used for a whole row or column of
    the tile. An operand is copied first, in the order in which it is used, where it is not in
    order, where its rows meet in few sets of the first cache, or where it is used often. Its
    elements are then computed while copying. In a loop of the program, an operand that is the
    same in all iterations is copied once, in front of the loop. Rows that several loops move, such
    as pixels, are used in place loop by loop, without those that are padding of their own
    operation. Where a reduction is so long that panels would not stay in the private cache, it is
    done in passes, whose results wait in a buffer.

    The schedule of a contraction (``plan-contractions``) is obeyed, also where it was changed by
    hand.

    Before::

        affine.for %i = 0 to 56 { affine.for %j = 0 to 64 {
          %r = affine.for %k = 0 to 100 iter_args(%s = %z) {
            ... affine.load %a[%i, %k] ... affine.load %b[%k, %j] ... }
          affine.store %r, %c[%i, %j] } } {polyblocks.schedule = {register_tile = [4, 8], ...}}

    After (four rows of eight columns, those of ``%b`` copied)::

        affine.parallel (%t) = (0) to (2) {
          %p = memref.alloca() : memref<4x100x8xf32>
          polyblocks.copy(%b, %p, %t) {kind = "pack", shape = [100, 4, 8], ...}
          affine.for %n = 0 to 4 { affine.for %l = 0 to 8 { affine.for %m = 0 to 14 {
            %r:4 = affine.for %k = 0 to 100 iter_args(...) {
              ... affine.load %p[%n, %k, %l] ... affine.load %a[%m * 4, %k] ...
              ... affine.load %a[%m * 4 + 3, %k] ... }
            affine.store %r#0, %c[%m * 4, %t * 32 + %n * 8 + %l] ... } } {polyblocks.lanes = 8} }
        } {polyblocks.level = "team"}

    Raises:
        UnsupportedError: the contraction or the chip does not allow for a schedule; says why.
    """

    name: ClassVar[str] = "tile-contractions"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.PLANS})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PLANS, facts.UNTILED, facts.PLAIN_LOOPS})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Tile every nest and sub-nest that has a schedule."""
        views = FlatViews(sequence)
        prologue = Preparation.of(sequence) or Preheader.of(sequence)
        margins = margins_of(sequence)
        threads = context.target.shared_level.size
        for nest in sequence.nests():

            def change(
                nodes: list[Node], around: list[For], nest: Nest = nest
            ) -> list[Node] | None:
                ahead = prologues_of(sequence, nest, around, prologue, threads)
                return self._tiled(*(nodes, nest, around, views, ahead, margins, context))

            if change_subnests(nest, change):
                eliminate_common(nest.body)
                remove_dead(nest.body)

    def _tiled(
        self,
        nodes: list[Node],
        nest: Nest,
        around: list[For],
        views: FlatViews,
        prologues: Prologues | None,
        margins: dict[Buffer, Margin],
        context: Any,
    ) -> list[Node] | None:
        """The nodes in tiles; None if they have no schedule."""
        loop = nodes[0] if len(nodes) == 1 else None
        if not isinstance(loop, For) or loop.schedule is None:
            return None
        target = context.target
        contraction = NestFacts(nodes).contraction
        # Inside of a tile there is one thread.
        threads = 1 if around else None
        products = []
        if contraction is not None:
            products = candidate_products(contraction, views, target, prologues)
        schedule = read(loop.schedule, nest.name, target)
        tiled = scheduled(
            products, lambda product: cost_of(product, target, threads, prologues), schedule
        )
        product = tiled.cost.product
        level = None if around else target.shared_level.name
        try:
            new, kept = tiled_nodes(tiled, nest, level, prologues, margins)
        except NoLanesError as error:
            raise schedule.unexpected(
                "columns that can be vectors",
                error,
                "choose another product by 'transposed', 'staged' or 'windows'",
            ) from error
        numbers = tiled.tiling._asdict() | {
            "waits": product.waits,
            "predicted_seconds": _seconds(tiled, around),
        }
        if kept is not None and kept.bytes():
            kept.prepare()
            numbers["kept"] = kept.bytes()
        if product.unit is not None:
            numbers["unit"] = product.unit.name
        context.decide(self.name, nest.name, "register tiles", **numbers)
        return new


def _seconds(tiled: Tiled, around: list[For]) -> float | None:
    """Time that the search for a tiling expects of a contraction, in all tiles that it is in."""
    if tiled.seconds is None or not around:
        return tiled.seconds
    runs = prod(loop.trips for loop in around)
    return -(-runs // min(tiled.cost.target.shared_level.size, around[0].trips)) * tiled.seconds
