"""The plans of a matrix unit that could compute a product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import lcm

from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.sizes import extent
from polyblocks.affine.gpu.plans.unit_access import UnitAccess
from polyblocks.affine.gpu.plans.unit_plan import unit_plan
from polyblocks.affine.gpu.plans.units import CALLS_OF_WINDOWS, UnitPlan
from polyblocks.affine.plan.tiles import Tiles
from polyblocks.target import GroupUnit, Multiprocessor

#: Warps of a block along rows and along columns.
_WARPS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (4, 1), (2, 4), (4, 2))
#: Rows and columns of a warp.
_HEIGHTS = (16, 32, 48, 64, 80, 96, 128)
_WIDTHS = (16, 32, 64, 128)
#: Sums of a warp's tile for each lane, at most: what is left of the registers are operands.
_SUMS = 128
#: Calls of a unit one after the other for which the operands are copied at once.
_CALLS = (1, 2, 4)
#: Tiles of each operand that are in shared memory: one is used and the others are filled; with
#: copies that take no registers there can be several of these.
_STAGES = (3, 4, 2)
#: Groups of warps of a block along rows and along columns, rows of units of one, and stages, of a
#: unit that reads shared memory.
_GROUPS = ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1))
_ROWS_OF_GROUP = (1, 2)
_GROUP_STAGES = (4, 3, 5, 6)
#: Blocks along rows and along columns that share what they read, by such a unit.
_CLUSTERS = ((1, 1), (2, 1), (1, 2))


def unit_plans(chip: Multiprocessor, found: UnitAccess) -> Iterator[UnitPlan]:
    """Candidates for a nest whose product a unit computes."""
    if isinstance(found.unit, GroupUnit):
        yield from _of_groups(chip, found, found.unit)
        return
    m, n, k = found.unit.shape
    # Of so few columns that they are those of one unit there is a tile of one.
    few = extent(found.product.columns) <= n
    widths = (n,) if few else _WIDTHS
    sizes = product(_WARPS, _HEIGHTS, widths, calls_of(found))
    for (down, across), height, width, calls in sizes:
        if height % m or width % n or height * width > _SUMS * chip.warp:
            continue
        tiles = Tiles((height, width), (down * height, across * width), calls * k)
        plan = unit_plan(chip, found, tiles, stages=2)
        if plan.sizes.depth % plan.piece or plan.threads > chip.threads_per_block:
            continue
        if not _fits(plan):
            continue
        # Where each lane reads its own chunks, those of other counts of calls take all registers.
        many = calls not in _CALLS
        if many and (plan.loads is None or max(map(plan.window, found.product.operands)) == 1):
            continue
        if plan.period > 1 and not _is_straight(plan):
            continue
        if plan.copies_through_registers:
            # Places in shared memory come again when those in windows do.
            yield replace(plan, stages=next((s for s in (2, 3) if plan.period % s == 0), 2))
        else:
            yield from (replace(plan, stages=stages) for stages in _STAGES)


def _of_groups(chip: Multiprocessor, found: UnitAccess, unit: GroupUnit) -> Iterator[UnitPlan]:
    """Candidates of a unit that reads shared memory: a line of steps, few or many stages."""
    m, n, _ = unit.shape
    line = unit.line // found.product.element.nbytes
    for (down, across), rows, cluster in product(_GROUPS, _ROWS_OF_GROUP, _CLUSTERS):
        if rows * m * n > _SUMS * chip.warp * unit.warps:
            continue
        tiles = Tiles((rows * m, n), (down * rows * m, across * n), line)
        plan = unit_plan(chip, found, tiles, _GROUP_STAGES[0], cluster)
        assert isinstance(plan, GroupUnitPlan)
        if plan.threads > chip.threads_per_block or not plan.is_possible or not _fits(plan):
            continue
        yield from (replace(plan, stages=stages) for stages in _GROUP_STAGES)


def calls_of(found: UnitAccess) -> list[int]:
    """Calls of a unit for which operands are copied at once, of any plan."""
    windows = lcm(found.window, found.unit.shape[2]) // found.unit.shape[2]
    return sorted({*_CALLS, windows if windows <= CALLS_OF_WINDOWS else 1})


def _is_straight(plan: UnitPlan) -> bool:
    """Whether copies go through registers and have no branches, past which no load is moved.

    Nor has a tile rows beyond the end, whose few blocks let the assembler spend all registers.
    """
    branches = plan.has_idle_copiers or plan.sizes.ragged or plan.bounded is None
    return plan.copies_through_registers and not branches


def _fits(plan: UnitPlan) -> bool:
    """Whether less than half of a tile is beyond the end, but for the smallest ones."""
    sizes = zip(plan.sizes.counts, plan.sizes.tile, plan.unit.shape, strict=True)
    return all(size < 2 * count or size <= smallest for count, size, smallest in sizes)
