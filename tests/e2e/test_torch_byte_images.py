"""Images of bytes are resized with the fixed-point weights of PyTorch's kernels."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_resized_bytes(mode: str, antialias: bool) -> None:
    def resize(x: torch.Tensor, wide: torch.Tensor) -> list[torch.Tensor]:
        some = {"mode": mode, "antialias": antialias}
        return [
            functional.interpolate(x ^ 1, size=(9, 31), **some) * 2,
            functional.interpolate(x, size=(24, 11), align_corners=True, **some),
            functional.interpolate(x, size=(19, 8), **some),
            functional.interpolate(x, scale_factor=(0.45, 1.7), **some),
            functional.interpolate(wide, size=(7, 33), **some),
        ]

    x = torch.randint(0, 256, (2, 3, 19, 23), dtype=torch.uint8)
    x[0, 0] = 255 * (x[0, 0] > 127)  # cubic weights leave the range of bytes
    wide = torch.randint(0, 256, (1, 5, 12, 9), dtype=torch.uint8)
    wide = wide.to(memory_format=torch.channels_last)
    ours = polyblocks_jit_torch(resize, compile_options={"strict_target": True})(x, wide)
    for mine, theirs in zip(ours, resize(x, wide), strict=True):
        assert torch.equal(mine, theirs)
        assert mine.stride() == theirs.stride()
