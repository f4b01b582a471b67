"""Few tiles of windows and whole rows on a simulated GPU: apart where they are slow, and right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.extended.test_kernels_simulated import simulate
from tests.support.captured import captured
from torch.nn import functional

from polyblocks.options import CompileOptions
from polyblocks.passes.fuse import fuse_tiles
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext
from polyblocks_nvgpu.describe import describe


def normalized(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A depthwise convolution, and a layer norm of each pixel's channels."""
    found = functional.conv2d(x, w, padding=w.shape[-1] // 2, groups=x.shape[1])
    return functional.layer_norm(found.permute(0, 2, 3, 1), (x.shape[1],))


@pytest.mark.parametrize(
    ("channels", "pixels", "idle"), [(768, 7, True), (16, 7, False), (64, 112, False)]
)
def test_few_tiles_that_take_long_stay_apart(channels: int, pixels: int, idle: bool) -> None:
    options = CompileOptions(target="nvgpu", arch="sm_80")
    target = describe(options)
    x = torch.empty(1, channels, pixels, pixels, dtype=torch.float16)
    w = torch.empty(channels, 1, 7, 7, dtype=torch.float16)
    context, reasons = PassContext.create(target, options), []

    def decide(pass_name: str, nest: str, what: str, **numbers: Any) -> None:
        del pass_name, nest, what
        reasons.append(numbers.get("reason"))

    context.decide = decide  # type: ignore[method-assign]
    standard_pipeline(target, options).run(captured(normalized, [x, w]).module, context)
    assert ("idle" in reasons) == idle


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("arch", ["sm_80", "gfx1100"])
def test_what_stays_apart_is_right(
    arch: str, special: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    known = fuse_tiles._idle

    def idle(*given: Any) -> str:
        asked.append(known(*given))
        return "idle"

    monkeypatch.setattr(fuse_tiles, "LONG_BEHIND_LAUNCH", -1.0)
    monkeypatch.setattr(fuse_tiles, "_idle", idle)
    x, w = torch.randn(1, 24, 5, 7), torch.randn(24, 1, 3, 3)
    if special:
        x.view(-1)[[3, 99]] = torch.tensor([float("nan"), float("inf")])
    (got,), launches = simulate(normalized, [x, w], arch)
    assert asked
    want = normalized(x.double(), w.double()).numpy()
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-4, atol=1e-4)
    assert [finding for launch in launches for finding in launch.findings] == []
