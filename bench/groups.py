"""The groups of cases: what one run measures, and what is asked of it as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench import contest, table
from bench.attention.table import CASES as ATTENTION
from bench.contractions.table import CASES as CONTRACTIONS
from bench.contractions.table import SQUARE
from bench.goals import Goal
from bench.pipelines import goals as pipeline_goals
from bench.pipelines.table import CASES as PIPELINES

Json = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Cases that are measured in one run.

    Attributes:
        cases: in the order of the tables.
        ending: of the names of its files.
        goals: of a whole run.
        turn_s: seconds of calls in a turn.
        decided: see :class:`bench.contest.Pace`.
    """

    cases: tuple[table.Case, ...]
    ending: str = ""
    goals: tuple[Goal, ...] = ()
    turn_s: float = contest.TURN_S
    decided: float = math.inf

    def pace(self, rounds: int) -> contest.Pace:
        """Of so many turns, and as many duels."""
        return contest.Pace(rounds, self.turn_s, duels=rounds, decided=self.decided)


def _of_square(cases: Sequence[Json], _: Json) -> float | None:
    """Percent of the multiply-add ceiling that the product of squares reaches."""
    for case in cases:
        if case["case"] == SQUARE.name and case["verdict"]["peak_share"]:
            return float(100 * case["verdict"]["peak_share"])
    return None


_CONTRACTION_GOALS = (
    Goal("geometric mean against the best peer", lambda _, s: s["geomean_best"], 1.0),
    Goal("geometric mean against Inductor", lambda _, s: s["geomean_inductor"], 1.8),
    Goal(f"{SQUARE.name} of the multiply-add ceiling", _of_square, 88.0, " %"),
)

#: By the names of the command line; the first one is the default.
GROUPS = {
    "memory": Group(table.CASES),
    "contractions": Group(
        CONTRACTIONS,
        "-contractions",
        _CONTRACTION_GOALS,
        turn_s=0.1,
        decided=3.0,
    ),
    "attention": Group(ATTENTION, "-attention", turn_s=0.1, decided=3.0),
    "pipelines": Group(PIPELINES, "-pipelines", pipeline_goals.GOALS, turn_s=0.1, decided=3.0),
}

#: Groups whose peers share a process, with the modules whose ``run`` takes a
#: :class:`bench.suites.Request`.
SUITES = {
    "calls": "bench.host_calls.run",
    "cliffs": "bench.cliffs.run",
    "keras": "bench.keras_models.run",
}
