"""What it costs that iterations of a loop load again what those before them have loaded."""

from __future__ import annotations

from math import prod

from polyblocks.affine.cost import rates
from polyblocks.affine.expr import Var
from polyblocks.affine.model import Buffer, Load, Node
from polyblocks.target import TargetDescription

Box = tuple[tuple[int, int], ...]


def returning_slots(body: list[Node], loop: Var, lanes: Var, target: TargetDescription) -> float:
    """Slots of vectors in which a body waits for what a loop around it brings back.

    What it loads of a tile's buffers is the same in every iteration of the loop. If that is more
    than the fastest cache keeps until the next iteration, it comes from a slower one, as fast as
    that is described to be.

    Args:
        body: straight-line code.
        loop: the variable of the loop, with other loops between it and the body.
        lanes: the variable of the innermost loop.
        target: whose caches.
    """
    lane_rate = rates.lane_rate(target)
    loads: set[tuple[Buffer, Box]] = set()
    boxes: dict[Buffer, Box] = {}
    for node in body:
        if not isinstance(node, Load) or node.buffer.kind != "local":
            continue
        moving = {v for e in node.index for v in e.variables()}
        if loop in moving or lanes not in moving:
            continue
        box = tuple(e.range() for e in node.index)
        loads.add((node.buffer, box))
        before = boxes.get(node.buffer, box)
        pairs = zip(box, before, strict=True)
        boxes[node.buffer] = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs)
    nbytes = sum(
        buffer.bytes_per_element * prod(high - low + 1 for low, high in box)
        for buffer, box in boxes.items()
    )
    level = next((m for m in target.memory if not m.size or 2 * nbytes <= m.size), None)
    if not loads or level is None or level is target.memory[0] or lane_rate is None:
        return 0.0
    threads = max(target.shared_level.size, 1)
    bandwidth = rates.bandwidth(target, level, threads)
    vector = target.vector_bits // 8
    # In the time of a slot every thread does the operations of a vector's lanes.
    slot = threads * (vector // 4) / lane_rate
    return 0.0 if bandwidth is None else len(loads) * threads * vector / bandwidth / slot
