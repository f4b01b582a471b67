"""Cost of kernels whose groups of threads do iterations of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import address, stride_along
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import (
    ACCESSED_PER_MOVED,
    CACHE_BYTES_PER_SHARED_BYTE,
    STREAMED_SHARE,
    UNUSED_BYTES,
)
from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.expr import Var
from polyblocks.affine.gpu.mapping.barriers import waits
from polyblocks.affine.gpu.plans.groups import DistributedLoop, GroupPlan, Place
from polyblocks.affine.gpu.plans.kernel import resident_blocks
from polyblocks.affine.model import Access, AffineAccess, AnyLoad, Buffer, For, Load, Nest, Node
from polyblocks.affine.tiles.contiguity import written_out
from polyblocks.target import Multiprocessor, TargetDescription


def predict_groups(
    plan: GroupPlan, nest: Nest, target: TargetDescription, chip: Multiprocessor
) -> Predicted:
    """Seconds of a nest whose outer iterations groups of threads share out."""
    units = max(target.shared_level.size, 1)
    threads = plan.blocks * plan.threads
    needed = units * (chip.busy_threads or chip.threads)
    busy = min(1.0, threads / needed)
    # A wide access has as much on its way as several narrow ones.
    width = max((loop.width for loop in plan.distributed.values()), default=1)
    full = min(1.0, threads * width / needed)
    main = rates.main_bandwidth(target, units)
    work = rates.compute_seconds(target, cost.work(nest.body))
    moved, useful = (sum(_traffic(plan, c)) for c in (chip, _ideal(chip)))
    resident = resident_blocks(plan, chip, units)
    # Partly used transactions delay others.
    crowd = 1 + UNUSED_BYTES * (moved / useful - 1) if useful else 1.0
    waves = max(1.0, plan.blocks / (units * resident))
    return Predicted(
        memory=None if main is None else moved / (ACCESSED_PER_MOVED * main) / full,
        compute=None if work is None else work / busy * _idle(plan),
        latency=waves * _steps(plan.body, plan, chip, False) * crowd
        if chip.latencies.known
        else None,
    )


def least_groups(nest: Nest, target: TargetDescription) -> float:
    """Seconds that :func:`predict_groups` exceeds or meets: groups compute all that there is."""
    return rates.compute_seconds(target, cost.work(nest.body)) or 0.0


def _ideal(chip: Multiprocessor) -> Multiprocessor:
    """The chip, if it moved single bytes."""
    return replace(chip, sector=1)


def _idle(plan: GroupPlan) -> float:
    """Threads for every thread that has work, in the loops that a group shares."""
    if plan.group == 1 or not plan.distributed:
        return 1.0
    loops = plan.distributed.values()
    slots = sum(plan.iterations_per_thread(s) * plan.group for s in loops)
    return slots / sum(max(s.trips, 1) for s in loops)


def _steps(nodes: list[Node], plan: GroupPlan, chip: Multiprocessor, inside: bool) -> float:
    """Seconds that one thread waits, all iterations together."""
    takes = chip.latencies
    seconds = 0.0
    for node in nodes:
        if not isinstance(node, For):
            continue
        distributed = None if inside else plan.distributed.get(node)
        if distributed is not None:
            per_thread = plan.iterations_per_thread(distributed)
            seconds += _waits_for_loads(distributed, per_thread, plan, chip)
            seconds += per_thread * _steps(distributed.body, plan, chip, True)
            if distributed.scan:
                seconds += per_thread * takes.warp_reduce * len(distributed.combiners)
                if waits(plan):
                    # Every thread looks at what all warps have come to.
                    look = plan.group / plan.warp * takes.shared_load
                    seconds += per_thread * (2 * takes.barrier + look)
            elif distributed.combiners:
                across = takes.warp_reduce + takes.barrier if waits(plan) else 0
                seconds += takes.warp_reduce + across
            else:
                seconds += takes.barrier
        else:
            seconds += node.trips * (takes.load_step + _steps(node.body, plan, chip, inside))
    return seconds


def _waits_for_loads(
    distributed: DistributedLoop, per_thread: int, plan: GroupPlan, chip: Multiprocessor
) -> float:
    """Seconds that a thread waits for what its iterations of a distributed loop load themselves."""
    loads = [n for n in distributed.body if isinstance(n, AnyLoad)]
    if any(n.buffer not in plan.places and n.buffer not in plan.copied for n in loads):
        # Without a loop around them, loads do not wait for each other; iterations that depend on no
        # others are several at a time.
        written = per_thread <= written_out([len(distributed.body)])
        together = chip.loads_in_flight if written or not distributed.combiners else 1
        return -(-per_thread // (together * distributed.width)) * chip.latencies.load_step
    own = all(plan.places.get(n.buffer) is Place.DISTRIBUTED_REGISTERS for n in loads)
    return per_thread * (chip.latencies.issue if own else chip.latencies.shared_load)


def _traffic(plan: GroupPlan, chip: Multiprocessor) -> Iterator[float]:
    """Bytes that each access moves, the unused parts of transactions included."""
    outer = plan.order[-1] if plan.order else None
    times = float(prod(loop.var.extent for loop in plan.outer))
    yield from _moved(plan.body, plan, chip, outer, times, False)
    for buffer in plan.copied:
        yield float(plan.blocks * buffer.nbytes)


def _moved(
    nodes: list[Node],
    plan: GroupPlan,
    chip: Multiprocessor,
    var: Var | None,
    times: float,
    inside: bool,
) -> Iterator[float]:
    for node in nodes:
        if isinstance(node, For):
            distributed = None if inside else plan.distributed.get(node)
            if distributed is None:
                yield from _moved(node.body, plan, chip, var, times * max(node.trips, 1), inside)
                continue
            fastest = var if plan.strided else distributed.order[-1]
            count = times
            for loop in distributed.loops:
                count *= max(loop.trips, 1)
            yield from _moved(distributed.body, plan, chip, fastest, count, True)
        elif isinstance(node, Access) and not node.atomic:
            # How long atomic updates take is not predicted.
            row = plan.rows.get(node)
            if row is not None and node is not row.stands_at:
                continue
            width = 1 if row is None else row.width
            if node.buffer in plan.copied:
                yield times * CACHE_BYTES_PER_SHARED_BYTE * node.buffer.bytes_per_element
            elif node.buffer in plan.places:
                yield times * _held(node.buffer, plan)
            elif plan.group > 1 and not inside and not plan.strided:
                # One address for every warp of the group.
                yield times * chip.sector * -(-plan.group // plan.warp)
            elif _near(node, plan, chip):
                yield times * STREAMED_SHARE * width * node.buffer.bytes_per_element
            else:
                neighbours = plan.groups if plan.strided else chip.warp
                yield times * _part(node, var, chip, neighbours, width)


def _held(buffer: Buffer, plan: GroupPlan) -> float:
    """Bytes of the main memory's caches that an access of a local buffer stands for."""
    if plan.places[buffer] is Place.DISTRIBUTED_REGISTERS:
        return 0.0
    if plan.places[buffer] is Place.SHARED:
        return CACHE_BYTES_PER_SHARED_BYTE * buffer.bytes_per_element
    return buffer.bytes_per_element if buffer.numel > 16 else 0.0


def _near(node: Access, plan: GroupPlan, chip: Multiprocessor) -> bool:
    """Whether all outer iterations touch the same elements, which stay near."""
    if not isinstance(node, Load) or node.buffer.nbytes > chip.cache:
        return False
    return not any(v in plan.order for e in node.index for v in e.variables())


def _of_warp(node: AffineAccess, var: Var, sector: int, warp: int) -> float:
    """The same where a step along ``var`` is not always as long: by the sectors of some warps."""
    size, place = node.buffer.bytes_per_element, address(node.buffer, node.index)
    values = {v: v.extent // 2 for v in place.variables()}
    count = min(warp, var.extent)
    starts = (0, (var.extent - count) // 2)
    touched = 0
    for start in starts:
        offsets = (place.evaluate(values | {var: start + lane}) for lane in range(count))
        touched += len({offset * size // sector for offset in offsets})
    return touched * sector / (count * len(starts))


def _part(
    node: Access, var: Var | None, chip: Multiprocessor, neighbours: int, width: int = 1
) -> float:
    """Bytes moved for one thread's access.

    Args:
        node: the access.
        var: along which neighbours move.
        chip: moves whole sectors.
        neighbours: threads side by side, those of a warp or a part of them.
        width: elements of the access.
    """
    size, lanes = node.buffer.bytes_per_element * width, min(chip.warp, neighbours)
    sector = max(chip.sector, size)
    if not isinstance(node, AffineAccess):
        return float(min(sector, 2 * size))
    stride = None if var is None else stride_along(node.buffer, node.index, var)
    if stride is None:
        return float(sector) if var is None else _of_warp(node, var, sector, lanes)
    apart = abs(stride) * node.buffer.bytes_per_element
    return float(min(sector, max(apart, size / lanes, sector / lanes)))
