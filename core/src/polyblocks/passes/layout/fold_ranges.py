"""fold-ranges: comparisons that the ranges of arrays of integers decide are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.buffers.ranges import ArrayRanges
from polyblocks.affine.cleanup.dead_nests import drop_dead_nests
from polyblocks.affine.element import dtype_of
from polyblocks.affine.model import AnyLoad, Buffer, Nest, Op, Sequence, walk
from polyblocks.affine.rewrites.folding import fold
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass

#: Operations that ranges of integers may decide.
_DECIDED = ("arith.cmpi", "arith.minsi", "arith.maxsi", "arith.select")


@dataclass(frozen=True)
class FoldRangesPass(NestPass):
    """Follow the ranges of integers through arrays, and leave out what they decide.

    Frameworks let indices count from the end, and hold them within bounds, whatever they are:
    places of extrema are never negative, and what was clamped need not be clamped again.

    Before::

        affine.for %i = 0 to 1000 { ... affine.store %place_of_the_least, %place[%i] }
        affine.for %i = 0 to 1000 {
          %p = affine.load %place[%i]
          %behind = arith.cmpi slt, %p, %c0 : i32
          %from_end = arith.addi %p, %c16 : i32
          %q = arith.select %behind, %from_end, %p : i32 ... }

    After::

        affine.for %i = 0 to 1000 { ... affine.store %place_of_the_least, %place[%i] }
        affine.for %i = 0 to 1000 {
          %p = affine.load %place[%i] ... }
    """

    name: ClassVar[str] = "fold-ranges"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Fold in every nest that loads integers; arrays that nothing reads then are gone."""
        nests = [n for n in sequence.nests() if any(map(_is_made, n.effects()[0]))]
        ranges = ArrayRanges(Users(sequence)) if nests else None
        folded = 0
        for nest in nests:
            if ranges is None or not _may_fold(nest, ranges):
                continue
            _, count = fold(nest.body, ranges.of_load)
            if count:
                nest.replace()
                context.decide(self.name, nest.name, "ranges used", folded=count)
            folded += count
        if folded:
            drop_dead_nests(sequence)


def _is_made(buffer: Buffer) -> bool:
    """Whether an array of integers is the program's own."""
    return buffer.kind in ("alloc", "output") and dtype_of(buffer.element).is_whole


def _may_fold(nest: Nest, ranges: ArrayRanges) -> bool:
    """Whether a nest loads what has a range, and does what that may decide."""
    nodes = list(walk(nest.body))
    return any(isinstance(n, Op) and n.name in _DECIDED for n in nodes) and any(
        isinstance(n, AnyLoad) and ranges.of_load(n) is not None for n in nodes
    )
