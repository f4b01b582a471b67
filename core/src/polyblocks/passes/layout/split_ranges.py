"""split-ranges: an array with a border that no access crosses becomes an array on either side."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.buffers.parts import PartSplitting
from polyblocks.affine.model import Sequence
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class SplitRangesPass(NestPass):
    """Give every part of an array along one dimension its own buffer, if each access stays in one.

    So are what was put one after the other and is read as it was before. A tile needs a box of each
    part then, which of the whole would be nearly all of it.

    Before::

        affine.for %i = 0 to 8 { ... affine.store %x, %whole[%i, 0] }
        affine.for %i = 0 to 8 { ... affine.store %y, %whole[%i + 8, 0] }
        affine.for %i = 0 to 8 {
          %x = affine.load %whole[%i, 0]
          %y = affine.load %whole[%i + 8, 0]
          ... }

    After::

        affine.for %i = 0 to 8 { ... affine.store %x, %first[%i, 0] }
        affine.for %i = 0 to 8 { ... affine.store %y, %second[%i, 0] }
        affine.for %i = 0 to 8 {
          %x = affine.load %first[%i, 0]
          %y = affine.load %second[%i, 0]
          ... }
    """

    name: ClassVar[str] = "split-ranges"
    #: Parts of an array, at most.
    parts: int = 16
    #: Elements of a part along that dimension: any number.
    longest: int = sys.maxsize

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split every buffer that can be."""
        if not context.options.polyblocks_disable_affine_fusion:
            PartSplitting(self.name, self.parts, self.longest).split(sequence, context)
