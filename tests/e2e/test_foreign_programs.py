"""The first programs of every kind of `make foreign`, in this process."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from sweeps import sweep

FOLDER = Path(__file__).parents[1] / "slow" / "foreign"

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("first", sweep([1, 2], 1))
@pytest.mark.parametrize("framework", ["torch", "jax", "tf"])
def test_foreign_programs(framework: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    suites = importlib.import_module("suites")
    check, groups = suites.load(framework)
    wrong = []
    for group in groups:
        for case in group.cases[:first]:
            outcome = check(case)
            if outcome.kind == "wrong":
                wrong.append(f"{case.name}: {outcome.kind}: {outcome.reason}")
    assert not wrong, "\n".join(wrong)
