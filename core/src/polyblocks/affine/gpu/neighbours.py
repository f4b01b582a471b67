"""Kernels between products: as many threads as these have, so that one launch can have them."""

from __future__ import annotations

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.cost.rates import waiting_seconds
from polyblocks.affine.gpu.choose import choose_with
from polyblocks.affine.gpu.plans.groups import GroupPlan
from polyblocks.affine.gpu.plans.kernel import Kernel, Plan
from polyblocks.affine.model import Nest
from polyblocks.target import TargetDescription


def adopt_threads(chosen: dict[Nest, tuple[Kernel, Predicted]], target: TargetDescription) -> None:
    """Choose again the kernels beside products that have other threads, if that costs little.

    Blocks that wait for those before them have as many threads as these (``join-launches``). A
    kernel may lose by it as much as a launch takes more than waiting.

    Args:
        chosen: the kernels of a sequence, in order; is changed.
        target: has grids.
    """
    waiting = waiting_seconds(target, 2)
    if waiting is None or waiting >= target.shared_level.overhead:
        return
    nests = list(chosen)
    for position, nest in enumerate(nests):
        kernel, predicted = chosen[nest]
        if not isinstance(kernel.plan, GroupPlan) or not _is_short(kernel.plan, target):
            continue
        beside = [chosen[n][0].plan for n in nests[max(position - 1, 0) : position + 2]]
        counts = {plan.threads for plan in beside if _may_wait(plan) and _is_short(plan, target)}
        if kernel.plan.threads in counts:
            continue
        found = (choose_with(nest, target, threads) for threads in sorted(counts))
        quickest = min(filter(None, found), key=lambda each: each[1].seconds, default=None)
        most = predicted.seconds + target.shared_level.overhead - waiting
        if quickest and _is_short(quickest[0].plan, target) and quickest[1].seconds < most:
            chosen[nest] = quickest


def _may_wait(plan: Plan) -> bool:
    """Whether blocks compute tiles by a matrix unit whose operands the threads themselves copy."""
    return "unit" in plan.decision() and not hasattr(plan, "alignment")


def _is_short(plan: Plan, target: TargetDescription) -> bool:
    """Whether there is no second block for every multiprocessor."""
    return plan.blocks < 2 * target.shared_level.size
