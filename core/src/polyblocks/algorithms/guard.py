"""The guard: an operation that would take too long beside the framework's own falls back.

Algorithms differ in how many operations they need, and these counts are known. A time is such a
count over the rate at which an implementation does it.
"""

from __future__ import annotations

from dataclasses import dataclass

#: How many times as long as the framework's own algorithm an operation may take.
MOST_TIMES = 3.0


@dataclass(frozen=True)
class Prediction:
    """Predicted times of an operation, in seconds.

    Attributes:
        algorithm: name of the compiled algorithm, in the plural.
        compiled: what it takes.
        framework: what the framework's own algorithm takes.
    """

    algorithm: str
    compiled: float
    framework: float

    def refusal(self) -> str | None:
        """Why the operation is left to the framework; None if it is not."""
        if self.compiled <= MOST_TIMES * self.framework:
            return None
        return (
            f"its {self.algorithm} would take about {duration(self.compiled)}, and the "
            f"framework's algorithm takes about {duration(self.framework)}"
        )


def duration(seconds: float) -> str:
    """A time of two digits with its unit: ``0.35 ms``, ``12 µs``."""
    factor, unit = (1e6, "µs") if seconds < 1e-4 else (1e3, "ms") if seconds < 1 else (1, "s")
    value = float(f"{seconds * factor:.2g}")
    return f"{value:g} {unit}"
