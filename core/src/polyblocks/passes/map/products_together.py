"""Products that are launched together: all have the same tile, chosen for the blocks of all.

The tile that is best for a small product by itself keeps all multiprocessors busy, and reads its
operands more often than a larger one would. Beside others that need not be so.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.contraction.products.factors import is_product
from polyblocks.affine.fusion.independence import independent
from polyblocks.affine.gpu.choose import copy_of, quickest_tiles
from polyblocks.affine.gpu.plans.kernel import Plan
from polyblocks.affine.gpu.plans.sizes import Grid, extent
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.tiles.units_cost import predict_units, quickest_units
from polyblocks.affine.likeness import likeness
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.model import For, Nest, Opaque, Sequence
from polyblocks.occupancy import JOINED_REACH, MOST_JOINED
from polyblocks.target import TargetDescription


class _Sizes(NamedTuple):
    """Of a product."""

    grid: Grid
    steps: int


def products_together(sequence: Sequence, target: TargetDescription) -> dict[Nest, list[Grid]]:
    """The products of a sequence that are quicker together, each with the sizes of the rest."""
    found: dict[Nest, list[Grid]] = {}
    known: dict[Hashable, bool] = {}
    for position, item in enumerate(sequence.items):
        if not isinstance(item, Nest) or item in found:
            continue
        sizes = _sizes(item, target)
        if sizes is None:
            continue
        group = _group(sequence.items[position:], sizes, target, found)
        if len(group) < 2:
            continue
        key = tuple(likeness(nest.body) for nest in group)
        if key not in known:
            known[key] = _is_quicker(group, target)
        if known[key]:
            found.update((nest, _other_grids(group, nest)) for nest in group)
    return found


def _sizes(nest: Nest, target: TargetDescription) -> _Sizes | None:
    """None if it is no product by itself."""
    loop = nest.body[0] if nest.body else None
    if isinstance(loop, For) and loop.schedule is not None:
        return None
    parts = facts_of(nest).contraction
    if parts is None or not is_product(parts, target):
        return None
    grid = Grid(extent(parts.batch), extent(parts.rows), extent(parts.columns))
    return _Sizes(grid, parts.reduction.trips)


def _group(
    items: list[Nest | Opaque],
    sizes: _Sizes,
    target: TargetDescription,
    taken: dict[Nest, list[Grid]],
) -> dict[Nest, Grid]:
    """The products that can run together with the first, which has these sizes."""
    first = items[0]
    assert isinstance(first, Nest)
    group, between = {first: sizes.grid}, list[Nest | Opaque]()
    for item in items[1:]:
        if len(between) > JOINED_REACH or len(group) == MOST_JOINED:
            break
        own = _sizes(item, target) if isinstance(item, Nest) and item not in taken else None
        if (
            isinstance(item, Nest)
            and own is not None
            and own.steps == sizes.steps
            and stands_before(item, first)
            and all(independent(item, other) for other in (*group, *between))
        ):
            group[item] = own.grid
        else:
            between.append(item)
    return group


def _other_grids(group: dict[Nest, Grid], nest: Nest) -> list[Grid]:
    return [grid for other, grid in group.items() if other is not nest]


def _is_quicker(group: dict[Nest, Grid], target: TargetDescription) -> bool:
    """Whether one launch with a tile that is best for all takes less time than without it."""
    chip, launch = target.multiprocessor, target.shared_level.overhead
    assert chip is not None
    alone: list[tuple[Plan, float]] = []
    joint: list[tuple[UnitPlan, float]] = []
    for nest in group:
        one = quickest_tiles(copy_of(nest), target)
        found = quickest_units(copy_of(nest), target, chip, _other_grids(group, nest))
        if one is None or found is None:
            return False
        alone.append(one)
        joint.append((found[0], found[1].seconds))
    if not _are_joined([plan for plan, _ in joint], target):
        return False
    after = max(seconds for _, seconds in joint)
    before = sum(seconds for _, seconds in alone) + launch * (len(group) - 1)
    plans = [plan for plan, _ in alone if isinstance(plan, UnitPlan)]
    if len(plans) == len(alone) and _are_joined(plans, target):
        rest = [_other_grids(group, nest) for nest in group]
        given = zip(plans, rest, strict=True)
        before = max(predict_units(plan, target, chip, them).seconds for plan, them in given)
    return after < before


def _are_joined(plans: list[UnitPlan], target: TargetDescription) -> bool:
    """Whether join-launches makes one launch of kernels with these plans."""
    shapes = {(plan.threads, plan.tile, plan.stages, plan.shared_bytes()) for plan in plans}
    return len(shapes) == 1 and all(
        plan.blocks < 2 * target.shared_level.size
        and plan.cluster == (1, 1)
        and not getattr(plan, "persistent", False)
        for plan in plans
    )
