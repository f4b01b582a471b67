"""raise-indices: run-time indices that are affine after all become affine accesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.known_values import raise_places
from polyblocks.affine.model import Sequence
from polyblocks.affine.naming.names import own_name
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class RaiseIndicesPass(NestPass):
    """Follow integer arithmetic on loop variables; what it finds out replaces what is computed.

    A load or store at indices that are affine, and in bounds, is an affine access. A check that
    cannot fail is gone, and so is a choice with only one outcome.

    Before (a flipped row)::

        %j = arith.subi %c31, %i : index
        %ok = arith.cmpi ult, %j, %c32 : index
        cf.assert %ok, "index out of range"
        %x = memref.load %a[%j] : memref<32xf32>

    After::

        %x = affine.load %a[-%i + 31] : memref<32xf32>
    """

    name: ClassVar[str] = "raise-indices"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Raise in every nest that has something to raise."""
        for nest in sequence.nests():
            raised = raise_places(nest)
            if raised:
                context.decide(self.name, own_name(nest, sequence), "raised", nodes=raised)
