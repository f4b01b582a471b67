"""Small models in float16 on simulated GPUs: whole, without findings, as near as eager mode."""

from __future__ import annotations

import pytest
import torch
from bench.gpu_models.zoo import MODELS
from sweeps import sweep
from tests.support import small_models
from tests.support.simulated_chips import ALL_CHIPS
from tests.support.small_models import SMALL, outcome_of

pytestmark = pytest.mark.cpu

#: Every model on a chip, and every chip by turns.
CASES = [(name, arch) for name in SMALL for arch in ALL_CHIPS]
BY_TURNS = [(n, [*ALL_CHIPS][number % len(ALL_CHIPS)]) for number, n in enumerate(SMALL)]


def test_all_models_of_the_table_are_small_here() -> None:
    assert SMALL.keys() == MODELS.keys()


@pytest.mark.parametrize("case", sweep(CASES, *BY_TURNS), ids=", ".join)
def test_models_are_right(case: tuple[str, str]) -> None:
    name, arch = case
    outcome = outcome_of(name, arch, torch.float16, 1)
    assert outcome.problems == ()
    assert outcome.launches > 1


class Twice(torch.nn.Module):
    """Has its values, or what does not compile."""

    def __init__(self, unique: bool) -> None:
        super().__init__()
        self.unique = unique

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unique() if self.unique else x * 2


@pytest.mark.parametrize("fault", ["wrong", "refused"])
def test_faults_are_told(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = Twice(fault == "refused")
    monkeypatch.setitem(SMALL, "twice", (lambda batch: module, lambda batch: (torch.ones(3, 90),)))
    if fault == "wrong":
        # What is compared with is another function.
        monkeypatch.setattr(small_models, "_results", lambda module, given: [given[0] * 3])
    (problem, *_) = outcome_of("twice", "sm_80", torch.float16, 1).problems
    assert problem.startswith({"wrong": "error", "refused": "FallbackError"}[fault])
