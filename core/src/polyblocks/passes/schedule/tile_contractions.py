"""tile-contractions: contractions in tiles for registers, caches and threads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.contractions import contraction_of
from polyblocks.affine.contraction.builder import ContractionBuilder
from polyblocks.affine.contraction.choice import TilingCost, choose_tiling, is_tiled
from polyblocks.affine.contraction.prediction import predicted
from polyblocks.affine.contraction.product import product_of
from polyblocks.affine.cost.estimate import Estimator
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.mlir.json_attributes import to_attribute
from polyblocks.affine.model import For, Sequence, remove_dead, walk
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.vectors.lanes import BITS, NoLanesError, lanes_of
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class TileContractionsPass(NestPass):
    """Cut contractions into tiles for registers, blocks for caches, and pieces for threads.

    Rows of the result are jammed and columns are lanes of vectors, around the steps of the
    reduction: each element of an operand that a step loads is used for a whole row or column of
    the tile. An operand is copied first, in the order in which it is used, where it is not in
    order, where its rows meet in few sets of the first cache, or where it is used often. What it is
    computed from is then computed while copying. Where a reduction is so long that panels would not
    stay in the private cache, it is done in passes, whose results wait in a buffer. The sizes are
    those that :mod:`polyblocks.affine.contraction.choice` predicts to be the fastest.

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
        """Tile every nest that is a contraction."""
        target = context.target
        views = FlatViews(sequence)
        estimator = Estimator(target, sequence.buffers)
        for nest in sequence.nests():
            if not is_tiled(nest.body, target):
                continue
            contraction = contraction_of(nest.body)
            assert contraction is not None
            product = product_of(contraction, views)
            if product is None:
                continue
            bits = max(BITS[str(v.type)] for v in product.results)
            width = target.vector_bits // bits
            cost = TilingCost(product, target, width)
            tiling = choose_tiling(cost)
            if tiling is None:
                continue
            level = target.shared_level
            builder = ContractionBuilder(
                product, tiling, width, level.name if level.size > 1 else None
            )
            nodes = builder.nodes()
            try:
                for node in walk(nodes):
                    if isinstance(node, For) and node.lanes:
                        lanes_of(node)
            except NoLanesError as error:
                context.decide(self.name, nest.name, "untiled", reason=str(error))
                continue
            numbers = predicted(estimator.estimate(nest), cost, tiling, target).to_json()
            nest.estimate = to_attribute(numbers)
            nest.body = nodes
            eliminate_common(nest.body)
            remove_dead(nest.body)
            nest.changed = True
            context.decide(self.name, nest.name, "tiled", **asdict(tiling))
