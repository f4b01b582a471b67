"""What the files of tests take, by which ``tests/run.py`` distributes them."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

#: File of tests -> CPU seconds that it took; see docs/contributing.md.
DURATIONS = Path(__file__).parents[1] / "durations.json"
#: Environment variable with the file that gets the durations.
VARIABLE = "TEST_DURATIONS"

_elsewhere = 0.0


def cpu_seconds() -> float:
    """CPU seconds of this process and of others that have ended: load does not change them."""
    return sum(os.times()[:4]) + _elsewhere


def add(seconds: float) -> None:
    """Count the CPU seconds of a process that is no child of this one."""
    global _elsewhere
    _elsewhere += seconds


class Recorder:
    """Adds up what the tests of each file take, and writes it at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = defaultdict(float)
        self.last = cpu_seconds()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        now = cpu_seconds()
        self.seconds[nodeid.partition("::")[0]] += now - self.last
        self.last = now

    def pytest_collection_finish(self) -> None:
        self.last = cpu_seconds()

    def pytest_sessionfinish(self) -> None:
        found = {file: round(s, 1) for file, s in sorted(self.seconds.items())}
        self.path.write_text(json.dumps(found, indent=0) + "\n")


def register(config: pytest.Config) -> None:
    """Record durations where the user asks for it."""
    if path := os.environ.get(VARIABLE):
        config.pluginmanager.register(Recorder(Path(path).resolve()))
