"""What is asked of a run as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """What is asked of a whole run.

    Attributes:
        name: what is measured.
        value: takes the cases and :func:`bench.verdict.summary`; None if it was not measured.
        least: that it is to be.
        unit: behind the number.
    """

    name: str
    value: Callable[[Sequence[Json], Json], float | None]
    least: float
    unit: str = "×"

    def judged(self, cases: Sequence[Json], summary: Json) -> Json:
        """In JSON values."""
        return {
            "goal": self.name,
            "value": self.value(cases, summary),
            "least": self.least,
            "unit": self.unit,
        }
