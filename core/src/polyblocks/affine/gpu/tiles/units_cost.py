"""Cost of kernels of matrix units: the unit, shared memory, caches, and latency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import NOT_HIDDEN
from polyblocks.affine.cost.predicted import IMPOSSIBLE, Predicted
from polyblocks.affine.gpu.plans.sizes import Grid, bytes_around, extent
from polyblocks.affine.gpu.plans.unit_access import UnitAccess, nest_accesses
from polyblocks.affine.gpu.plans.unit_plan import in_order, unit_plan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.tiles.needs import Needs, Numbers, needs_of, needs_of_all
from polyblocks.affine.model import Nest
from polyblocks.target import MatrixUnit, Multiprocessor, TargetDescription


class _Times(NamedTuple):
    """Seconds of each kernel, as those of :class:`Predicted`, and whether it can run."""

    memory: Numbers | None
    compute: Numbers | None
    latency: Numbers | None
    possible: Numbers

    @property
    def seconds(self) -> Numbers:
        """The key of comparisons."""
        return np.where(self.possible, _overlapped(*(s for s in self[:3] if s is not None)), np.inf)

    def of(self, number: int) -> Predicted:
        """Those of one kernel."""
        if not self.possible[number]:
            return IMPOSSIBLE
        return Predicted(*(None if s is None else float(s[number]) for s in self[:3]))


def _overlapped(*seconds: Numbers) -> Numbers:
    """As :func:`polyblocks.affine.cost.rates.overlapped`, one after the other."""
    longest = np.maximum.reduce(seconds)
    return longest + NOT_HIDDEN * (sum(seconds) - longest)


def quickest_units(
    nest: Nest, target: TargetDescription, chip: Multiprocessor, beside: Sequence[Grid] = ()
) -> tuple[UnitPlan, Predicted] | None:
    """The plan of a matrix unit that is predicted to be the quickest; None if none can run.

    Args:
        nest: a product.
        target, chip: what runs it.
        beside: sizes of products with as many steps whose blocks run at the same time; the time
            is that of all.
    """
    found = [
        best
        for access in nest_accesses(nest, target.matrix_units)
        if (best := _quickest(access, target, chip, beside)) is not None
    ]
    return min(found, key=lambda entry: entry[1].seconds, default=None)


def _quickest(
    found: UnitAccess, target: TargetDescription, chip: Multiprocessor, beside: Sequence[Grid]
) -> tuple[UnitPlan, Predicted] | None:
    """The quickest plan of one unit."""
    tilings, needs = needs_of_all(chip, found)
    if not tilings:
        return None
    times = _times(needs, found, target, chip, beside)
    if beside:
        # Kernels with clusters are launched by themselves.
        alone = np.array([cluster != (1, 1) for *_, cluster in tilings])
        times = times._replace(possible=times.possible & ~alone)
    best = int(np.argmin(times.seconds))
    if not times.possible[best]:
        return None
    return in_order(unit_plan(chip, found, *tilings[best]), target), times.of(best)


def least_units(found: UnitAccess) -> float:
    """Seconds that no kernel of a unit is below: all units multiply at once, and nothing else."""
    parts = found.product.contraction
    elements = extent(parts.batch) * extent(parts.rows) * extent(parts.columns)
    flops = found.unit.flops
    return 2 * elements * parts.reduction.trips / flops if flops else 0.0


def predict_units(
    plan: UnitPlan, target: TargetDescription, chip: Multiprocessor, beside: Sequence[Grid] = ()
) -> Predicted:
    """Seconds of one kernel; ``beside`` as in :func:`quickest_units`."""
    return _times(needs_of([plan], chip), plan.access, target, chip, beside).of(0)


def _times(
    needs: Needs,
    found: UnitAccess,
    target: TargetDescription,
    chip: Multiprocessor,
    beside: Sequence[Grid],
) -> _Times:
    """Seconds of kernels of matrix units.

    Blocks run in waves. The last wave may leave multiprocessors idle, or with fewer blocks
    than they could hold. While one block begins or ends, the others that are held go on.
    """
    units = max(target.shared_level.size, 1)
    parts = found.product.contraction
    rows, columns, depth = needs.tile
    own = Grid(extent(parts.batch), extent(parts.rows), extent(parts.columns))
    blocks = sum(
        grid.matrices * np.ceil(grid.rows / rows) * np.ceil(grid.columns / columns)
        for grid in (own, *beside)
    )
    steps = np.ceil(parts.reduction.trips / depth)
    on_chip, cache = rates_of_memory(target)
    of_tile, of_ends = depth * needs.copied_bytes, bytes_around(parts) * rows * columns
    at_once = np.minimum(np.maximum(needs.resident, 1), np.ceil(blocks / units))
    waves, rest = np.divmod(blocks, units * at_once)
    memory = compute = latency = None
    if chip.latencies.known:
        # Until the first operands are there, and until the results are stored.
        ends = 2 * chip.latencies.memory
        if cache is not None:
            ends = ends + units * at_once * (of_tile + of_ends) / cache
        later = ends / at_once
        if on_chip is not None:
            # A block that goes on has operands already, and its results leave meanwhile.
            stored = chip.latencies.barrier + units * of_ends / on_chip
            later = np.where((needs.persistent > 0) & (blocks > units), stored, later)
        latency = ends + later * (waves + (rest > 0) - 1)
    if on_chip is not None and found.unit.flops:
        given = needs, found.unit, target, chip, on_chip
        compute = steps * waves * _seconds_of_tile(*given, at_once)
        compute += steps * np.where(rest > 0, _seconds_of_tile(*given, np.ceil(rest / units)), 0.0)
        # Of waves, the first one's beginning and the last one's end have nothing beside them.
        compute += 0.0 if latency is None else latency
    if cache is not None:
        # Data shared by blocks comes from the first cache whose rate is known.
        memory = blocks * (steps * of_tile + of_ends) / cache
    return _Times(memory, compute, latency, needs.resident >= 1)


def rates_of_memory(target: TargetDescription) -> tuple[float | None, float | None]:
    """Bytes per second of shared memory, and of the first cache behind it that is known.

    Of the cache it is what the blocks of a product get, which read the same tiles.
    """
    units = max(target.shared_level.size, 1)
    shared = target.memory_level("shared")
    if shared is None:
        return None, None
    behind = target.memory[target.memory.index(shared) + 1 :]
    near = next((level for level in behind if level.bandwidth), None)
    cache = None if near is None else rates.bandwidth(target, near, units)
    if cache is not None and near is not None:
        cache *= near.gathered
    return rates.bandwidth(target, shared, units), cache


def _seconds_of_tile(
    needs: Needs,
    unit: MatrixUnit,
    target: TargetDescription,
    chip: Multiprocessor,
    on_chip: float,
    blocks: Numbers,
) -> Numbers:
    """Seconds in which ``blocks`` blocks of a multiprocessor each advance by a K block.

    Instructions beside the unit's take issue slots. A warp for each
    partition keeps its unit busy; a block alone waits for what its warps exchange, and all for
    tiles that are on their way while the others in shared memory are used.
    """
    units = max(target.shared_level.size, 1)
    rows, columns, depth = needs.tile
    matrix = 2.0 * rows * columns * depth * units / unit.flops
    of_shared = needs.shared_bytes * units / on_chip
    rate = rates.lane_rate(target)
    issued = 0.0 if rate is None else needs.threads * needs.issued * units / rate
    takes, warps = chip.latencies, needs.threads / chip.warp
    alone = matrix / np.minimum(1.0, warps / chip.partitions)
    busy = _overlapped(
        matrix * np.maximum(blocks, chip.partitions / warps), blocks * of_shared, blocks * issued
    )
    # Copies past the registers are started all along a tile.
    comes = takes.memory / np.where(needs.through_registers, 1, needs.stages - 1.5)
    exchange = takes.exchange + takes.memory * needs.idle_copiers
    # Until a tile can be read, and until its place may be used again.
    return np.maximum(np.maximum(busy + takes.barrier, alone + needs.exchanges * exchange), comes)
