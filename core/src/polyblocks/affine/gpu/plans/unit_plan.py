"""The plan of a unit from the sizes of its tiles."""

from __future__ import annotations

from polyblocks.affine.gpu.plans.fragments import has_whole_tiles, outers_of, steps_of
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.sizes import TileSizes
from polyblocks.affine.gpu.plans.unit_access import UnitAccess
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.plan.tiles import Tiles
from polyblocks.target import GroupUnit, Multiprocessor


def unit_plan(chip: Multiprocessor, found: UnitAccess, tiles: Tiles, stages: int) -> UnitPlan:
    """The plan with these tiles, of whole units and warps, and stages."""
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
    made = UnitPlan
    if isinstance(unit, GroupUnit):
        made, loads = GroupUnitPlan, None
    elif loads is not None and not has_whole_tiles(
        unit, loads, of_warp, found.product.element.nbytes
    ):
        loads = None
    return made(
        *(sizes, found, tiles, stages, chip.warp * unit.warps),
        copies=chip.asynchronous_copies,
        bounded=chip.bounded_loads,
        loads=loads,
        fence=chip.scheduling_fence,
    )
