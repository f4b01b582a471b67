"""split-ranges: an array with a border that no access crosses becomes an array on either side."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

from polyblocks.passes.layout.split_stacks import SplitStacksPass


@dataclass(frozen=True)
class SplitRangesPass(SplitStacksPass):
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
    longest: int = sys.maxsize
