"""The plans of lanes that could compute a contraction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.affine.gpu.plans.sizes import TileSizes
from polyblocks.affine.model import Index, Nest
from polyblocks.target import Multiprocessor

#: Elements of a thread along rows and along columns.
_OF_THREAD = (1, 2, 4, 8)
#: Threads along columns and along rows.
_COLUMNS = (16, 32)
_ROWS = (4, 8, 16)
#: Candidate K blocks: steps of the reduction whose operands are staged together.
_DEPTHS = (1, 2, 4, 8, 16)
#: Values of all operands for one row or column that are copied at once, at most.
_COPIED = 32


def refusal(parts: Contraction) -> str | None:
    """Why a kernel cannot compute tiles of a contraction; None if it can."""
    if not parts.reduction.loops:
        return "its reduction is unrolled: there are no steps whose operands could be copied"
    if any(isinstance(n, Index) for n in (*parts.before, *parts.reduction.body)):
        return "it computes with loop variables, and each thread has several values of them"
    return None


def lane_plans(nest: Nest, chip: Multiprocessor) -> Iterator[LanePlan]:
    """Candidates for a nest; none if it has no tiles."""
    parts = facts_of(nest).contraction
    if parts is None or refusal(parts):
        return
    widest = max(sum(o.of_rows for o in parts.operands), sum(not o.of_rows for o in parts.operands))
    for depth in _DEPTHS:
        if depth > 1 and (depth * widest > _COPIED or depth > parts.reduction.trips):
            continue
        for r, c, rows, columns in product(_OF_THREAD, _OF_THREAD, _ROWS, _COLUMNS):
            sizes = TileSizes(parts, (r, c), (rows, columns), depth)
            if sizes.threads <= chip.threads_per_block and _fits(sizes):
                yield LanePlan(sizes, chip.banks, chip.access_bits // 8)


def _fits(sizes: TileSizes) -> bool:
    """Whether less than half of a tile is beyond the end."""
    pairs = zip(sizes.counts[:2], sizes.tile[:2], sizes.of_thread, strict=True)
    return all(size < 2 * n or per == 1 for n, size, per in pairs)
