"""What is asked of all image pipelines and simulations together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bench.engines import OURS
from bench.goals import Goal
from bench.pipelines.table import SPELLINGS

Json = dict[str, Any]

#: How many times as long as predicted, or as short, and as another spelling's time, is near.
NEAR = 1.3

#: Seconds in which a row is to be compiled, on top of a backend that does nothing.
COMPILE_S = 1.0


def _part(values: Sequence[bool]) -> float | None:
    return 100 * sum(values) / len(values) if values else None


def predicted(cases: Sequence[Json], _: Json) -> float | None:
    """Percent of the predicted rows that take about as long as predicted."""
    found = [x for case in cases if (x := case["verdict"]["misprediction"]) is not None]
    return _part([x <= NEAR for x in found])


def compiled(cases: Sequence[Json], _: Json) -> float | None:
    """Percent of the rows that are compiled in time."""
    found = [x for case in cases if (x := case["verdict"]["compile"]) is not None]
    return _part([x <= COMPILE_S for x in found])


def met(_: Sequence[Json], summary: Json) -> float | None:
    """Percent of the judged rows that meet their bars."""
    judged = summary["rows_judged"]
    return 100 * summary["rows_met"] / judged if judged else None


def alike(cases: Sequence[str]) -> Callable[[Sequence[Json], Json], float | None]:
    """Time of the faster spelling of a computation over that of the slower one.

    Args:
        cases: their names.
    """

    def value(measured: Sequence[Json], _: Json) -> float | None:
        times = [
            row["minimum"]
            for case in measured
            if case["case"] in cases
            for row in case["peers"]
            if row["peer"] == OURS and "minimum" in row
        ]
        return min(times) / max(times) if len(times) == len(cases) else None

    return value


GOALS = (
    Goal("rows that meet their bars", met, 80.0, " %"),
    *(
        Goal(f"{name}: the faster spelling over the slower one", alike(cases), 1 / NEAR)
        for name, cases in SPELLINGS.items()
    ),
    Goal(f"rows predicted within {NEAR}×", predicted, 80.0, " %"),
    Goal(f"rows compiled within {COMPILE_S:.0f} s", compiled, 100.0, " %"),
)
