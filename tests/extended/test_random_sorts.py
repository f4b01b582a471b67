"""Random sorts and selections, compiled and compared with stable sorts of eager mode.

``python tests/slow/random_sorts.py`` runs many more of them.
"""

from __future__ import annotations

import pytest
import torch
from sort_samples import DTYPES, KINDS, draw
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

#: Of so many samples each program, kind of numbers and type is one.
EACH = range(27)


@pytest.mark.parametrize("number", sweep(EACH, *range(7)))
def test_random_sort(number: int) -> None:
    sample = draw(number, 3000)
    ours = polyblocks_jit_torch(sample.function, compile_options={"strict_target": True})
    assert sample.difference(ours(sample.x)) == "", sample.text


@pytest.mark.simulated
@pytest.mark.parametrize("number", sweep(range(100, 130), 100, 105))
def test_random_sort_on_every_target(number: int) -> None:
    sample = draw(number, 300)
    ours = polyblocks_jit_torch(sample.function, compile_options={"strict_target": True})
    assert sample.difference(ours(sample.x)) == "", sample.text


def test_samples_differ_and_are_repeated() -> None:
    samples = [draw(number, 50) for number in EACH]
    assert {sample.x.dtype for sample in samples} == set(DTYPES)
    programs = ("sort", "values", "argsort", "topk", "slice", "kthvalue", "median", "mode")
    for word in (*KINDS, *programs):
        assert any(word in sample.text for sample in samples)
    assert any(not sample.x.is_contiguous() for sample in samples)
    assert [draw(number, 50).text for number in range(9)] == [s.text for s in samples[:9]]


def test_differences_are_seen() -> None:
    sample = next(s for n in range(99) if len((s := draw(n, 50)).expected) == 2 and s.x.numel() > 9)
    assert sample.difference(sample.expected) == ""
    values, order = sample.expected
    assert "result 1 differs in" in sample.difference((values, order + 1))
    assert "result 0 is torch.complex64" in sample.difference((values.to(torch.complex64), order))
