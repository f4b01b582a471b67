"""inline-producers: what no tile holds is computed again rather than written to memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.fusion.through_buffers import fuse_through_buffers
from polyblocks.affine.fusion.weighing import against_traffic
from polyblocks.affine.model import Sequence
from polyblocks.affine.operation_cost import MAX_NODES
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class InlineProducersPass(NestPass):
    """As ``fuse-slices``, but recomputation is weighed against the way through memory.

    On a target whose description lacks a rate for that, ``fuse-slices`` has had the last word.

    Before::

        affine.for %i = 0 to 9 { ... affine.store %v, %b[%i] }
        affine.for %i = 0 to 8 {
          %x = affine.load %b[%i]
          %y = affine.load %b[%i + 1]
          ... }

    After: one nest, also where ``%v`` takes longer than a load from a first-level cache, if that is
    quicker than to write ``%b`` and to read it. On a grid of blocks a nest less is a launch less,
    which counts unless steps of a reduction would compute ``%v``: contractions load their operands.
    """

    name: ClassVar[str] = "inline-producers"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.REDUCTIONS, facts.KINDS})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PADDING, facts.UNFUSED})
    #: Nodes in one straight-line body; more spills registers and takes long to compile.
    max_nodes: int = MAX_NODES

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Fuse through every buffer, in the order in which they are produced."""
        if not context.options.polyblocks_disable_affine_fusion:
            fuse_through_buffers(sequence, self.name, against_traffic, self.max_nodes, context)
