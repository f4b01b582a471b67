"""cut-masks: tiles leave out what affine conditions mask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.masks.constraints import conditions_of
from polyblocks.affine.masks.cutting import TileCuts
from polyblocks.affine.masks.decided import decide_conditions
from polyblocks.affine.model import Alloca, Sequence
from polyblocks.affine.rewrites.folding import fold
from polyblocks.affine.subnests import tile_of
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class CutMasksPass(NestPass):
    """Bound loops of tiles by masks that give minus infinity on affine conditions.

    Such are causal and windowed masks of attention. Where all places of an iteration are masked, a
    maximum stays what it is, exponentials are zero, and what these are multiplied by does not
    matter: the iteration is left out, and so is what computes scores that nothing reads then. Found
    from what code does with the numbers, for bounds that leave each tile at least one place, so
    that a row without any has the result that its arithmetic gives.

    Before::

        affine.for %j = 0 to 2048 { ... %m = arith.cmpi sle, %j, (%t * 32 + %i)
          %x = arith.select %m, %s, -inf ... }

    After::

        affine.for %j = 0 to min(2048, ((%t * 32 + 95) floordiv 64) * 64) { ... }
    """

    name: ClassVar[str] = "cut-masks"
    #: Vectors whose length bounds are multiples of.
    vectors: int = 2

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Bound the loops of every nest of tiles."""
        for nest in sequence.nests():
            loops, nodes = tile_of(nest.body)
            if not loops or not any(isinstance(n, Alloca) for n in nodes):
                continue
            step = self.vectors * max(context.target.vector_bits // 32, 1)
            count = TileCuts([loop.var for loop in loops], nodes, step).cut()
            if count:
                decided = decide_conditions(nest.body, conditions_of(nest.body))
                if decided:
                    fold(nest.body)
                nest.replace()
                found = {"conditions": decided} if decided else {}
                context.decide(self.name, nest.name, "bounds of masks", loops=count, **found)
