"""The progress line: silent for a second, then one line, gone at the end."""

from __future__ import annotations

import io
import time

import pytest

from polyblocks import progress
from polyblocks.events import Event


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


def begin(line):
    line(Event("compile-begin", {"name": "blur", "target": "toy"}))
    line(Event("stage-begin", {"stage": "S3"}))
    line(Event("pass-begin", {"stage": "S3", "name": "fuse-slices"}))


def test_a_short_compilation_shows_nothing(terminal):
    line = progress.ProgressLine(terminal, patience=10)
    begin(line)
    line(Event("compile-end", {"name": "blur", "seconds": 0.1}))
    assert terminal.getvalue() == ""
    assert line._timer is None


def test_a_long_one_shows_stage_and_pass(terminal):
    line = progress.ProgressLine(terminal, patience=0.01)
    begin(line)
    wait_for(lambda: "fuse-slices" in terminal.getvalue())
    assert "compiling blur for toy: stage S3, pass fuse-slices" in terminal.getvalue()
    line(Event("pass-begin", {"stage": "S3", "name": "tile-nests"}))
    wait_for(lambda: "tile-nests" in terminal.getvalue())
    line(Event("compile-end", {"name": "blur", "seconds": 3}))
    ended = terminal.getvalue()
    assert ended.endswith("\x1b[2K") or "\x1b[?25h" in ended  # erased, cursor back
    line(Event("pass-begin", {"stage": "S3", "name": "late"}))
    time.sleep(0.05)
    assert terminal.getvalue() == ended


def test_the_line_stays_until_the_last_of_several_ends(terminal):
    line = progress.ProgressLine(terminal, patience=0.01)
    begin(line)
    begin(line)
    wait_for(lambda: "fuse-slices" in terminal.getvalue())
    line(Event("compile-end", {}))
    assert line._status is not None
    line(Event("compile-end", {}))
    assert line._status is None


def test_events_outside_a_compilation_are_nothing(terminal):
    line = progress.ProgressLine(terminal, patience=0)
    line(Event("pass-begin", {"stage": "S1", "name": "x"}))
    line(Event("compile-end", {}))
    line(Event("cache-hit", {"key": "0"}))
    assert terminal.getvalue() == ""


def test_only_on_a_terminal_and_unless_turned_off(terminal, monkeypatch):
    monkeypatch.delenv("POLYBLOCKS_PROGRESS", raising=False)
    assert progress.wanted(terminal)
    assert not progress.wanted(io.StringIO())
    monkeypatch.setenv("POLYBLOCKS_PROGRESS", "0")
    assert not progress.wanted(terminal)


def wait_for(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()
