"""Cost of chains of products by a matrix unit: as that of one, with what is between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil

from polyblocks.affine.cost import rates
from polyblocks.affine.cost.predicted import IMPOSSIBLE, Predicted
from polyblocks.affine.gpu.plans.chained import ChainedProducts
from polyblocks.affine.gpu.plans.chains import ChainPlan, chain_accesses, chain_plan
from polyblocks.affine.gpu.plans.group_chains import (
    GroupChainPlan,
    group_chain_accesses,
    group_chain_plan,
)
from polyblocks.affine.gpu.plans.sizes import bytes_around, extent
from polyblocks.affine.gpu.tiles.units_cost import rates_of_memory
from polyblocks.occupancy import occupancy
from polyblocks.target import Multiprocessor, TargetDescription

#: Warps of a block, rows of each, and blocks of steps in shared memory: of equal times the fewest.
_WARPS, _HEIGHTS, _STAGES = (4, 8, 2, 1), (16, 32), (1, 2, 3)
#: Groups of warps of a block, and stages, where a unit reads shared memory. With two groups one
#: multiplies while the other one does not; three have more rows for each copy.
_GROUPS, _GROUP_STAGES = (2, 3), (2, 3)
#: Blocks for each multiprocessor from which steps are not shared out.
_ENOUGH = 4
#: Steps of a block.
BLOCKS = (64, 32, 128)


def chain_plans(parts: ChainedProducts, target: TargetDescription) -> Iterator[ChainPlan]:
    """Candidates for a chain."""
    accesses, chip = chain_accesses(parts, target), target.multiprocessor
    if chip is None:
        return
    yield from _of_groups(parts, target, chip)
    if accesses is None:
        return
    for warps in _WARPS:
        for height in _HEIGHTS:
            for stages in _STAGES:
                plan = chain_plan(parts, accesses, chip, warps, height, stages)
                if plan is not None:
                    yield plan


def _of_groups(
    parts: ChainedProducts, target: TargetDescription, chip: Multiprocessor
) -> Iterator[ChainPlan]:
    """Candidates of a unit that reads shared memory, where a group has half of its rows."""
    accesses = group_chain_accesses(parts, target)
    if accesses is None:
        return
    height = accesses[0].unit.shape[0]
    if 2 * extent(accesses[0].product.rows) < height:
        return
    plans = []
    for groups, stages in product(_GROUPS, _GROUP_STAGES):
        plan = group_chain_plan(parts, accesses, chip, groups, height, stages)
        if plan is not None:
            plans.append(overlapping(plan, target, chip))
    overlap = [plan for plan in plans if plan.overlaps]
    yield from overlap or plans


def overlapping(
    plan: GroupChainPlan, target: TargetDescription, chip: Multiprocessor
) -> GroupChainPlan:
    """A plan whose products overlap, where they take less time than what is between them.

    Else groups hide that for each other: on an H200 overlap inside of a group brought 7 % for heads
    of 64, and nothing for those of 128.
    """
    matrix, issued = _seconds_of_block(plan, target, chip)
    return plan.overlapped() if matrix <= issued else plan


def predict_chain(
    plan: ChainPlan, target: TargetDescription, chip: Multiprocessor, length: int = 0
) -> Predicted:
    """Seconds of one kernel.

    A block of steps takes the unit, shared memory and issue slots, and before each of them its
    operands have to be there; while a warp does what is between the products, others multiply.

    Args:
        plan: of the kernel.
        target: with grids.
        chip: with the unit.
        length: blocks of steps of a part, if blocks of the grid share out the steps, which the
            plan does not do; 0: as planned.
    """
    units = max(target.shared_level.size, 1)
    needed = occupancy(chip, plan.registers(), plan.shared_bytes(), plan.threads)
    if not needed.blocks:
        return IMPOSSIBLE
    blocks, turns = plan.blocks, _turns(plan)
    if length:
        blocks, turns = blocks * ceil(plan.parts.blocks.var.extent / length), min(turns, length)
    resident = min(needed.blocks, ceil(blocks / units))
    on_chip, cache = rates_of_memory(target)
    rows, width, block = plan.tile
    depth, size = sum(p.tile[2] for p in plan.firsts), plan.first.element_bytes
    waves = ceil(blocks / (units * resident))
    copied = block * (depth + width) * size
    ends = (rows * depth + rows * width) * size + bytes_around(plan.parts.last) * rows
    memory = compute = latency = None
    if cache is not None:
        memory = blocks * (turns * copied + ends) / cache
        memory = max(memory, seconds_of_memory(plan.parts.touched_bytes, target))
    if chip.latencies.known:
        latency = waves * 2 * chip.latencies.memory
    if on_chip is not None and plan.unit.flops:
        matrix, issued = _seconds_of_block(plan, target, chip)
        warps = plan.first.sizes.threads // chip.warp
        shared = (plan.read + block * (depth + width)) * size * units / on_chip
        if chip.one_pipe:
            matrix, issued = matrix + issued, 0.0
        busy = rates.overlapped(resident * matrix, resident * shared, resident * issued)
        # A block's warps use as many partitions as there are warps.
        idle = max(1.0, chip.partitions / warps)
        alone = idle * (matrix + plan.slots_alone * issued) / plan.independent_parts
        alone += 2 * chip.latencies.exchange
        # Of one stage, each operand has half of a turn to come.
        comes = chip.latencies.memory / (plan.stages - 0.5)
        compute = waves * turns * max(busy, alone, comes)
        if resident == 1 and isinstance(plan, GroupChainPlan):
            # Nobody hides how the first operands come, the last products end and results leave.
            compute += waves * alone
    return Predicted(memory, compute, latency)


def _seconds_of_block(
    plan: ChainPlan, target: TargetDescription, chip: Multiprocessor
) -> tuple[float, float]:
    """Seconds of a block of steps that take the unit, and issue slots.

    Instructions of many kinds take the latter, one of a partition in each cycle, as shared memory
    moves a row of its banks.
    """
    (on_chip, _), units = rates_of_memory(target), max(target.shared_level.size, 1)
    rows, width, block = plan.tile
    if on_chip is None or not plan.unit.flops:
        return 0.0, 0.0
    cycles = on_chip / (chip.banks * chip.bank_bytes * chip.shared_units)
    rate = cycles * chip.partitions * chip.warp
    depth = sum(p.tile[2] for p in plan.firsts)
    matrix = 2.0 * rows * block * (depth + width) * units / plan.unit.flops
    return matrix, plan.first.sizes.threads * plan.issued * units / rate


def seconds_of_memory(nbytes: int, target: TargetDescription) -> float:
    """Seconds in which memory moves as many bytes once."""
    return rates.traffic_seconds(target, nbytes, nbytes) or 0.0


def parts_to_try(blocks: int, steps: int, target: TargetDescription) -> list[int]:
    """Blocks of steps of a part, where a chain's steps may be shared out among blocks of a grid.

    Args:
        blocks: of the grid, with all steps each.
        steps: blocks of steps.
        target: with grids.
    """
    units = max(target.shared_level.size, 1)
    if blocks >= _ENOUGH * units:
        return []
    counts = {units * waves // blocks for waves in range(1, 2 * _ENOUGH + 1)}
    lengths = {ceil(steps / count) for count in counts if count > 1}
    least = min(lengths, default=steps)
    return sorted({n for n in (*lengths, 2 * least, 4 * least) if n < steps})


def predict_joining(nbytes: int, target: TargetDescription, chip: Multiprocessor) -> float:
    """Seconds that parts take besides what one kernel does: it stores them, another one loads them.

    Args:
        nbytes: of what parts leave.
        target: with grids.
        chip: of it.
    """
    waits = 2 * chip.latencies.memory if chip.latencies.known else 0.0
    traffic = rates.traffic_seconds(target, 2 * nbytes, nbytes) or 0.0
    return target.shared_level.overhead + waits + traffic


def _turns(plan: ChainPlan) -> float:
    """Blocks of steps of a tile of rows, in the mean of all tiles."""
    parts, rows = plan.parts, plan.tile[0]
    (lower, upper), extent = parts.bounds, parts.blocks.var.extent
    if not lower and not upper:
        return float(extent)
    row = parts.first.rows[0]
    others = dict.fromkeys((v for e in (*lower, *upper) for v in e.variables()), 0)
    total = 0
    for first in range(0, row.extent, rows):
        last = min(first + rows, row.extent) - 1
        begin = max([0, *(e.evaluate({**others, row: first}) for e in lower)])
        end = min([extent, *(e.evaluate({**others, row: last}) for e in upper)])
        total += max(0, end - begin)
    return total / plan.second.sizes.grid[0]
