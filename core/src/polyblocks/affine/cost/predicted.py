"""The seconds that a way to run a nest is predicted to take, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from polyblocks.affine.cost import rates


@dataclass(frozen=True)
class Predicted:
    """Seconds that a choice takes, and where they come from; they overlap.

    Attributes:
        memory: of the memory behind the multiprocessors.
        compute: of the vector units and what feeds them.
        latency: of waiting.

    None is unknown: the target's description lacks a rate, see
    :func:`polyblocks.affine.cost.rates.unknown_rates`.
    """

    memory: float | None
    compute: float | None
    latency: float | None

    @property
    def seconds(self) -> float:
        """The key of comparisons: the bottleneck's time plus a part of all other times.

        Unknown times count as zero; the prediction is from :meth:`numbers`.
        """
        parts = [s for s in (self.memory, self.compute, self.latency) if s is not None]
        return rates.overlapped(*parts) if parts else 0.0

    @property
    def bottleneck(self) -> float:
        """The longest of all times: the least that it takes, as if that hid all others."""
        return max(
            (s for s in (self.memory, self.compute, self.latency) if s is not None), default=0
        )

    def numbers(self) -> dict[str, float | None]:
        """The prediction and its parts, for decisions and reports; None for what is unknown."""
        parts = {
            "memory_seconds": self.memory,
            "compute_seconds": self.compute,
            "latency_seconds": self.latency,
        }
        return {"predicted_seconds": None if None in parts.values() else self.seconds, **parts}


#: Of what cannot run at all.
IMPOSSIBLE = Predicted(inf, inf, inf)
