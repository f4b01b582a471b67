"""Cost of a tiled contraction: units, shared memory, caches, and latency."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import ACCESSED_PER_MOVED, SHARED_TILE_SHARE
from polyblocks.affine.cost.predicted import IMPOSSIBLE, Predicted
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.affine.gpu.plans.sizes import bytes_around, extent
from polyblocks.affine.gpu.tiles.lane_plans import lane_plans
from polyblocks.affine.model import Nest
from polyblocks.occupancy import occupancy
from polyblocks.target import Multiprocessor, TargetDescription


def predict_lanes(plan: LanePlan, target: TargetDescription, chip: Multiprocessor) -> Predicted:
    """Seconds of a tiled kernel.

    Blocks run in waves, and the last wave may leave multiprocessors idle; a thread reads from
    shared memory one value per row and one per column for each product of both.
    """
    units = max(target.shared_level.size, 1)
    threads, blocks = plan.threads, plan.blocks
    rows, columns, depth = plan.sizes.tile
    needed = plan.registers()
    if needed > chip.registers_per_thread:
        return IMPOSSIBLE
    resident = occupancy(chip, needed, plan.shared_bytes(), threads).blocks
    if resident < 1:
        return IMPOSSIBLE
    at_once = min(resident, ceil(blocks / units))
    # Multiprocessors that have one block less than others wait for these.
    shares = ceil(blocks / units) * units / blocks
    busy = min(1.0, at_once * threads / chip.warp / (chip.busy_warps or chip.warps))
    steps = plan.sizes.counts[2]
    padded = blocks * rows * columns * steps
    body = plan.sizes.parts.reduction.body
    work = rates.compute_seconds(target, cost.operations(body) * padded)
    r, c = plan.sizes.of_thread
    operands = plan.sizes.parts.operands
    reads = padded * sum(o.load.buffer.bytes_per_element / (c, r)[o.side] for o in operands)
    on_chip = _bandwidth(target, "shared", units)
    main = rates.main_bandwidth(target, units)
    moved = _moved_bytes(plan)
    waves = ceil(blocks / (units * resident))
    takes = chip.latencies
    # Until the first operands are there, and until the results are stored.
    ends = 2 * takes.memory
    # Those of the next steps are asked for when these are there.
    step = takes.exchange + SHARED_TILE_SHARE * takes.memory
    return Predicted(
        memory=None if main is None else moved / (ACCESSED_PER_MOVED * main),
        compute=None
        if work is None or on_chip is None
        else max(work * shares / busy, reads / on_chip * shares),
        latency=waves * (ceil(steps / depth) * step + ends) if takes.known else None,
    )


def quickest_lanes(
    nest: Nest,
    target: TargetDescription,
    chip: Multiprocessor,
    most: float = inf,
) -> tuple[LanePlan, Predicted] | None:
    """The tiled kernel that is predicted to be the quickest; None if none takes so few seconds.

    Most kernels take longer by the least time that each of them takes, which is soon said.
    """
    parts = facts_of(nest).contraction
    if parts is None or least_of_all(parts, target) > most:
        return None
    least = least_lanes(target, chip)
    plans = list(lane_plans(nest, chip))
    best: tuple[float, int, Predicted] | None = None
    for seconds, number in sorted((least(k), number) for number, k in enumerate(plans)):
        if seconds > (most if best is None else best[0]):
            break
        plan = plans[number]
        if plan.shared_bytes() > chip.shared_per_block:
            continue
        predicted = predict_lanes(plan, target, chip)
        if best is None or (predicted.seconds, number) < best[:2]:
            best = predicted.seconds, number, predicted
    return None if best is None or best[0] > most else (plans[best[1]], best[2])


def least_of_all(parts: Contraction, target: TargetDescription) -> float:
    """Seconds that no kernel is below: of what there is to compute, without what is beyond ends."""
    elements = extent(parts.batch) * extent(parts.rows) * extent(parts.columns)
    work = cost.operations(parts.reduction.body) * elements * parts.reduction.trips
    return rates.compute_seconds(target, work) or 0.0


def least_lanes(target: TargetDescription, chip: Multiprocessor) -> Callable[[LanePlan], float]:
    """Gives seconds that :func:`predict_lanes` exceeds or meets, without asking what fits.

    Time of the vector units and of memory; 0 where a rate is unknown.
    """
    units = max(target.shared_level.size, 1)
    moves = ACCESSED_PER_MOVED * (rates.main_bandwidth(target, units) or inf)
    rate = rates.lane_rate(target) or inf
    ends = 2 * chip.latencies.memory if chip.latencies.known else 0.0

    def least(plan: LanePlan) -> float:
        rows, columns, _ = plan.sizes.tile
        work = cost.operations(plan.sizes.parts.reduction.body) * rows * columns
        work *= ceil(plan.blocks / units) * units * plan.sizes.counts[2]
        return rates.overlapped(_moved_bytes(plan) / moves, work / rate, ends)

    return least


def _moved_bytes(plan: LanePlan) -> int:
    """Bytes that blocks copy of operands, and load and store around the sums of their tiles."""
    sizes = plan.sizes
    rows, columns, _ = sizes.tile
    copied = sizes.counts[2] * sizes.copied_bytes(sizes.parts.operands)
    return plan.blocks * (copied + rows * columns * bytes_around(sizes.parts))


def _bandwidth(target: TargetDescription, name: str, units: int) -> float | None:
    """Bytes per second of a memory level of all multiprocessors; None if it is not known."""
    level = target.memory_level(name)
    return None if level is None else rates.bandwidth(target, level, units)
