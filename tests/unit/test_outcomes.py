"""The end of ``make test``: what all parts come to."""

from __future__ import annotations

import pytest
from outcomes import Run, exit_status, summary

PASSED = "....\n4 passed in 0.10s\n"
FAILED = "..F\nFAILED tests/a.py::test_x - assert 1 == 2\n1 failed, 10 passed, 3 skipped in 1.0s\n"
NONE = "\n4 deselected in 0.10s\n"


def test_counts_are_summed_and_failures_listed() -> None:
    other = "E\nERROR tests/b.py - ImportError\n5 passed, 1 error in 62.00s (0:01:02)\n"
    late = "==== 7 passed in 1.00s ====\nlibfoo: leaving\n"
    runs = [Run("a", 1, FAILED), Run("b", 1, other), Run("c", 5, NONE), Run("d", 0, late)]
    assert summary(runs) == (
        "FAILED tests/a.py::test_x - assert 1 == 2\n"
        "ERROR tests/b.py - ImportError\n"
        "1 errors, 1 failed, 22 passed, 3 skipped"
    )


def test_a_run_that_ended_early_is_said() -> None:
    assert summary([Run("torch, part 2", -11, "...")]) == (
        "torch, part 2 ended early: killed by SIGSEGV\nno tests ran"
    )
    assert "ended early: exit status 4" in summary([Run("core", 4, "ERROR: not found: x\n")])
    assert "killed by signal 250" in summary([Run("core", -250, "")])
    assert "ended early: exit status 0" in summary([Run("core", 0, "....")])


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([(0, PASSED), (0, PASSED)], 0),
        ([(0, PASSED), (5, NONE)], 0),
        ([(5, NONE)], 5),
        ([(0, PASSED), (1, FAILED)], 1),
        ([(0, PASSED), (-9, "..")], 1),
        ([(1, FAILED), (-11, "..")], 1),
        ([(0, PASSED), (4, "ERROR: not found\n")], 4),
        ([(0, PASSED), (0, "....")], 1),  # os._exit(0) in a test
        ([(5, "")], 1),
    ],
)
def test_status(runs: list[tuple[int, str]], expected: int) -> None:
    assert exit_status(Run("", *run) for run in runs) == expected
