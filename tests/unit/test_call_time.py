"""The host's part of a call: measured from the clock and the times of profiled programs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from fake_driver import KIND, DeviceArray, FakeArrays

from polyblocks.explanation import call_time
from polyblocks.explanation.call_time import LEAST_RUNS, RUNS, call_often
from polyblocks.explanation.document import document
from polyblocks.explanation.page import page
from polyblocks.reports.report import CallTime, Report
from polyblocks.runtime.arrays import HOST, Device
from polyblocks.runtime.executable import Executable


class Clock:
    """Time that passes where a test lets it."""

    now = 0.0

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(call_time, "time", SimpleNamespace(perf_counter=lambda: made.now))
    return made


class Program(Executable):
    """A program that takes as long as it is told, and knows it."""

    def __init__(self, clock: Clock, seconds: float, predicted: float | None = 1e-6) -> None:
        self.clock = clock
        estimate = {} if predicted is None else {"predicted_seconds": predicted}
        self.manifest = {"kernels": [{"name": "k", "estimate": estimate}]}
        self.seconds = seconds
        self.rows = [{"kernel": "", "nest": "", "calls": 0, "seconds": 0.0, "minimum": None}]

    def run(self) -> None:
        self.clock.pass_by(self.seconds)
        self.rows[0]["calls"] += 1
        self.rows[0]["seconds"] += self.seconds

    def profile(self):
        return self.rows


class Arrays(FakeArrays):
    """Whose results take a while to be ready."""

    def __init__(self, clock: Clock, wait: float = 0.0) -> None:
        super().__init__()
        self.clock, self.wait = clock, wait

    def make_ready(self, array, stream):
        self.clock.pass_by(self.wait)


def on(device: Device) -> DeviceArray:
    return DeviceArray(np.zeros(2, np.float32), device)


def test_what_the_programs_took_is_not_the_hosts(clock):
    one, two, other = Program(clock, 3e-3), Program(clock, 1e-3), Program(clock, 1.0)
    spare = [5e-3, 9e-3, 2e-3]  # of the host, in turns

    def function(x):
        one.run(), two.run(), two.run()
        clock.pass_by(spare[one.rows[0]["calls"] % 3])
        return [x]

    made = call_often(function, [on(HOST)], Arrays(clock), [one, two, other])
    assert made.kernel_seconds == pytest.approx(5e-3)
    assert made.predicted_seconds == pytest.approx(3e-6)
    assert made.host_seconds == pytest.approx(2e-3)
    assert not made.host_is_larger
    assert LEAST_RUNS < one.rows[0]["calls"] <= RUNS + 1


def test_a_slow_function_is_called_a_few_times(clock):
    slow = Program(clock, 10.0)
    call_often(lambda x: slow.run(), [on(HOST)], Arrays(clock), [slow])
    assert slow.rows[0]["calls"] == LEAST_RUNS + 1


@pytest.mark.parametrize("device, host", [(HOST, 5e-3), (Device(KIND, 0), 3e-3)])
def test_kernels_of_a_device_run_beside_the_host(clock, device, host):
    program = Program(clock, 2e-3)

    def function(x):
        program.run()
        clock.pass_by(1e-3)
        return x

    made = call_often(function, [on(device)], Arrays(clock, 4e-3), [program])
    assert made.host_seconds == pytest.approx(host)


def test_programs_that_tell_nothing(clock):
    arrays = Arrays(clock)
    assert call_often(lambda x: x, [on(HOST)], arrays) is None
    assert call_often(lambda x: x, [on(HOST)], arrays, [Program(clock, 0.0)]) is None
    unknown = Program(clock, 0.0, predicted=None)

    def function(x):
        unknown.run()
        return x

    assert call_often(function, [on(HOST)], arrays, [unknown]).predicted_seconds is None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            CallTime(37e-6, 4e-6, 3.6e-6),
            "host 37 µs of a call, kernels 4 µs (predicted 3.6 µs): the host is the larger; "
            "compile more of the program as one function, or call it with more data",
        ),
        (CallTime(4e-6, 37e-6), "host 4 µs of a call, kernels 37 µs"),
    ],
)
def test_in_words(call, text):
    from rich.console import Console

    from polyblocks.explanation.tree import tree

    assert str(call) == text
    report = Report()
    report.call = call
    assert text in str(report)
    data = document(report)
    assert data["call"]["host_is_larger"] is call.host_is_larger
    console = Console(width=250)
    with console.capture() as shown:
        console.print(tree(data))
    assert text in shown.get()
    assert "host" in page(data)
    assert ("the host is the larger" in page(data)) is call.host_is_larger
