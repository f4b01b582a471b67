"""Reciprocal throughputs of a core and its caches, in multiply-adds of one vector."""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import (
    LOADS_PER_MULTIPLY_ADD,
    MULTIPLY_ADDS_IN_FLIGHT,
    PRIVATE_BYTES,
)
from polyblocks.target import MatrixUnit, MemoryLevel, TargetDescription


@dataclass(frozen=True)
class CoreTimes:
    """A core's times for one program of one element size; 0 where a rate is unknown.

    Attributes:
        seconds: of one multiply-add of a vector, or of the unit's; None if the rate is unknown.
        unit_rate: the unit's multiply-add rate over that of vectors; 1 without a unit.
        in_flight: multiply-adds that cover the latency of one.
        load: a load of one element that hits the first cache.
        vector_load: the same of a vector.
        l2_load: a vector from the second cache.
        shared_load: a vector from the cache that threads share, by all of them at once.
        start: starting the threads.
        l1: the first cache.
        l2_bytes: size of the largest private cache.
    """

    seconds: float | None
    unit_rate: float
    in_flight: int
    load: float
    vector_load: float
    l2_load: float
    shared_load: float
    start: float
    l1: MemoryLevel
    l2_bytes: int

    @classmethod
    def of(
        cls, target: TargetDescription, unit: MatrixUnit | None, width: int, threads: int
    ) -> CoreTimes:
        """The times of a target's cores.

        Args:
            target: the chip.
            unit: that multiplies, if vectors do not.
            width: lanes of one vector.
            threads: that work at once.
        """
        rate = rates.lane_rate(target)
        seconds = None if rate is None else target.shared_level.size * width / rate
        in_flight = target.multiply_adds_in_flight or MULTIPLY_ADDS_IN_FLIGHT
        load = 1 / (target.loads_per_multiply_add or LOADS_PER_MULTIPLY_ADD)
        unit_rate = 1.0
        if unit is not None:
            in_flight = unit.in_flight or in_flight
            if seconds is not None and rate is not None and unit.flops:
                unit_rate = unit.flops / (2 * unit.in_a_word) / rate
                seconds /= unit_rate
            load *= unit_rate
        l1, vector = target.memory[0], target.vector_bits // 8
        private = [level for level in target.memory if level.size and level.shared_by == 1]
        l2_load = transfer_time(seconds, private[1], vector) if len(private) > 1 else 0.0
        shared = next((level for level in target.memory if level.shared_by > 1), None)
        shared_load = transfer_time(seconds, shared, vector * threads) if shared else 0.0
        start = 0.0
        if seconds is not None and l1.bandwidth:
            start = target.shared_level.overhead / seconds
        return cls(
            seconds=seconds,
            unit_rate=unit_rate,
            in_flight=in_flight,
            load=load,
            # The first cache may take longer for a vector than for an element.
            vector_load=max(load, transfer_time(seconds, l1, vector)),
            l2_load=l2_load,
            shared_load=max(l2_load, shared_load),
            start=start,
            l1=l1,
            l2_bytes=rates.private_cache(target) or PRIVATE_BYTES,
        )


def transfer_time(seconds: float | None, level: MemoryLevel, nbytes: int) -> float:
    """Time of bytes from a memory level; 0 if unknown.

    Args:
        seconds: of one multiply-add of a vector, see :class:`CoreTimes`.
        level: that they come from.
        nbytes: of all that share the level's bandwidth.
    """
    if seconds is None or not level.bandwidth:
        return 0.0
    return nbytes / level.bandwidth / seconds
