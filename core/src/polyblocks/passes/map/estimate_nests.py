"""estimate-nests: every nest says what it costs by the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.model import Sequence
from polyblocks.affine.naming.estimates import estimate_nests
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class EstimateNestsPass(NestPass):
    """Annotate nests with work, bytes per memory level and predicted time; change nothing.

    Before: ``affine.parallel ... {polyblocks.kernel = "neg"}``; after::

        affine.parallel ... {polyblocks.estimate = {bytes = {L1 = 256, ...}, flops = 64, ...},
                             polyblocks.kernel = "neg"}

    The numbers travel to the kernel's row in the manifest, for ``explain``. There is no predicted
    time where the target's description lacks a rate, and a decision says which.
    """

    name: ClassVar[str] = "estimate-nests"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Estimate all nests."""
        estimate_nests(sequence, self.name, context)
