"""The few facts about a chip that executing and measuring a kernel needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """The simulator's model of a chip; a target fills it from its description.

    Attributes:
        name: for messages.
        subgroup_width: threads that run one instruction together (warp, wave).
        sector_bytes: unit of traffic with device memory.
        banks: number of shared-memory banks.
        bank_bytes: width of one bank.
        shared_bytes: most shared memory of one block; 0 is no limit.
        block_threads: most threads of one block.
        pointer_bytes: bytes of a pointer stored in memory, by address space; 8 where not named.
    """

    name: str = "generic"
    subgroup_width: int = 32
    sector_bytes: int = 32
    banks: int = 32
    bank_bytes: int = 4
    shared_bytes: int = 0
    block_threads: int = 1024
    pointer_bytes: tuple[tuple[int, int], ...] = ()
