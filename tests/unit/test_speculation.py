"""Speculative compilations: a job runs before its result is asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from polyblocks import events
from polyblocks.errors import UnsupportedError
from polyblocks.isolation import isolation, speculation


@pytest.fixture(autouse=True)
def _no_jobs():
    yield
    for key in list(speculation._jobs):
        speculation.take(key)


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_job_runs_beside_and_is_taken_once():
    begin, end = os.pipe()
    speculation.start("key", lambda: os.read(begin, 1) + b"done", "beside")
    os.write(end, b"+")
    assert speculation.take("key") == b"+done"
    assert speculation.take("key") is None
    os.close(begin)
    os.close(end)


def test_a_result_that_no_pipe_holds_waits_for_nobody():
    speculation.start("key", lambda: bytes(1 << 22), "large")
    wait_until(lambda: speculation._jobs["key"].result is not None)
    assert speculation.take("key") == bytes(1 << 22)


def test_events_come_when_the_result_is_taken():
    def job() -> bytes:
        events.emit("compile-begin", name="soon", target="null")
        return b""

    seen: list[events.Event] = []
    with events.listening(seen.append):
        speculation.start("key", job, "soon")
        wait_until(lambda: speculation._jobs["key"].result is not None)
        assert not seen
        speculation.take("key")
    assert [(e.kind, e.data["name"]) for e in seen] == [("compile-begin", "soon")]


def test_who_asks_for_a_job_that_failed_runs_it():
    def job() -> bytes:
        raise UnsupportedError("no")

    speculation.start("key", job, "fails")
    wait_until(lambda: "key" not in speculation._jobs)
    assert speculation.take("key") is None


def test_a_job_that_dies_is_as_if_it_had_not_been_started():
    speculation.start("key", os.abort, "dies")  # type: ignore[arg-type]
    assert speculation.take("key") is None


def test_results_that_nobody_takes_are_few():
    for number in range(speculation.KEPT + 2):
        speculation.start(str(number), lambda: b"x", "many")
    assert len(speculation._jobs) == speculation.KEPT
    assert speculation.take("0") is None
    assert speculation.take(str(speculation.KEPT + 1)) == b"x"


def test_a_second_core_and_a_process_are_needed(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    assert speculation.is_worthwhile()
    monkeypatch.setenv("POLYBLOCKS_ISOLATE", "0")
    assert not speculation.is_worthwhile()
    monkeypatch.delenv("POLYBLOCKS_ISOLATE")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
    assert not speculation.is_worthwhile()


def test_a_child_of_ours_starts_none():
    found = isolation.run_isolated(lambda: str(speculation.is_worthwhile()).encode())
    assert found == b"False"
