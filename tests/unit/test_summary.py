"""The end of ``make test``: what all parts come to."""

from __future__ import annotations

from summary import summary


def test_counts_are_summed_and_failures_listed() -> None:
    one = "..F\nFAILED tests/a.py::test_x - assert 1 == 2\n1 failed, 10 passed, 3 skipped in 1.0s\n"
    other = "E\nERROR tests/b.py - ImportError\n5 passed, 2 errors in 62.00s (0:01:02)\n"
    assert summary([("a", 1, one), ("b", 1, other), ("c", 5, "4 deselected in 0.1s")]) == (
        "FAILED tests/a.py::test_x - assert 1 == 2\n"
        "ERROR tests/b.py - ImportError\n"
        "2 error, 1 failed, 15 passed, 3 skipped"
    )


def test_a_process_that_ended_early_is_said() -> None:
    assert summary([("torch, part 2", -11, "...")]) == (
        "torch, part 2 ended early: killed by SIGSEGV\nno tests ran"
    )
    assert "ended early: exit status 4" in summary([("core", 4, "ERROR: not found: x\n")])
    assert "killed by signal 250" in summary([("core", -250, "")])
