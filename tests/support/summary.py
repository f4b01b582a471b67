"""What several runs of pytest come to: one count of outcomes, and the tests that failed."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterable

_COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)\b")
_FAILED = re.compile(r"^(?:FAILED|ERROR) .*$", re.MULTILINE)
#: Statuses with which pytest says itself what was wrong with tests: all passed, some failed, none
#: were selected.
_TOLD = {0, 1, 5}


def summary(runs: Iterable[tuple[str, int, str]]) -> str:
    """Lines for the end of several runs.

    Args:
        runs: of each, its name, its exit status and its output.
    """
    counts: Counter[str] = Counter()
    failed: list[str] = []
    for name, status, output in runs:
        last = output.rstrip().rpartition("\n")[2]
        for number, outcome in _COUNT.findall(last):
            counts[outcome.removesuffix("s") if outcome == "errors" else outcome] += int(number)
        failed += _FAILED.findall(output)
        if status not in _TOLD:
            failed.append(f"{name} ended early: {_reason(status)}")
    told = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
    return "\n".join([*failed, told or "no tests ran"])


def _reason(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
