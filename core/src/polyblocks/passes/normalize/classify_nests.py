"""classify-nests: every nest gets a kind, from its accesses, and a readable name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.mlir.source import sources
from polyblocks.affine.model import (
    Sequence,
)
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.subnests import mark_tiles
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class ClassifyNestsPass(NestPass):
    """Name nests after what they compute and set ``polyblocks.kind``.

    The kind comes from the structure alone, the first one that fits: ``scatter`` (stores at
    run-time indices), ``contraction`` (a reduction whose operands different loops move, unrolled or
    not: :class:`~polyblocks.affine.analysis.contractions.Contraction`), ``gather`` (loads at
    run-time indices), ``scan`` (carried values, stored at every step), ``reduction`` (carried
    values), ``copy``, ``stencil`` (one array read at several places), ``pointwise``. The name is
    made of the source ops, where locations tell them.

    Loops of the program around several nests are marked with ``polyblocks.tile``.

    Before: ``affine.for %i = 0 to 4 { ... }``; after: the same with
    ``{polyblocks.kernel = "mul_add", polyblocks.kind = "pointwise"}``.
    """

    name: ClassVar[str] = "classify-nests"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.REDUCTIONS})
    establishes: ClassVar[frozenset[str]] = frozenset({facts.KINDS})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Classify all nests."""
        for nest in sequence.nests():
            nest.sources = [f"{op} {where}".strip() for op, where in sources(nest.body)]
            mark_tiles(nest.body)
        name_nests(self.name, sequence, context)
        for nest in sequence.nests():
            context.decide(self.name, nest.name, nest.kind, sources=nest.sources)
