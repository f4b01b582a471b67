"""What the torch frontend makes of operations, run by PyTorch and held against them.

`tests/slow/eager_graphs.py` does so for many more of them.
"""

from __future__ import annotations

import itertools
import logging
import random
import warnings
from collections.abc import Iterable

import pytest
import torch
from eager_cases import Case, cases_of, changed, elementwise, recorded
from eager_graphs import NothingToRun, compare, difference
from sweeps import sweep

from polyblocks_torch.importing.decompositions import decomposition_table

aten = torch.ops.aten

#: Of how many parts of the database one is taken; a part of 48 is in that of 4.
PARTS = sweep([4, 48], 48)


def differences(cases: Iterable[Case]) -> tuple[list[str], int]:
    """What is other than in eager mode, and how many calls were compared."""
    found, compared = [], 0
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for case in cases:
                outcome = case.outcome()
                compared += outcome is not None
                if outcome:
                    found.append(f"{case}: {outcome}")
    finally:
        torch.set_num_threads(threads)
        logging.disable(logging.NOTSET)
    return found, compared


@pytest.mark.extended
@pytest.mark.parametrize("count", sweep([2, 8], 2))
def test_elementwise_operations_of_all_types(count: int) -> None:
    found, compared = differences(
        case
        for op in elementwise(decomposition_table())
        for case in cases_of(op, random.Random(str(op)), count)
    )
    assert not found
    assert compared > 60 * count


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.float32, torch.float16, torch.int64, torch.uint8],
        torch.float16,
        extended=[torch.float32, torch.int64, torch.uint8],
    ),
    ids=str,
)
def test_operations_of_samples(dtype: torch.dtype, parts: int) -> None:
    found, compared = differences(recorded(dtype, 1, part=(0, parts)))
    assert not found
    assert compared > 200 // parts


@pytest.mark.parametrize("parts", PARTS)
def test_operations_of_gradients(parts: int) -> None:
    found, compared = differences(recorded(torch.float32, 1, gradients=True, part=(1, parts)))
    assert not found
    assert compared > 200 // parts


@pytest.mark.parametrize("parts", PARTS)
def test_operations_on_numbers_that_are_none(parts: int) -> None:
    types = itertools.cycle((torch.float32, torch.bfloat16, torch.int8, torch.int64, torch.bool))
    found, compared = differences(
        changed(case, next(types), 0.15) for case in recorded(torch.float32, 1, part=(2, parts))
    )
    assert not found
    assert compared > 120 // parts


@pytest.mark.parametrize("name", ["chebyshev_polynomial_v", "legendre_polynomial_p"])
def test_polynomials_of_the_highest_degrees_end_when_they_are_no_numbers(name: str) -> None:
    """As eager mode does: a step for each of 2^31 degrees takes hours."""
    op = getattr(aten, f"special_{name}").default
    x, n = torch.tensor([-2.0, 1.0, 1.5, torch.inf]), torch.tensor([2**31 - 1, 9])
    assert not difference(op, (x[:, None], n), {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_nothing_is_between_the_elements_of_a_transposed_convolution(dtype: torch.dtype) -> None:
    x, weight = torch.randn(2, 4, 5, 4), torch.randn(4, 3, 2, 3)
    weight[1, 0, 1, 2], weight[2, 2, 0, 0], x[1, 3, 2, 1] = torch.inf, torch.nan, -torch.inf
    for groups in (1, 2):
        laid = [[2, 1], [1, 0], [1, 2], True, [1, 0], groups]
        case = (x.to(dtype), weight.to(dtype), None, *laid)
        assert not difference(aten.convolution.default, case, {})


def test_what_differs_is_seen() -> None:
    x = torch.tensor([0.0, 1.0, torch.nan])
    assert compare(x, x, True) == ""
    assert "float64[3] for torch.float32[3]" in compare(x.double(), x, True)
    assert "at [0] -0.0 for 0.0" in compare(torch.tensor([-0.0, 1.0, torch.nan]), x, True)
    assert "at [2] inf for nan" in compare(torch.tensor([0.0, 1.0, torch.inf]), x, True)
    assert "at [1] 1.5 for 1.0" in compare(torch.tensor([0, 1.5, torch.nan]), x, True)
    small = torch.tensor([1e-6, 1.0])
    assert compare(small * torch.tensor([1.1, 1.0]), small, False) == ""
    assert compare(small * torch.tensor([1.1, 1.0]), small, True)


def test_a_wrong_decomposition_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.tensor([-1.0, 2.0])
    table = dict(decomposition_table())
    monkeypatch.setattr("eager_graphs.decomposition_table", lambda: table)
    table[aten.frac.default] = lambda x: x - x.floor()
    assert "at [0]" in difference(aten.frac.default, (x - 0.25,), {})
    table[aten.frac.default] = lambda x: NotImplemented
    with pytest.raises(NothingToRun, match="left as it is"):
        difference(aten.frac.default, (x,), {})
    table[aten.frac.default] = lambda x: (x - x.trunc()).double()
    assert "gives float64[2] instead" in difference(aten.frac.default, (x,), {})
