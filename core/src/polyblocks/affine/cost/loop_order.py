"""Which loop of a reduction runs innermost, and how a parallel one is cut into strips."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from polyblocks.affine.access import stride_along
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.cost.constants import CACHE_SHARE
from polyblocks.affine.cost.rates import private_cache
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Var
from polyblocks.affine.model import For, Load, Store
from polyblocks.target import TargetDescription

#: Bytes of a row that a strip reads at a time, at least: a page, so that the hardware fetches
#: ahead in it.
MIN_STRIP_BYTES = 4096
#: The same where the threads' own caches hold all that they read.
MIN_NEAR_STRIP_BYTES = 512
#: Elements of a strip where other loops share the work out; what they read again stays cached.
MAX_SHARED_STRIP = 1024


@dataclass(frozen=True)
class LoopOrder:
    """The order of a reduction's loops.

    Attributes:
        innermost: the loop that walks memory in order.
        strips: ``innermost`` is a parallel loop, done strip by strip with arrays of accumulators.
    """

    innermost: Var
    strips: bool


def loop_order(shape: ReductionNest, target: TargetDescription) -> LoopOrder | None:
    """The best order; None if the loops are best left as they are.

    Candidates are the reduction loops and the parallel loops around them; the best one has the
    most accesses with stride one or zero and is long enough for a vector.
    """
    lanes = max(target.vector_bits // 32, 1)
    best = _choose(shape, lanes)
    if best is None or best is shape.reductions[-1].var:
        return None
    if any(best is loop.var for loop in shape.reductions):
        return LoopOrder(best, False)
    loop = next(p for p in shape.parallel if p.var is best)
    if not loop.trips or not is_parallel(loop, [loop]) or not _separable(shape, loop):
        return None
    return LoopOrder(best, True)


def strip_size(
    shape: ReductionNest, var: Var, extent: int, target: TargetDescription, threads: int
) -> int:
    """Elements of one strip of the loop over ``var``, which has ``extent`` iterations.

    As large as the accumulators may be in the first-level cache, but small enough to keep all
    threads busy if the other loops do not, and no smaller than a page, unless it is near.
    """
    sizes = [element_bytes(v.type) for v in shape.reductions[0].inits]
    first = target.memory[0].size if target.memory and target.memory[0].size else 1 << 15
    # A quarter of the cache; a blocked sum has two arrays.
    most = max(first // 4 // sum(sizes), 1)
    read = extent * max(sizes) * prod(loop.trips for loop in shape.reductions)
    near = read <= threads * private_cache(target) // CACHE_SHARE
    least = (MIN_NEAR_STRIP_BYTES if near else MIN_STRIP_BYTES) // max(sizes)
    others = [p for p in shape.parallel if p.var is not var]
    iterations = 1
    for other in others:
        iterations *= other.trips
    if iterations > 1:
        most = min(most, MAX_SHARED_STRIP)
    count = max(-(-extent // most), -(-threads // max(iterations, 1)))
    lanes = max(target.vector_bits // 8 // min(sizes), 1)
    share = -(-extent // count)
    strip = -(-share // lanes) * lanes
    return min(extent, max(strip, min(least, most)))


def shares(shape: ReductionNest, target: TargetDescription) -> int:
    """Iterations that threads can share once the loops are ordered."""
    level = target.shared_level
    order = loop_order(shape, target)
    if order is None or not order.strips:
        return shape.iterations
    loop = next(p for p in shape.parallel if p.var is order.innermost)
    strips = -(-loop.trips // strip_size(shape, loop.var, loop.trips, target, level.size))
    return shape.iterations // max(loop.trips, 1) * strips


def _separable(shape: ReductionNest, loop: For) -> bool:
    """Whether no other loop's bounds depend on this one's variable."""
    others = [*(p for p in shape.parallel if p is not loop), *shape.reductions]
    return not any(loop.var in e.variables() for o in others for e in o.bounds)


def _choose(shape: ReductionNest, lanes: int) -> Var | None:
    """The loop with the best score; the innermost reduction loop wins ties."""
    loads = [n for n in shape.inner if isinstance(n, Load)]
    stores = [n for n in shape.after if isinstance(n, Store)]
    if not loads:
        return None
    candidates: list[Var] = [shape.reductions[-1].var]
    if shape.reorderable() and not any(r.bounded for r in shape.reductions):
        candidates += [r.var for r in reversed(shape.reductions[:-1])]
    candidates += [p.var for p in reversed(shape.parallel) if p.var.extent > 1]

    def score(var: Var) -> float:
        total = 0.0
        for access in loads:
            stride = stride_along(access.buffer, access.index, var)
            total += 2.0 if stride == 1 else 1.0 if stride == 0 else -3.0
        if any(p.var is var for p in shape.parallel):
            for store in stores:
                stride = stride_along(store.buffer, store.index, var)
                total += 0.25 if stride == 1 else -0.25
        if total > 0:
            total *= min(1.0, var.extent / lanes)
        return total

    return max(candidates, key=score)
