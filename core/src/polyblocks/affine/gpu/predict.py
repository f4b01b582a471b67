"""The predicted time of a kernel: of a nest, by the plan by which it runs, on a chip.

Searches may use bounds of it; tests compare these with it. What reports say is from here.
"""

from __future__ import annotations

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu.mapping.kernel_cost import predict_groups
from polyblocks.affine.gpu.plans.chains import ChainPlan
from polyblocks.affine.gpu.plans.groups import GroupPlan
from polyblocks.affine.gpu.plans.kernel import Kernel
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.tiles.chain_cost import predict_chain
from polyblocks.affine.gpu.tiles.lanes_cost import predict_lanes
from polyblocks.affine.gpu.tiles.units_cost import predict_units
from polyblocks.target import TargetDescription


def predict(kernel: Kernel, target: TargetDescription) -> Predicted:
    """Seconds of a kernel as it runs, and where they come from.

    Args:
        kernel: a nest, and its whole plan.
        target: has grids.
    """
    plan, chip = kernel.plan, target.multiprocessor
    assert chip is not None
    if isinstance(plan, UnitPlan):
        return predict_units(plan, target, chip)
    if isinstance(plan, ChainPlan):
        return predict_chain(plan, target, chip)
    if isinstance(plan, LanePlan):
        return predict_lanes(plan, target, chip)
    assert isinstance(plan, GroupPlan)
    return predict_groups(plan, kernel.nest, target, chip)
