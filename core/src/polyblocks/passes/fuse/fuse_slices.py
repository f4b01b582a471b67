"""fuse-slices: producers are computed where and as much as their consumers need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.fusion.through_buffers import fuse_through_buffers
from polyblocks.affine.fusion.weighing import against_cache
from polyblocks.affine.model import Sequence
from polyblocks.affine.operation_cost import MAX_NODES
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class FuseSlicesPass(NestPass):
    """Fuse producers into consumers through the buffers between them.

    Two forms, first the one for all buffers, then the other:

    * *slice*: the producer is point-wise (small windows are, once unrolled); every load of the
      buffer becomes the producer's body at that index. An element that is read several times is
      computed several times, if that is cheaper than to load it from a first-level cache. Where the
      index is known at run time only, so are those of the producer's loads then; elements that
      no index selects are not computed;
    * *epilogue*: the consumer is point-wise and reads the buffer just where it is produced; its
      body moves behind the producer's, reductions included. Its other inputs are computed
      before the producer then, unless the producer reduces nothing and that is large.

    A rounding that is not the program's is left out where its result is extended again, unless a
    unit multiplies what is rounded.

    On targets with a grid of blocks the epilogues of contractions come first, so that what is kept
    of them is no wider than the program wants it, and they may count with other loops than the
    contraction: these are split then.

    Before::

        affine.for %i = 0 to 9 { ... affine.store %v, %b[%i] }
        affine.for %i = 0 to 8 {
          %x = affine.load %b[%i]
          %y = affine.load %b[%i + 1]
          ... }

    After: one nest that computes ``%v`` for ``%i`` and for ``%i + 1``; ``%b`` is gone.
    """

    name: ClassVar[str] = "fuse-slices"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.REDUCTIONS, facts.KINDS})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PADDING, facts.UNFUSED})
    #: Nodes in one straight-line body; more spills registers and takes long to compile.
    max_nodes: int = MAX_NODES

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Fuse through every buffer, in the order in which they are produced."""
        if not context.options.polyblocks_disable_affine_fusion:
            fuse_through_buffers(sequence, self.name, against_cache, self.max_nodes, context)
