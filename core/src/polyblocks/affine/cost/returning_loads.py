"""Cost of reloading data evicted between iterations."""

from __future__ import annotations

from math import prod

from polyblocks.affine.cost import rates
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Load, Node
from polyblocks.target import TargetDescription

Box = tuple[tuple[int, int], ...]


def returning_slots(body: list[Node], loop: Var, lanes: Var, target: TargetDescription) -> float:
    """Slots of vectors in which a body waits for what a loop around it brings back.

    Every iteration of the loop loads the same elements of a tile's buffers. If these are more than
    the fastest cache keeps until the next iteration, they come from a slower one, at its described
    bandwidth.

    Args:
        body: straight-line code.
        loop: the variable of the loop, with other loops between it and the body.
        lanes: the variable of the innermost loop.
        target: whose caches.
    """
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
    return len(loads) * _slots_of_line(2 * nbytes, target)


def window_slots(
    body: list[Node],
    loops: list[Var],
    lanes: Var,
    jammed: Var,
    factor: int,
    target: TargetDescription,
) -> float:
    """Slots of vectors in which a body waits for what windows along loops around it read again.

    A window along a loop reads most of its slices again in the next iteration. If all of them are
    more than the fastest cache keeps until then, they come from a slower one, as fast as that is
    described to be. Iterations in one read together what only the outermost of them do not share,
    and windows along the loops inside are as many times as large.

    Args:
        body: straight-line code of one iteration.
        loops: the variables of the loops around the innermost one, from the outside in.
        lanes: the variable of the innermost one.
        jammed: the one of ``loops`` that is jammed.
        factor: how many.
        target: whose caches.

    Returns:
        The slots of ``factor`` iterations.
    """
    slots = 0.0
    for position, loop in enumerate(loops):
        within = {*loops[position + 1 :], lanes}
        found = _windows(body, loop, within)
        nbytes = lines = 0
        for step, slices, of_slice in found:
            if loop is jammed:
                count = len({s + step * k for s in slices for k in range(factor)})
                nbytes, lines = nbytes + count * of_slice, lines + count
            else:
                times = 1 if jammed in within else factor
                nbytes += times * len(slices) * of_slice
                lines += factor * len(slices)
        slots += lines * _slots_of_line(nbytes, target)
    return slots


def _windows(body: list[Node], loop: Var, within: set[Var]) -> list[tuple[int, set[int], int]]:
    """The windows along a loop: its steps, where its slices are, and the bytes of one.

    A slice is what the loops inside walk, ``within``, with the others where they are.
    """
    windows: dict[tuple[Buffer, int, tuple[object, ...]], tuple[int, set[int], int]] = {}
    for node in body:
        if not isinstance(node, Load):
            continue
        moving = [d for d, e in enumerate(node.index) if e.depends_on(loop)]
        if len(moving) != 1:
            continue
        place = node.index[moving[0]]
        step = place.coefficient(loop)
        if not step:
            continue
        ranges = [
            e.substitute({v: Expr(0) for v in e.variables() if v not in within}).range()
            for d, e in enumerate(node.index)
            if d != moving[0]
        ]
        nbytes = node.buffer.bytes_per_element * prod(high - low + 1 for low, high in ranges)
        key = node.buffer, moving[0], place.terms
        _, slices, most = windows.setdefault(key, (step, set(), 0))
        slices.add(place.const)
        windows[key] = step, slices, max(most, nbytes)
    return [window for window in windows.values() if len(window[1]) > 1]


def _slots_of_line(nbytes: int, target: TargetDescription) -> float:
    """Issue slots of a vector reloaded after ``nbytes`` bytes; 0 from the fastest cache."""
    level = next((m for m in target.memory if not m.size or nbytes <= m.size), None)
    lane_rate = rates.lane_rate(target)
    if level is None or level is target.memory[0] or lane_rate is None:
        return 0.0
    threads = max(target.shared_level.size, 1)
    bandwidth = rates.bandwidth(target, level, threads)
    vector = target.vector_bits // 8
    # In the time of a slot every thread does the operations of a vector's lanes.
    slot = threads * (vector // 4) / lane_rate
    return 0.0 if bandwidth is None else threads * vector / bandwidth / slot
