"""jam-windows: a thread of a grid computes several neighbours where they share what they read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from polyblocks.affine.cost import rates
from polyblocks.affine.likeness import Remembered
from polyblocks.affine.model import Sequence
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class JamWindowsPass(NestPass):
    """Let a thread do several iterations of parallel loops, as one piece of code.

    Windows of neighbours overlap: what one has loaded, others need as well. Elements beside each
    other in memory are one access then, and all that they share is computed once. How many is what
    the model predicts to be the quickest, for nests that take clearly longer than their memory. So
    do threads that share a tile, in those of its parts whose iterations read what others read.

    Before::

        affine.for %y = 0 to 64 { affine.for %x = 0 to 64 {
          ... affine.load %a[%y, %x] ... affine.load %a[%y + 1, %x] ... affine.load %a[%y + 2, %x]
          affine.store %s, %b[%y, %x] } }

    After, of 2 x 4::

        affine.for %y = 0 to 32 { affine.for %x = 0 to 16 {
          ... affine.load %a[%y * 2, %x * 4] ... affine.load %a[%y * 2 + 3, %x * 4 + 3]
          affine.store %s, %b[%y * 2, %x * 4] ... affine.store %t, %b[%y * 2 + 1, %x * 4 + 3] } }
    """

    name: ClassVar[str] = "jam-windows"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Jam iterations of straight-line code in every nest that is not as fast as memory."""
        from polyblocks.affine.gpu.windows import Windows, quickest_windows

        if rates.unknown_rates(context.target):
            return
        nests = sequence.nests()
        known: Remembered[Windows | None] = Remembered(nests)
        for nest in nests:
            search = partial(quickest_windows, nest, context.target)
            like = known.get(nest, nest.body, search)
            if like is not None:
                found = like.of(nest)
                nest.replace(found.nest.body)
                context.decide(
                    self.name,
                    nest.name,
                    "iterations jammed",
                    unroll_factors=found.factors,
                    seconds_before=found.alone,
                    seconds=found.seconds,
                )
