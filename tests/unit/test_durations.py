"""What the files of tests take."""

from __future__ import annotations

import json
from pathlib import Path

import durations
import pytest
from durations import DURATIONS, Recorder

ROOT = Path(__file__).resolve().parents[2]


def test_cpu_seconds_of_a_file_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([1.0, 5.0, 5.5, 6.0, 8.0])
    monkeypatch.setattr(durations, "cpu_seconds", lambda: next(clock))
    recorder = Recorder(tmp_path / "durations.json")
    recorder.pytest_collection_finish()
    for nodeid in ("a.py::x", "b.py::x", "a.py::y[::]"):
        recorder.pytest_runtest_logfinish(nodeid)
    recorder.pytest_sessionfinish()
    assert json.loads(recorder.path.read_text()) == {"a.py": 2.5, "b.py": 0.5}


def test_children_count() -> None:
    before = durations.cpu_seconds()
    assert before > 0.0
    while durations.cpu_seconds() == before:  # in steps of the system's clock
        sum(range(10_000))


def test_most_of_the_files_that_are_known_are_there() -> None:
    known = json.loads(DURATIONS.read_text())
    assert len(known) > 100
    there = [file for file in known if (ROOT / file).is_file()]
    assert len(there) > 0.9 * len(known), "run: TEST_DURATIONS=tests/durations.json make test"
