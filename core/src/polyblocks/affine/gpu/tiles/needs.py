"""Resources of kernels of matrix units, computed once for products of a kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import groupby
from math import lcm
from typing import Any

import numpy as np

from polyblocks.affine.gpu.plans.boxed_arrays import boxed_arrays, boxed_result
from polyblocks.affine.gpu.plans.sizes import extent
from polyblocks.affine.gpu.plans.unit_access import UnitAccess
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.tiles.unit_plans import calls_of, unit_plans
from polyblocks.affine.plan.tiles import Tiles
from polyblocks.occupancy import occupancy
from polyblocks.target import Multiprocessor

#: One number for each kernel.
Numbers = np.ndarray[Any, np.dtype[Any]]
#: Kinds of products that are remembered.
_REMEMBERED = 256

#: Tiles, stages and cluster of a kernel.
Tiling = tuple[Tiles, int, tuple[int, int]]
_known: dict[tuple[Any, ...], tuple[list[Tiling], Needs]] = {}


@dataclass(frozen=True)
class Needs:
    """Of kernels of one product, the number of each.

    Attributes:
        tile: rows, columns and steps of a block.
        threads: of a block, those that multiply.
        copied_bytes: of memory that a step of a tile takes.
        shared_bytes: that a block's warps write and read of shared memory for a tile of both
            operands.
        issued: instructions of a thread for a tile.
        through_registers: whether no copy goes past the registers.
        idle_copiers: see :attr:`polyblocks.affine.gpu.plans.units.UnitPlan.has_idle_copiers`.
        stages: tiles in shared memory, without those that are kept for products under way.
        exchanges: how often the warps of a block wait for each other for a tile, one behind the
            other, where nothing goes on meanwhile.
        persistent: whether blocks compute tile after tile if there are enough tiles.
        resident: blocks that a multiprocessor holds; 0 where a block cannot run.
    """

    tile: tuple[Numbers, Numbers, Numbers]
    threads: Numbers
    copied_bytes: Numbers
    shared_bytes: Numbers
    issued: Numbers
    through_registers: Numbers
    idle_copiers: Numbers
    stages: Numbers
    exchanges: Numbers
    persistent: Numbers
    resident: Numbers


def needs_of_all(chip: Multiprocessor, found: UnitAccess) -> tuple[list[Tiling], Needs]:
    """Tiles, stages and clusters of all kernels that could compute a product, and what each needs.

    Neither depends on the number of steps but for what :func:`_kind` has of it, nor on that of
    products beside each other, nor on what is done around the sums, so that contractions in parts
    have those of whole ones.
    """
    kind = _kind(found, chip)
    if kind not in _known:
        if len(_known) >= _REMEMBERED:
            del _known[next(iter(_known))]
        plans = list(unit_plans(chip, found))
        _known[kind] = [(k.tiles, k.stages, k.cluster) for k in plans], needs_of(plans, chip)
    return _known[kind]


def needs_of(plans: Iterable[UnitPlan], chip: Multiprocessor) -> Needs:
    """The resources of kernels."""
    rows = []
    for _, alike in groupby(plans, lambda plan: (plan.tiles, plan.cluster)):
        # Computed once for kernels that differ in stages only.
        first, *others = alike
        needed, numbers = first.registers(), _numbers(first)
        possible = needed <= chip.registers_per_thread
        for plan in (first, *others):
            held = occupancy(chip, needed, plan.shared_bytes(), plan.threads).blocks
            ahead = plan.stages - plan.kept, plan.exchanges, plan.can_persist
            rows.append((*numbers, *ahead, held if possible else 0))
    # A unit may have no kernel of the product: each number is of none then.
    width = len(rows[0]) if rows else len(fields(Needs)) + 2
    columns = np.array(rows).reshape(len(rows), width).T
    return Needs((columns[0], columns[1], columns[2]), *columns[3:])


def _numbers(plan: UnitPlan) -> tuple[float, ...]:
    """Those of :class:`Needs` that are the same for any number of stages."""
    return (
        *plan.sizes.tile,
        plan.sizes.threads,
        _copied_bytes(plan),
        _shared_bytes_of_tile(plan),
        plan.reading + sum(plan.copying(o) for o in plan.product.operands),
        plan.copies_through_registers,
        plan.has_idle_copiers,
    )


def _copied_bytes(plan: UnitPlan) -> float:
    """Of memory, for a step of a tile: blocks of a cluster copy a part each of what they share."""
    given = plan.product.operands
    return sum(plan.sizes.copied_bytes([o]) / plan.cluster[1 - o.side] for o in given)


def _kind(found: UnitAccess, chip: Multiprocessor) -> tuple[Any, ...]:
    """All that kernels depend on and their needs, of what they compute and of the chip."""
    product, parts, unit = found.product, found.product.contraction, found.unit
    steps = parts.reduction.trips
    depths = [calls * unit.shape[2] for calls in calls_of(found)]
    return (
        chip,
        unit,
        found.along,
        found.linear,
        found.aligned,
        found.window,
        found.conditions,
        tuple(bool(o.on_the_way) for o in product.operands),
        tuple(o.load.buffer.bytes_per_element for o in product.operands),
        len(product.steps),
        (len(parts.rows), extent(parts.rows), len(parts.columns), extent(parts.columns)),
        chip.bulk_copies is not None and boxed_arrays(found, chip.bulk_copies) is not None,
        chip.bulk_copies is not None and boxed_result(found, chip.bulk_copies) is not None,
        tuple((steps % lcm(found.window, depth) == 0, depth < 2 * steps) for depth in depths),
    )


def _shared_bytes_of_tile(plan: UnitPlan) -> float:
    """Of shared memory.

    For each slice a warp reads a row of chunks for each of its rows, and one for each of its
    columns; tiles are written to shared memory once more than they come from the caches.
    """
    rows, columns, depth = plan.sizes.tile
    (m, n, _), (i, j) = plan.unit.shape, plan.of_warp if plan.shares_reads else (1, 1)
    products = rows * columns * depth
    read = products / (m * i) + products / (n * j)
    return (read + depth * (rows + columns)) * plan.element_bytes
