"""Outcomes of several runs of pytest: status, counts of all of them, and the tests that failed."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

#: The line in which pytest counts outcomes; what libraries print at exit may come behind it.
_RESULT = re.compile(
    r"^(?:=+ )?(no tests ran|\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s", re.MULTILINE
)
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)\b")
_FAILED = re.compile(r"^(?:FAILED|ERROR) .*$", re.MULTILINE)
#: Statuses of pytest where all tests passed, and where none was selected.
PASSED, NO_TESTS = 0, 5
#: With a test that failed.
FAILED = 1


@dataclass(frozen=True)
class Run:
    """One run of pytest.

    Attributes:
        name: of the run.
        status: with which its process ended; less than 0 for a signal.
        output: what it printed.
    """

    name: str
    status: int
    output: str

    @property
    def result(self) -> str:
        """The counts that pytest printed last; empty if it did not come to that."""
        found = _RESULT.findall(self.output)
        return str(found[-1]) if found else ""

    @property
    def ended_early(self) -> bool:
        """Whether it ended without pytest's word on its tests."""
        return not self.result or self.status not in (PASSED, FAILED, NO_TESTS)


def exit_status(runs: Iterable[Run]) -> int:
    """0 if all tests that were selected passed, 5 if none was selected, else another number."""
    runs = list(runs)
    if any(run.ended_early or run.status == FAILED for run in runs):
        # Statuses of pytest that say more than 1 does.
        worse = [run.status for run in runs if run.status not in (PASSED, NO_TESTS)]
        return max([FAILED, *worse])
    return PASSED if any(run.status == PASSED for run in runs) else NO_TESTS


def summary(runs: Iterable[Run]) -> str:
    """Lines for the end of several runs."""
    counts: Counter[str] = Counter()
    failed: list[str] = []
    for run in runs:
        for number, outcome in _COUNT.findall(run.result):
            counts["errors" if outcome == "error" else outcome] += int(number)
        failed += _FAILED.findall(run.output)
        if run.ended_early:
            failed.append(f"{run.name} ended early: {_reason(run.status)}")
    told = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
    return "\n".join([*failed, told or "no tests ran"])


def _reason(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
