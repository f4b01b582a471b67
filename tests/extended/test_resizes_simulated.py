"""Images resized by fractions, on a simulated GPU: the places of pixels are no tables."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.extended.test_kernels_simulated import simulate
from torch.nn import functional


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
@pytest.mark.parametrize(
    ("shape", "factor", "dtype"),
    [
        ((2, 3, 17, 33), 1.5, torch.float32),
        ((1, 3, 40, 31), 0.75, torch.float16),
        ((1, 2, 31, 45), 2.5, torch.float64),
        ((1, 1, 49, 64), 1.4, torch.uint8),
        ((1, 2, 64, 50), 0.6, torch.float32),
    ],
    ids=str,
)
def test_nearest_pixels(
    shape: tuple[int, ...], factor: float, dtype: torch.dtype, arch: str
) -> None:
    torch.manual_seed(0)
    image = (torch.randn(shape) * 50).abs().to(dtype)
    if dtype.is_floating_point:
        image.view(-1)[::7], image.view(-1)[3::11] = torch.nan, -torch.inf
    results, launches = simulate(
        lambda x: functional.interpolate(x, scale_factor=factor, mode="nearest-exact"),
        [image],
        arch,
    )
    wanted = functional.interpolate(image, scale_factor=factor, mode="nearest-exact")
    assert len(launches) == 1
    found = torch.as_tensor(np.asarray(results[0], dtype=np.float64)).reshape(wanted.shape)
    torch.testing.assert_close(found, wanted.double(), rtol=0, atol=0, equal_nan=True)
