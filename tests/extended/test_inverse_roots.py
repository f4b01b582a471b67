"""Quotients by square roots on a simulated GPU of NVIDIA's: numbers and special values."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyblocks.codegen.vector_math.accuracy import MAX_ULP

pytestmark = pytest.mark.isolated

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1e-45, 1e-38, 3.4e38, 1.0, 2.0, 4.0]


def of(function: object, *arrays: torch.Tensor) -> torch.Tensor:
    options = {"target": "nvgpu", "arch": "sm_80", "simulate": True, "strict_target": True}
    return torch.compile(function, backend="polyblocks", options=options)(*arrays)


@pytest.mark.parametrize("inverse", [torch.rsqrt, lambda x: 1 / torch.sqrt(x)])
def test_inverses_are_accurate(inverse: object) -> None:
    numbers = np.exp2(np.random.default_rng(1).uniform(-140, 127, 1000)).astype(np.float32)
    x = torch.from_numpy(np.concatenate([np.array(SPECIAL, np.float32), numbers]))
    got = of(inverse, x).numpy()
    with np.errstate(all="ignore"):
        wanted = 1 / np.sqrt(x.numpy().astype(np.float64))
    exact = ~np.isfinite(wanted) | (wanted == 0)
    np.testing.assert_array_equal(got[exact], wanted[exact].astype(np.float32))
    spacing = np.spacing(np.abs(wanted[~exact]).astype(np.float32))
    errors = np.abs(got[~exact] - wanted[~exact]) / spacing
    assert errors.max() <= MAX_ULP["math.rsqrt"][0]


def test_quotients_of_special_values() -> None:
    x, s = (torch.tensor(column) for column in zip(*[
        (a, b) for a in SPECIAL for b in SPECIAL
    ], strict=True))  # fmt: skip
    torch.testing.assert_close(
        of(lambda x, s: x / torch.sqrt(s), x, s), x / torch.sqrt(s), equal_nan=True,
        rtol=1e-6, atol=0,
    )  # fmt: skip
