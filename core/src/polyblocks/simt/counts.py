"""Counts of a launch."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass
class Counts:
    """Counts of one launch. "Thread" counts go per active thread and vector element.

    Attributes:
        instructions: by kind: ``integer``, ``f32``, ``fma.f32``, ``conversion``, ``memory``,
            ``control``, ``special``, ``shuffle``, ``atomic`` …
        global_loaded, global_stored: bytes that threads asked for in global memory. An atomic is
            both.
        shared_loaded, shared_stored: the same in shared memory.
        private_loaded, private_stored: the same in private memory.
        global_read_floor, global_write_floor: bytes of the sectors that were touched, each
            counted once: what device memory must move at least.
        global_accesses: subgroup instructions on global memory.
        sectors: sectors that the accesses to global memory used, per subgroup instruction.
        ideal_sectors: the fewest that could have held the bytes asked for.
        shared_accesses: subgroup instructions on shared memory, in phases of one cycle without
            conflicts.
        bank_conflicts: cycles more than that.
        barriers: barriers passed, per block.
        steps: basic blocks run, per group of threads that ran them together.
    """

    instructions: dict[str, int] = field(default_factory=dict)
    global_loaded: int = 0
    global_stored: int = 0
    shared_loaded: int = 0
    shared_stored: int = 0
    private_loaded: int = 0
    private_stored: int = 0
    global_read_floor: int = 0
    global_write_floor: int = 0
    global_accesses: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    shared_accesses: int = 0
    bank_conflicts: int = 0
    barriers: int = 0
    steps: int = 0

    @property
    def global_floor(self) -> int:
        """Bytes that device memory must move at least, both ways."""
        return self.global_read_floor + self.global_write_floor

    @property
    def coalescing(self) -> float:
        """Sectors used over the fewest possible; 1 is perfect."""
        return self.sectors / self.ideal_sectors if self.ideal_sectors else 1.0

    def add(self, other: Counts, times: float = 1.0) -> None:
        """Add the counts of other blocks, times a factor, rounded."""
        for kind, number in other.instructions.items():
            self.instructions[kind] = self.instructions.get(kind, 0) + round(number * times)
        for row in fields(self):
            if row.name != "instructions":
                more = round(getattr(other, row.name) * times)
                setattr(self, row.name, getattr(self, row.name) + more)
