"""Whether consumers compute elements anew: against a cache, and against memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, prod

from polyblocks.affine.analysis.reductions import EXTENSIONS, INTEGER_EXTENSIONS
from polyblocks.affine.cost.block_room import room_of_tile
from polyblocks.affine.element import I1, dtype_of
from polyblocks.affine.fusion.recomputing import against_memory
from polyblocks.affine.model import (
    AnyLoad,
    For,
    IndirectLoad,
    Load,
    Node,
    Op,
    walk,
    walk_with_trips,
)
from polyblocks.affine.ops import constant_number
from polyblocks.affine.rewrites.inlining import Candidate, Producer
from polyblocks.affine.rewrites.run_time_places import gathers, known_exprs
from polyblocks.affine.rewrites.simplify import (
    need_not_round,
)
from polyblocks.affine.tiles.fusion_stages import slots
from polyblocks.target import TargetDescription

#: Whether elements cost less computed ``times`` times than stored, and the numbers that say so.
Weigh = Callable[[Candidate, Producer, int, TargetDescription], tuple[bool, dict[str, float]]]


def against_cache(
    candidate: Candidate, producer: Producer, times: int, target: TargetDescription
) -> tuple[bool, dict[str, float]]:
    """Whether computing an element anew for each read costs less than a cache does."""
    if target.has_register_tiles and masks_scores(candidate, producer):
        # Loops get bounds from it, in which it is seldom computed.
        return True, {}
    reads_ = times / max(candidate.buffer.numel, 1)
    # A load extends integers by itself, and steps of a unit have narrow operands.
    free = EXTENSIONS if target.extends_floats_freely else INTEGER_EXTENSIONS
    work = [
        n
        for n in producer.body
        if getattr(n, "name", "") not in free and not is_needless(n, target)
    ]
    body = slots(work)
    found, more = gathered(candidate, producer, target)
    anew = reads_ * body + found + more
    if _loads_are_there(candidate, producer):
        anew = reads_ * slots([n for n in work if not isinstance(n, Load)])
    # Computed once, stored, and loaded at every read.
    stored = body + 2.0 + reads_ + found
    numbers = {"slots_anew": anew, "slots_stored": stored}
    if anew > stored and (found or not _fits_tile(candidate, target)):
        # No tile holds what is read at run-time places, or is too long: it goes through memory.
        seconds = against_memory(candidate, producer, times, more, target)
        if seconds is not None:
            numbers |= seconds
            return seconds["recompute_seconds"] <= seconds["traffic_seconds"], numbers
    return anew <= stored, numbers


def masks_scores(candidate: Candidate, producer: Producer) -> bool:
    """Whether it takes nothing but indices to know where scores become minus infinity.

    A condition says it to all consumers, or the elements are minus infinity themselves.
    """
    if any(isinstance(n, AnyLoad) for n in producer.body):
        return False
    if dtype_of(candidate.buffer.element) == I1:
        return all(any(_gives_lowest(c.body)) for c in candidate.consumers)
    return any(_gives_lowest(producer.body))


def _gives_lowest(nodes: list[Node]) -> Iterator[bool]:
    """For each choice in code, whether minus infinity is chosen from."""
    found = list(walk(nodes))
    lowest = {v for n in found if constant_number(n) == -inf for v in n.defines}
    for node in found:
        if isinstance(node, Op) and node.name == "arith.select":
            yield not lowest.isdisjoint(node.operands)


def against_traffic(
    candidate: Candidate, producer: Producer, times: int, target: TargetDescription
) -> tuple[bool, dict[str, float]]:
    """Whether computing an element anew costs less than the way through memory.

    As :func:`against_cache` on a target whose description lacks a rate for that.
    """
    _, more = gathered(candidate, producer, target)
    numbers = against_memory(candidate, producer, times, more, target)
    if numbers is None:
        return against_cache(candidate, producer, times, target)
    if target.launches_nests and not _read_in_steps(candidate):
        numbers["launch_seconds"] = target.shared_level.overhead
    saved = numbers["traffic_seconds"] + numbers.get("launch_seconds", 0.0)
    return numbers["recompute_seconds"] <= saved, numbers


def gathered(
    candidate: Candidate, producer: Producer, target: TargetDescription
) -> tuple[float, float]:
    """Slots of the gathers of a buffer, for each of its elements, and of more of them anew."""
    # Each lane of a vector loads by itself.
    lanes = target.lanes
    numel = max(candidate.buffer.numel, 1)
    times = more = 0
    for consumer in candidate.consumers:
        if not gathers(consumer.touching(candidate.buffer), candidate.buffer):
            continue
        exprs = known_exprs(consumer.body)
        for gather, trips in walk_with_trips(consumer.body):
            if isinstance(gather, IndirectLoad) and gather.buffer is candidate.buffer:
                body, _ = producer.body_at_gather(gather, exprs) or ([], None)
                times += trips
                more += trips * (sum(isinstance(n, IndirectLoad) for n in body) - 1)
    return times * lanes / numel, more * lanes / numel


def is_needless(node: Node, target: TargetDescription) -> bool:
    """Whether a rounding is not the program's, and no unit multiplies what is rounded."""
    if not isinstance(node, Op) or not need_not_round(node):
        return False
    dtype = dtype_of(node.results[0].type).array
    return not any(dtype in unit.both for unit in target.matrix_units)


def _fits_tile(candidate: Candidate, target: TargetDescription) -> bool:
    """Whether a tile has room for the elements that each reduction of a consumer reads."""
    chip = target.multiprocessor
    if chip is None:
        return True
    buffer = candidate.buffer
    for consumer in candidate.consumers:
        for loop in walk(consumer.body):
            if not isinstance(loop, For) or not loop.inits:
                continue
            inner = {loop.var} | {n.var for n in walk(loop.body) if isinstance(n, For)}
            for load in (n for n in walk(loop.body) if isinstance(n, Load) and n.buffer is buffer):
                moving = [bool(inner & set(e.variables())) for e in load.index]
                read = prod(n for n, moves in zip(buffer.shape, moving, strict=True) if moves)
                # Columns go together, as many as memory moves at once.
                width = buffer.bytes_per_element if moving[-1:] == [True] else chip.sector
                if read * width > room_of_tile(chip):
                    return False
    return True


def _loads_are_there(candidate: Candidate, producer: Producer) -> bool:
    """Whether all consumers load already what the producer's code would load in them."""
    loads = [n for n in producer.body if isinstance(n, Load)]
    loaded = {n.buffer.base for n in loads}
    for consumer in candidate.consumers:
        there = {
            (n.buffer, n.index, n.where)
            for base in loaded
            for n in consumer.touching(base)
            if isinstance(n, Load)
        }
        for node in consumer.touching(candidate.buffer):
            if isinstance(node, Load) and node.buffer is candidate.buffer:
                at = producer.iteration(node.index)
                for load in loads:
                    index, where = (
                        tuple([e.substitute(at) for e in exprs])
                        for exprs in (load.index, load.where)
                    )
                    if (load.buffer, index, where) not in there:
                        return False
            elif isinstance(node, IndirectLoad) and node.buffer is candidate.buffer:
                return False
    return True


def _read_in_steps(candidate: Candidate) -> bool:
    """Whether steps of a reduction read the buffer."""
    return any(
        isinstance(n, Load) and n.buffer is candidate.buffer
        for consumer in candidate.consumers
        for loop in walk(consumer.body)
        if isinstance(loop, For) and loop.inits
        for n in walk(loop.body)
    )
