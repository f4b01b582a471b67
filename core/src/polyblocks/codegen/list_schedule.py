"""An order of instructions in which none waits for long: list scheduling.

Gibbons, Muchnick: Efficient instruction scheduling for a pipelined architecture, 1986.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(frozen=True)
class Instruction:
    """One instruction, for the schedule.

    Attributes:
        needs: positions of the earlier ones whose results it reads, or that must come before it.
        latency: cycles until others can use its result.
        work: cycles that it keeps a unit busy.
    """

    needs: tuple[int, ...]
    latency: float
    work: float


def list_schedule(block: Sequence[Instruction], units: int) -> list[int]:
    """The positions of a block's instructions, in the order in which they would start.

    Of those that could start, the one goes first after which most is left to do, on the longest
    way to the end.

    Args:
        block: the instructions in an order that is right.
        units: that work at once, each on anything.
    """
    users: list[list[int]] = [[] for _ in block]
    for i, instruction in enumerate(block):
        for j in instruction.needs:
            users[j].append(i)
    left = [0.0] * len(block)
    for i in reversed(range(len(block))):
        left[i] = block[i].latency + max((left[j] for j in users[i]), default=0.0)

    missing = [len(instruction.needs) for instruction in block]
    start = [0.0] * len(block)
    waiting = [(0.0, i) for i, count in enumerate(missing) if count == 0]
    ready: list[tuple[float, int]] = []
    free = [0.0] * units
    order: list[tuple[float, int, int]] = []
    while waiting or ready:
        now = free[0] if ready else max(free[0], waiting[0][0])
        while waiting and waiting[0][0] <= now:
            _, i = heappop(waiting)
            heappush(ready, (-left[i], i))
        _, i = heappop(ready)
        begin = start[i]
        if block[i].work:
            begin = max(begin, heappop(free))
            heappush(free, begin + block[i].work)
        order.append((begin, len(order), i))
        for j in users[i]:
            start[j] = max(start[j], begin + block[i].latency)
            missing[j] -= 1
            if missing[j] == 0:
                heappush(waiting, (start[j], j))
    return [i for _, _, i in sorted(order)]


def peak_live_registers(
    block: Sequence[Instruction], order: Sequence[int], sizes: Sequence[int]
) -> int:
    """Registers of all results that are still needed, where these are most.

    Args:
        block: the instructions.
        order: their positions as they run.
        sizes: registers of the result of each.
    """
    uses = [0] * len(block)
    for instruction in block:
        for j in instruction.needs:
            uses[j] += 1
    alive = most = 0
    for i in order:
        alive += sizes[i]
        most = max(most, alive)
        for j in block[i].needs:
            uses[j] -= 1
            if uses[j] == 0:
                alive -= sizes[j]
        if uses[i] == 0:
            alive -= sizes[i]
    return most
