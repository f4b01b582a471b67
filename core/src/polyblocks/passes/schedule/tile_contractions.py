"""tile-contractions: contractions in tiles for registers, caches and threads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import prod
from typing import Any, ClassVar

from polyblocks.affine.analysis.facts import NestFacts
from polyblocks.affine.contraction.absent import Absent, absent_of
from polyblocks.affine.contraction.builder import ContractionBuilder
from polyblocks.affine.contraction.choice import Tiled, fewest, has_enough, tilings_of
from polyblocks.affine.contraction.kept_panels import KeptPanels
from polyblocks.affine.contraction.prediction import predicted, predicted_in_tiles
from polyblocks.affine.cost.estimate import Estimate, Estimator
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.mlir.json_attributes import to_attribute
from polyblocks.affine.model import Buffer, For, Nest, Node, Sequence, remove_dead, walk
from polyblocks.affine.padding.margins import Margin, margins_of
from polyblocks.affine.preheader import Preheader
from polyblocks.affine.preparation import Preparation
from polyblocks.affine.prologue import Prologue
from polyblocks.affine.rewrites.digit_loops import split_at_digits
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.subnests import change_subnests
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class TileContractionsPass(NestPass):
    """Cut contractions into tiles for registers, blocks for caches, and pieces for threads.

    Rows of the result are jammed and columns are lanes of vectors, around the steps of the
    reduction: each element of an operand that a step loads is used for a whole row or column of
    the tile. An operand is copied first, in the order in which it is used, where it is not in
    order, where its rows have set conflicts in the first cache, or where it is used often. Its
    producer is then computed while packing. In a loop of the program, an operand that is the
    same in all iterations is copied once, in front of the loop. Rows that several loops move, such
    as pixels, are used in place loop by loop, without those that are padding of their own
    operation. Where a reduction is so long that panels would not stay in the private cache, it is
    done in passes, whose results wait in a buffer. The sizes are those that
    :mod:`polyblocks.affine.contraction.choice` predicts to be the fastest.

    Before::

        affine.for %i = 0 to 56 { affine.for %j = 0 to 64 {
          %r = affine.for %k = 0 to 100 iter_args(%s = %z) {
            ... affine.load %a[%i, %k] ... affine.load %b[%k, %j] ... }
          affine.store %r, %c[%i, %j] } }

    After (four rows of eight columns, those of ``%b`` copied)::

        affine.parallel (%t) = (0) to (2) {
          %p = memref.alloca() : memref<4x100x8xf32>
          ... affine.load %b[%k, %t * 32 + %n * 8 + %l] ... affine.store ... %p[%n, %k, %l] ...
          affine.for %n = 0 to 4 { affine.for %l = 0 to 8 { affine.for %m = 0 to 14 {
            %r:4 = affine.for %k = 0 to 100 iter_args(...) {
              ... affine.load %p[%n, %k, %l] ... affine.load %a[%m * 4, %k] ...
              ... affine.load %a[%m * 4 + 3, %k] ... }
            affine.store %r#0, %c[%m * 4, %t * 32 + %n * 8 + %l] ... } } {polyblocks.lanes = 8} }
        } {polyblocks.level = "team"}
    """

    name: ClassVar[str] = "tile-contractions"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Tile every nest and sub-nest that is a contraction."""
        target = context.target
        views = FlatViews(sequence)
        estimator = Estimator(target, sequence.buffers)
        prologue = Preparation.of(sequence) or Preheader.of(sequence)
        margins = margins_of(sequence)
        for nest in sequence.nests():

            def change(
                nodes: list[Node], around: list[For], nest: Nest = nest
            ) -> list[Node] | None:
                return self._tiled(
                    *(nodes, nest, around, views, estimator, prologue, margins, context)
                )

            if change_subnests(nest, change):
                eliminate_common(nest.body)
                remove_dead(nest.body)

    def _tiled(
        self,
        nodes: list[Node],
        nest: Nest,
        around: list[For],
        views: FlatViews,
        estimator: Estimator,
        prologue: Prologue | None,
        margins: dict[Buffer, Margin],
        context: Any,
    ) -> list[Node] | None:
        """The nodes in tiles; None if they are left. Inside of a tile there is one thread."""
        target = context.target
        inside = bool(around)
        contraction = NestFacts(nodes).contraction
        if contraction is not None and split_at_digits(contraction.reduction.loops):
            nest.replace()
            contraction = NestFacts(nodes).contraction
        if contraction is None or fewest(contraction) < 2:
            return None
        enough = has_enough(contraction)
        if inside and not enough:
            return None
        reason = "no tile fits"
        found = tilings_of(contraction, views, target, 1 if inside else None, prologue)
        if not enough:
            # Operands that are used so seldom are not worth packing.
            reason = "few rows or columns"
            found = [tiled for tiled in found if tiled.cost.in_place]
        for tiled in found:
            level = None if inside else target.shared_level.name
            kept = None
            if prologue is not None:
                kept = KeptPanels(tiled.cost.product, tiled.tiling, prologue, nest)
            try:
                absent = absent_of(tiled.cost.product, margins)
                new = _nodes(tiled, level, kept, absent)
            except NoLanesError as error:
                reason = str(error)
                continue
            estimate = _predicted(tiled, nodes, nest, around, estimator, target)
            nest.estimate = to_attribute(estimate.to_json())
            numbers = asdict(tiled.tiling) | {
                "waits": tiled.cost.product.waits,
                "predicted_seconds": estimate.predicted_seconds,
            }
            if kept is not None and kept.bytes():
                kept.prepare()
                numbers["kept"] = kept.bytes()
            unit = tiled.cost.product.unit
            if unit is not None:
                numbers["unit"] = unit.name
            context.decide(self.name, nest.name, "register tiles", **numbers)
            return new
        context.decide(self.name, nest.name, "no register tiles", reason=reason)
        return None


def _predicted(
    tiled: Tiled,
    nodes: list[Node],
    nest: Nest,
    around: list[For],
    estimator: Estimator,
    target: TargetDescription,
) -> Estimate:
    """The predicted estimate of a tiled contraction's nest."""
    loops = estimator.estimate(nest)
    if not around:
        return predicted(loops, tiled, target)
    siblings = around[-1].body
    around[-1].body = [n for n in siblings if n not in nodes]
    rest = estimator.estimate(nest)
    around[-1].body = siblings
    threads = min(target.shared_level.size, around[0].trips)
    return predicted_in_tiles(
        loops, rest, tiled, prod(loop.trips for loop in around), threads, target
    )


def _nodes(
    tiled: Tiled, level: str | None, kept: KeptPanels | None, absent: Absent | None
) -> list[Node]:
    """The nodes of a product in tiles.

    Raises:
        NoLanesError: something keeps columns from being lanes.
    """
    product, tiling = tiled.cost.product, tiled.tiling
    nodes = ContractionBuilder(product, tiling, tiled.cost.width, level, kept, absent).nodes()
    remove_dead(nodes)
    for node in walk(nodes):
        if isinstance(node, For) and node.lanes:
            lanes_of(node)
    return nodes
