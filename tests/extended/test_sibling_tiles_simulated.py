"""Groups of tiles that read the same rows as one kernel, on a simulated GPU: right at odd sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tests.extended.test_kernels_simulated import simulate
from torch.nn import functional

from polyblocks.affine.cost import rates

r = torch.randn


def _gradients(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The gradients of a function's result times itself."""

    def called(*operands: torch.Tensor) -> Any:
        result, back = torch.func.vjp(function, *operands)
        return back(result)[:count]

    return torch.func.functionalize(called)


#: Function, operands, and kernels.
CASES: dict[str, tuple[Callable[..., Any], Callable[[], list[torch.Tensor]], int]] = {
    "std_mean": (lambda x: torch.std_mean(x, 1), lambda: [r(37, 129) + 3], 1),
    "std_mean of columns": (lambda x: torch.std_mean(x.t(), 1), lambda: [r(65, 33)], 1),
    "NaN": (
        lambda x: torch.std_mean(x, 1),
        lambda: [torch.where(torch.rand(33, 65) > 0.98, torch.nan, r(33, 65))],
        1,
    ),
    "cross": (_gradients(torch.linalg.cross, 2), lambda: [r(517, 3), r(517, 3)], 1),
    "cosine": (
        _gradients(lambda a, b: functional.cosine_similarity(a, b, dim=1), 2),
        lambda: [r(67, 45), r(67, 45)],
        1,
    ),
    "lerp": (_gradients(torch.lerp, 3), lambda: [r(1003), r(1003), torch.rand(1003)], 1),
    "masked variance": (
        lambda x, m: torch.masked.var(x, 1, mask=m, unbiased=True),
        lambda: [r(37, 129), torch.rand(37, 129) > 0.3],
        1,
    ),
}


@pytest.mark.parametrize("arch", ["sm_80", "gfx1100"])
@pytest.mark.parametrize("name", CASES)
def test_siblings_are_one_kernel(name: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As if arrays were too large for caches.
    monkeypatch.setattr(rates, "found_in", lambda target, *_: len(target.memory) - 1)
    function, operands, kernels = CASES[name]
    torch.manual_seed(0)
    given = operands()
    found = function(*given)
    wanted: Sequence[torch.Tensor] = found if isinstance(found, (tuple, list)) else (found,)
    results, launches = simulate(function, given, arch)
    assert len(launches) == kernels
    for result, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(
            result.reshape(want.shape), want.numpy(), rtol=2e-4, atol=2e-5, equal_nan=True
        )
