"""split-contractions: a contraction of too few tiles for a grid is done in parts of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.cost import rates
from polyblocks.affine.fusion.producer_inlining import ProducerInlining
from polyblocks.affine.fusion.weighing import against_traffic
from polyblocks.affine.model import Nest, Sequence, writes
from polyblocks.affine.operation_cost import MAX_NODES
from polyblocks.affine.rewrites.inlining import Candidate
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class SplitContractionsPass(NestPass):
    """Let blocks compute parts of the steps of a contraction where its tiles are too few for all.

    The outermost reduction loop is cut. Each part leaves its sums in a buffer, and a second nest
    adds these up in order, so that every run gives the same bits; what follows the reduction (a
    bias, a rounding, the store) belongs to that nest, and sees the whole sum. Into how many parts,
    if any, the predicted times of all kernels say, those of the tiles that are best for each number
    of parts. Where the last part of a sum of products is shorter than the others, its loads are
    under conditions: zeros add nothing. Few parts are added up without a loop, and by the nest that
    reads the sums, such as a normalization, if that is quicker than another kernel.

    Before::

        affine.for %i = 0 to 128 { affine.for %j = 0 to 128 {
          %s = affine.for %k = 0 to 16384 iter_args(%t = %z) -> f32 { ... load %a[%i, %k] ... }
          affine.store %s, %c[%i, %j] } }

    After::

        affine.for %p = 0 to 32 { affine.for %i = 0 to 128 { affine.for %j = 0 to 128 {
          %s = affine.for %k = 0 to 512 iter_args(...) { ... load %a[%i, %p * 512 + %k] ... }
          affine.store %s, %parts[%p, %i, %j] } } }
        affine.for %i = 0 to 128 { affine.for %j = 0 to 128 {
          %s = affine.for %p = 0 to 32 iter_args(%t = %z) -> f32 { ... load %parts[%p, %i, %j] ... }
          affine.store %s, %c[%i, %j] } }
    """

    name: ClassVar[str] = "split-contractions"
    needs: ClassVar[frozenset[str]] = frozenset(
        {facts.NESTS, facts.REDUCTIONS, facts.KINDS, facts.WHOLE_LOOPS}
    )
    breaks: ClassVar[frozenset[str]] = frozenset({facts.WHOLE_LOOPS, facts.UNFUSED})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split where that is predicted to be quicker; nothing if rates are unknown."""
        from polyblocks.affine.analysis.reductions import ReductionNest
        from polyblocks.affine.gpu.split_k import Choice
        from polyblocks.affine.rewrites.parts import split

        if rates.unknown_rates(context.target):
            return
        choice = Choice(context.target)
        for nest in list(sequence.nests()):
            shape = ReductionNest.of(nest)
            if shape is None or any(f.bounded for f in (*shape.parallel, *shape.reductions)):
                continue
            chosen = choice.of(nest, shape)
            if chosen is None:
                continue
            found, combiners = chosen
            at = sequence.items.index(nest)
            sequence.items[at : at + 1] = split(
                nest, shape, combiners, found.length, zeros=found.zeros
            )
            context.decide(
                self.name,
                nest.name,
                "split",
                parts=found.count,
                steps=found.length,
                blocks=found.blocks,
                predicted_seconds=found.seconds,
                whole_seconds=found.whole_seconds,
            )
            if nest.kind == "pointwise" and not context.options.polyblocks_disable_affine_fusion:
                self._inline(nest, sequence, context)

    def _inline(self, joining: Nest, sequence: Sequence, context: Any) -> None:
        """Let nests that read the sums add them up, where that is quicker than another kernel."""
        users = Users(sequence)
        inlining = ProducerInlining(self.name, against_traffic, MAX_NODES)
        for buffer in writes(joining):
            candidate = Candidate.of(users, buffer)
            gone = None if candidate is None else inlining.inline(users, candidate, context)
            if gone is not None:
                sequence.items.remove(gone)
                return
