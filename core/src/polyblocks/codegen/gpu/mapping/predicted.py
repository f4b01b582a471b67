"""What a way to run a nest is predicted to take."""

from __future__ import annotations

from dataclasses import dataclass

#: The rate of the last cache over that of the main memory, where it is not known.
CACHE_RATE = 2.5


@dataclass(frozen=True)
class Predicted:
    """Seconds that a choice takes, and where they come from; they overlap."""

    memory: float
    compute: float
    latency: float

    @property
    def seconds(self) -> float:
        """The bottleneck's time, and a part of the others'."""
        parts = (self.memory, self.compute, self.latency)
        return max(parts) + 0.2 * (sum(parts) - max(parts))
