"""From a schedule of a chain of products back to its plan."""

from __future__ import annotations

from polyblocks.affine.gpu.plans.chained import chained_products
from polyblocks.affine.gpu.plans.chains import ChainPlan, chain_accesses, chain_plan
from polyblocks.affine.gpu.plans.group_chains import group_chain_accesses, group_chain_plan
from polyblocks.affine.gpu.tiles.chain_cost import overlapping
from polyblocks.affine.model import Nest
from polyblocks.affine.plan.schedule import Schedule
from polyblocks.affine.plan.tiles import Tiles
from polyblocks.target import TargetDescription


def scheduled_chain(
    nest: Nest, tiles: Tiles, schedule: Schedule, target: TargetDescription
) -> ChainPlan:
    """The plan of a schedule.

    Raises:
        UnsupportedError: the nest or the chip does not allow for it; says why.
    """
    parts = chained_products(nest)
    if parts is None:
        raise schedule.refuse("'chained' is of nests that chain-products makes, and this is none")
    warps, across = tiles.in_a_block(schedule)
    height, block = tiles.register_tile
    if across != 1 or block != parts.block:
        raise schedule.unexpected(
            f"{parts.block} columns, those of a block of steps, for 'register_tile' and "
            "'block_tile'",
            [block, across * block],
        )
    stages = schedule.number("stages", 2)
    chip, wanted = target.multiprocessor, schedule.given["unit"]
    assert chip is not None
    sizes = chip, warps, height, stages
    plan: ChainPlan | None = None
    by_groups, accesses = group_chain_accesses(parts, target), chain_accesses(parts, target)
    if by_groups is not None and by_groups[0].unit.name == wanted:
        groups = group_chain_plan(parts, by_groups, *sizes)
        plan = groups and overlapping(groups, target, chip)
    elif accesses is not None:
        plan = chain_plan(parts, accesses, *sizes)
    if plan is None or plan.first.tiles != tiles or plan.unit.name != wanted:
        raise schedule.refuse("no matrix unit of the chip computes the chain in such tiles")
    return plan
