"""Rows that threads walk: every bank free for a warp, and whole transactions with the memory."""

from __future__ import annotations

from functools import cache
from math import gcd

from polyblocks.affine.access import address, stride_along
from polyblocks.affine.gpu.mapping.placement import elements_per_thread
from polyblocks.affine.gpu.plans.groups import DistributedLoop, GroupPlan, Place
from polyblocks.affine.model import AffineAccess, Buffer

#: Iterations that may be counted for each one that is done.
MOST_IDLE = 1.35


def padded_shape(plan: GroupPlan, buffer: Buffer, banks: int = 32) -> list[int]:
    """The shape of a shared buffer: its last dimension is one longer where that helps.

    It does if neighbouring threads walk along another dimension than the last one, and rows begin
    in a few of the banks only.
    """
    shape = list(buffer.shape)
    if len(shape) < 2 or plan.places.get(buffer) is not Place.SHARED:
        return shape
    if conflicts(plan, buffer, shape, banks) > conflicts(
        plan, buffer, [*shape[:-1], shape[-1] + 1], banks
    ):
        shape[-1] += 1
    return shape


def conflicts(plan: GroupPlan, buffer: Buffer, shape: list[int], banks: int = 32) -> int:
    """Turns that the worst access of a warp takes, with rows as long as ``shape`` says."""
    probe = Buffer(
        tuple(shape), buffer.element, buffer.kind, bytes_per_element=buffer.bytes_per_element
    )
    words = max(buffer.bytes_per_element // 4, 1)
    worst = 1
    for distributed in plan.distributed.values():
        fastest = next((v for v in reversed(distributed.order) if v.extent > 1), None)
        if fastest is None:
            continue
        # Accesses that differ by a constant, as in stencils, have the same strides.
        ways = {
            tuple(expr.terms for expr in node.index): node.index
            for node in distributed.body
            if isinstance(node, AffineAccess) and node.buffer is buffer
        }
        for index in ways.values():
            stride = stride_along(probe, index, fastest)
            if stride:
                worst = max(worst, min(gcd(stride * words, banks), fastest.extent))
    return worst


def pitch_rows(plan: GroupPlan, sector: int) -> None:
    """Let threads step over the ends of rows as memory does.

    If a loop's rows are shorter than those of the buffers in shared memory that it walks, a warp
    at the end of a row would find the beginning of the next one in banks that it already uses. So
    the iterations are counted with rows as long as the buffer's, where not too many are idle then.
    Where rows lie in the main memory, they are counted from the beginning of a transaction of
    ``sector`` bytes to the end of one, so that no two warps need the same.
    """
    length_of = cache(lambda buffer: padded_shape(plan, buffer)[-1])
    for distributed in plan.distributed.values():
        distributed.pitch = distributed.lead = 0
        if distributed.combiners or len(distributed.order) < 2 or distributed.width > 1:
            continue
        accesses = [n for n in distributed.body if isinstance(n, AffineAccess)]
        last = distributed.order[-1]
        rows = {
            length_of(n.buffer)
            for n in accesses
            if plan.places.get(n.buffer) is Place.SHARED
            and len(n.buffer.shape) > 1
            and n.index[-1].coefficient(last) == 1
        }
        longer = [row for row in rows if last.extent < row <= last.extent * MOST_IDLE]
        if longer and last.extent % plan.warp:
            distributed.pitch = max(longer)
        ends = _transactions(plan, distributed, sector)
        if ends is not None and ends[1] <= last.extent * MOST_IDLE:
            distributed.lead, distributed.pitch = ends
    _keep_owners(plan)


def _transactions(
    plan: GroupPlan, distributed: DistributedLoop, sector: int
) -> tuple[int, int] | None:
    """Iterations before a row that begins inside a transaction, and how many are counted.

    None if rows do not begin alike, or begin and end with transactions.
    """
    last = distributed.order[-1]
    begins: set[tuple[int, int]] = set()
    for node in distributed.body:
        if not isinstance(node, AffineAccess) or node.buffer in plan.places:
            continue
        place = address(node.buffer, node.index)
        unit = sector // node.buffer.bytes_per_element
        if place.coefficient(last) != 1:
            continue
        others = [c for atom, c in place.terms if atom is not last]
        if unit < 2 or any(c % unit for c in others):
            return None
        begins.add((place.const % unit, unit))
    if len(begins) != 1:
        return None
    ((lead, unit),) = begins
    pitch = -(-(lead + last.extent) // unit) * unit
    return (lead, pitch) if pitch > last.extent else None


def _keep_owners(plan: GroupPlan) -> None:
    """Count all loops in the old way that would not give elements to the threads that keep them."""
    own = [b for b, place in plan.places.items() if place is Place.DISTRIBUTED_REGISTERS]
    for _ in own:
        for buffer in own:
            loops = [
                distributed
                for distributed in plan.distributed.values()
                if any(isinstance(n, AffineAccess) and n.buffer is buffer for n in distributed.body)
            ]
            if any(s.pitch for s in loops) and not elements_per_thread(
                plan, list(plan.uniform()), buffer
            ):
                for distributed in loops:
                    distributed.pitch = distributed.lead = 0
