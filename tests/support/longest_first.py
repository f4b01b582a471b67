"""Files of tests that take long begin first, so that no process is left with one at the end."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

#: File of tests -> seconds that it took, relative to each other; see docs/contributing.md.
DURATIONS = Path(__file__).parents[1] / "durations.json"
#: Seconds of a test in a file that is not there.
GUESS = 0.2


def sort_by_duration(items: list[pytest.Item], durations: dict[str, float]) -> None:
    """Put the tests of the longest file first; those of one file keep their order."""
    seconds: dict[str, float] = defaultdict(float)
    for item in items:
        seconds[file_of(item.nodeid)] += GUESS
    seconds |= {file: durations[file] for file in seconds.keys() & durations.keys()}
    items.sort(key=lambda item: (-seconds[file_of(item.nodeid)], file_of(item.nodeid)))


def file_of(nodeid: str) -> str:
    """The file of a test, relative to the root."""
    return nodeid.partition("::")[0]


class Recorder:
    """Adds up what the tests of each file take, and writes it at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        found = {file: round(s, 1) for file, s in sorted(self.seconds.items()) if s >= 0.5}
        self.path.write_text(json.dumps(found, indent=0) + "\n")


def register(config: pytest.Config) -> None:
    """Record durations where the user asks for it; in the process that sees all reports."""
    path = os.environ.get("TEST_DURATIONS")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(path).resolve()))
