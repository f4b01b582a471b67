"""The order in which files of tests begin."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from longest_first import DURATIONS, Recorder, sort_by_duration

ROOT = Path(__file__).resolve().parents[2]


def item(nodeid: str) -> Any:
    return SimpleNamespace(nodeid=nodeid)


def test_files_that_take_long_begin_first() -> None:
    items = [item(f"{file}::test_{k}") for k in range(3) for file in ("a.py", "b.py", "c.py")]
    sort_by_duration(items, {"a.py": 0.5, "c.py": 9.0, "gone.py": 99.0})
    # Three tests that are not known take 0.6 s.
    assert [i.nodeid for i in items] == [
        f"{file}::test_{k}" for file in ("c.py", "b.py", "a.py") for k in range(3)
    ]


def test_durations_of_phases_are_added(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "durations.json")
    for nodeid, duration in (("a.py::x", 1.0), ("b.py::x", 0.1), ("a.py::y[::]", 0.25)):
        recorder.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, duration=duration))
    recorder.pytest_sessionfinish()
    assert json.loads(recorder.path.read_text()) == {"a.py": 1.2}


def test_most_of_the_files_that_are_known_are_there() -> None:
    known = json.loads(DURATIONS.read_text())
    assert len(known) > 100
    there = [file for file in known if (ROOT / file).is_file()]
    assert len(there) > 0.9 * len(known), "run: TEST_DURATIONS=tests/durations.json make test"
