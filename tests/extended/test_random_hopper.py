"""Samples of what ``tests/slow/random_hopper.py`` looks at, of each kind."""

from __future__ import annotations

import pytest
from tests.support.hopper_samples import MAKE, outcome_of

pytestmark = pytest.mark.cpu

#: Kind -> numbers of samples of seed 0.
SAMPLES = {"products": (0, 1, 2, 3), "convolutions": (0, 1, 2), "attentions": (0, 1)}


@pytest.mark.parametrize("kind", SAMPLES)
def test_samples_are_right_and_some_use_units_of_several_warps(kind: str) -> None:
    used: set[str] = set()
    for number in SAMPLES[kind]:
        sample = MAKE[kind](0, number)
        outcome = outcome_of(sample)
        assert not outcome.problem, sample.told
        used |= outcome.used
    assert {"wgmma", "boxes"} <= used
