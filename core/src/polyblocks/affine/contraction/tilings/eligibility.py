"""Which contractions are tiled at all."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.target import TargetDescription

#: Least M, N and K of a tiled contraction.
MIN_EXTENT = 4
#: K that is too large for straight-line code, whatever M and N are.
LARGE_K = 65
#: M or N that feeds all threads then, so that these need not share K.
ENOUGH_FOR_THREADS = 64


def is_tiled(contraction: Contraction | None, target: TargetDescription) -> bool:
    """Whether a nest that is this contraction, or None, has tiles of any kind on a target.

    A small M, N or K is better off as straight-line code, unless other things make loops of it.
    """
    return contraction is not None and target.tiles_contractions and has_enough(contraction)


def may_be_tiled(parallel: Sequence[int], steps: int) -> bool:
    """Whether loops of these extents around a reduction could be those of a tiled contraction.

    Args:
        parallel: extents of the loops around the reduction: M and N are products of them.
        steps: trips of the reduction.
    """
    every = prod(parallel)
    sides = {1}
    for extent in parallel:
        sides |= {side * extent for side in sides}
    return any(_is_enough(min(m, every // m, steps), max(m, every // m), steps) for m in sides if m)


def has_enough(contraction: Contraction) -> bool:
    """Whether M, N and K of a contraction are large enough for tiles of any kind."""
    sides = (contraction.rows, contraction.columns)
    widest = max(prod(v.extent for v in side) for side in sides)
    return _is_enough(min_extent(contraction), widest, contraction.reduction.trips)


def _is_enough(least: int, widest: int, steps: int) -> bool:
    many = steps >= LARGE_K and widest >= ENOUGH_FOR_THREADS
    return least >= MIN_EXTENT or (least > 1 and many)


def min_extent(contraction: Contraction) -> int:
    """The smallest of M, N and K; 0 for a contraction that is unrolled."""
    if not contraction.reduction.loops:
        return 0
    sides = (contraction.rows, contraction.columns, contraction.reduction.order)
    return min(prod(v.extent for v in side) for side in sides)
