"""split-stacks: an array whose parts are only accessed separately becomes an array per part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.buffers.parts import PartSplitting
from polyblocks.affine.model import (
    Sequence,
)
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class SplitStacksPass(NestPass):
    """Give every part of an array along one dimension its own buffer, if each access names one.

    Each part has a producer then, which can be fused with what reads it.

    Before::

        affine.for %i = 0 to 8 { ... affine.store %x, %stack[0, %i] }
        affine.for %i = 0 to 8 { ... affine.store %y, %stack[1, %i] }
        affine.for %i = 0 to 8 {
          %x = affine.load %stack[0, %i]
          %y = affine.load %stack[1, %i]
          ... }

    After::

        affine.for %i = 0 to 8 { ... affine.store %x, %first[%i] }
        affine.for %i = 0 to 8 { ... affine.store %y, %second[%i] }
        affine.for %i = 0 to 8 {
          %x = affine.load %first[%i]
          %y = affine.load %second[%i]
          ... }
    """

    name: ClassVar[str] = "split-stacks"
    #: Parts of an array, at most.
    parts: int = 16
    #: Elements of a part along that dimension, at most.
    longest: int = 1

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split every buffer that can be."""
        if not context.options.polyblocks_disable_affine_fusion:
            PartSplitting(self.name, self.parts, self.longest).split(sequence, context)
