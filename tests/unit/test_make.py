"""The Makefile: what it offers, and which tests it runs."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()


def pytest_arguments(target: str, *variables: str) -> list[str]:
    """What a target gives to tests/run.py, without running anything."""
    command = ["make", "--dry-run", "PYTHON=python3", target, *variables]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (line,) = re.findall(r"^\S+ tests/run\.py .*$", done.stdout, re.MULTILINE)
    return shlex.split(line)[2:]


RUN_TESTS = ("test", "test-extended", "test-all", "test-exhaustive")


def test_commands_run_parts_of_the_tests() -> None:
    quick, extended, pairs, rest = map(pytest_arguments, RUN_TESTS)
    (processes, *selection) = pairs
    assert processes.startswith("--processes=")
    assert selection == ["-m", "not exhaustive"]
    assert rest == [processes, "-m", "exhaustive"]
    assert quick == [processes, "--without=tests/extended", "-m", "not slow and not extended"]
    assert extended == [processes, "--extended=tests/extended", "-m", "extended and not slow"]


@pytest.mark.parametrize("target", RUN_TESTS)
def test_more_arguments_for_pytest(target: str) -> None:
    more = ["-x", "tests/unit"]
    given = pytest_arguments(target, f"PYTEST_ARGS={shlex.join(more)}")
    assert given == [*pytest_arguments(target), *more]


def test_every_target_is_explained() -> None:
    phony = set(" ".join(re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)).split())
    explained = re.findall(r'^\t@echo "make ([\w-]+) ', MAKEFILE, re.MULTILINE)
    assert sorted(explained) == sorted(phony - {"help", "clean"})


def test_continuous_integration_runs_what_contributors_are_told() -> None:
    run = re.findall(r"^make (\S+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    page = (ROOT / "docs/contributing.md").read_text()
    assert run == ["lint", "test", "test-extended", "test-newest"]
    for target in run:
        assert re.search(rf"^make {target} |`make {target}`", page, re.MULTILINE), target
