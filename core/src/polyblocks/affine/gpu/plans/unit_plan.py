"""The plan of a unit from the sizes of its tiles."""

from __future__ import annotations

from dataclasses import replace

from polyblocks.affine.cost import rates
from polyblocks.affine.gpu.plans.boxed_arrays import RESULT_BYTES, boxed_arrays, boxed_result
from polyblocks.affine.gpu.plans.fragments import has_whole_tiles, outers_of, steps_of
from polyblocks.affine.gpu.plans.group_units import ROWS, GroupUnitPlan
from polyblocks.affine.gpu.plans.sizes import TileSizes
from polyblocks.affine.gpu.plans.unit_access import UnitAccess
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.plan.tiles import Tiles
from polyblocks.target import GroupUnit, Multiprocessor, TargetDescription

#: Rows of tiles that are computed at a time, at most.
_ROW_TILES = 16


def unit_plan(
    chip: Multiprocessor,
    found: UnitAccess,
    tiles: Tiles,
    stages: int,
    cluster: tuple[int, int] = (1, 1),
) -> UnitPlan:
    """The plan with these tiles, of whole units and warps, stages, and cluster."""
    unit, loads = found.unit, chip.tile_loads
    sums = unit.sums
    assert sums is not None
    own = (len(outers_of(sums)), len(steps_of(sums)))
    m, n, _ = unit.shape
    (height, width), (rows, columns) = tiles.register_tile, tiles.block_tile
    of_warp = (height // m, width // n)
    sizes = TileSizes(
        found.product.contraction,
        of_thread=(of_warp[0] * own[0], of_warp[1] * own[1]),
        across=(rows // height * m // own[0], columns // width * n // own[1]),
        depth=tiles.k_block,
    )
    given = (sizes, found, tiles, stages, chip.warp * unit.warps)
    if isinstance(unit, GroupUnit):
        plan = GroupUnitPlan(*given, copies=chip.asynchronous_copies, cluster=cluster)
        return _of_group(chip, plan)
    if loads is not None and not has_whole_tiles(
        unit, loads, of_warp, found.product.element.nbytes
    ):
        loads = None
    return UnitPlan(
        *given,
        copies=chip.asynchronous_copies,
        bounded=chip.bounded_loads,
        loads=loads,
        fence=chip.scheduling_fence,
    )


def in_order(plan: UnitPlan, target: TargetDescription) -> UnitPlan:
    """The plan, with the order of its blocks: columns that no cache keeps are read by few rows.

    Tiles of a row follow each other, and all rows read all columns. Where these do not stay in the
    last cache until the next row, several rows read them at the same time. Units that read shared
    memory have an order of their own.
    """
    rows, steps = plan.sizes.grid[0], plan.sizes.counts[2]
    columns = [o for o in plan.sizes.parts.operands if o.side == 1]
    nbytes = plan.sizes.counts[1] * steps * plan.element_bytes
    nbytes = min(nbytes, sum(o.load.buffer.nbytes for o in columns))
    if isinstance(plan, GroupUnitPlan) or rates.found_in(target, nbytes) < len(target.memory) - 1:
        return plan
    most = max(n for n in range(1, _ROW_TILES + 1) if rows % n == 0)
    return replace(plan, row_tiles=most)


def _of_group(chip: Multiprocessor, plan: GroupUnitPlan) -> GroupUnitPlan:
    """The plan, with bulk copies where all operands can be copied in boxes."""
    bulk = chip.bulk_copies
    if bulk is None or bulk.line != plan.alignment // ROWS:
        return plan
    arrays = boxed_arrays(plan.access, bulk)
    if arrays is None or max(plan.sizes.tile) > bulk.rows:
        return plan
    line = bulk.line // RESULT_BYTES
    whole = plan.of_warp[1] * plan.unit.shape[1] % line == 0
    result = boxed_result(plan.access, bulk) if whole else None
    found = replace(plan, bulk=bulk, arrays=arrays, pool=chip.registers, result=result)
    return replace(found, units=chip.count, shared=chip.shared)
