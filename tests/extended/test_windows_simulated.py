"""Windows of neighbours in threads of their own: right whatever is jammed, by the simulator."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from tests.extended.test_kernels_simulated import simulate
from tests.support.captured import captured
from torch.nn import functional

from polyblocks import events
from polyblocks.affine.gpu import windows
from polyblocks.affine.model import For, Nest, Node
from polyblocks.events import Event
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext
from polyblocks.target import TargetDescription
from polyblocks_nvgpu.describe import describe

pytestmark = pytest.mark.cpu
r = torch.randn


def _special(x: torch.Tensor) -> torch.Tensor:
    x.view(-1)[[3, 7, -1]] = torch.tensor([float("nan"), float("inf"), float("-inf")])
    return x


def depthwise(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return functional.conv2d(x, w, padding=w.shape[-1] // 2, groups=x.shape[1])


CASES: dict[str, tuple[Callable[..., torch.Tensor], list[torch.Tensor]]] = {
    "depthwise, float16": (depthwise, [r(2, 4, 8, 28).half(), r(4, 1, 3, 3).half()]),
    "depthwise, odd rows": (depthwise, [r(2, 3, 7, 9), r(3, 1, 3, 3)]),
    "depthwise, not finite": (depthwise, [_special(r(2, 3, 16, 16)), r(3, 1, 3, 3)]),
    "depthwise of relu": (lambda x, w: depthwise(x.relu(), w), [r(1, 2, 8, 16), r(2, 1, 3, 3)]),
    "of a tile, not finite": (
        lambda x, w: depthwise(x * 2 + 1, w).tanh(),
        [_special(r(2, 3, 16, 24)), r(3, 1, 3, 3)],
    ),
    "of a tile, float16": (
        lambda x, w: depthwise(x.relu(), w).relu(),
        [r(2, 4, 12, 20).half(), r(4, 1, 5, 5).half()],
    ),
    "of a tile, in steps": (
        lambda x, w: functional.conv2d(x.abs(), w, padding=1, stride=2, groups=3),
        [r(2, 3, 16, 32), r(3, 1, 3, 3)],
    ),
    "windows of windows": (
        lambda x, w: depthwise(depthwise(x.relu(), w).relu(), w),
        [r(1, 2, 16, 16), r(2, 1, 3, 3)],
    ),
    "steps": (
        lambda x, w: functional.conv2d(x, w, padding=1, stride=2, groups=3),
        [r(2, 3, 16, 32), r(3, 1, 3, 3)],
    ),
    "means": (lambda x: functional.avg_pool2d(x, 3, 1, 1), [_special(r(2, 3, 16, 16))]),
    "bytes": (
        lambda x: x[:, :-2].int() + x[:, 1:-1].int() * 2 + x[:, 2:].int(),
        [torch.randint(0, 256, (6, 34), dtype=torch.uint8)],
    ),
}


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
@pytest.mark.parametrize("part", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_neighbours_of_a_thread(
    name: str, part: int, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, inputs = CASES[name]
    every, jammed = windows._factors, []

    def one(loops: list[For], body: list[Node], width: int) -> Any:
        found = every(loops, body, width)
        jammed.extend(found[len(found) * part // 4 - 1 :][:1])
        return jammed[-1:] if found else []

    def compared(nest: Nest, others: Any, target: Any) -> dict[str, float] | None:
        del others, target
        return None if windows.independent_code(nest) is None else {"seconds": 0.0}

    monkeypatch.setattr(windows, "_factors", one)
    monkeypatch.setattr(windows, "compared", compared)
    monkeypatch.setattr(windows, "SLOW", 0.0)
    monkeypatch.setattr(windows, "GAIN", 1e9)
    (got,), launches = simulate(function, inputs, arch)
    half = inputs[0].dtype is torch.float16
    expected = function(*(x.float() if half else x for x in inputs))
    # Of odd rows no iterations are jammed.
    assert any(prod(f) > 1 for f in jammed) or name == "depthwise, odd rows"
    tolerance = 1e-2 if half else 1e-4
    np.testing.assert_allclose(got, expected.numpy(), rtol=tolerance, atol=tolerance)
    assert [finding for launch in launches for finding in launch.findings] == []


def test_tiles_are_left_of_copies_that_nothing_reads() -> None:
    options = CompileOptions(target="nvgpu", arch="sm_90a")
    target = describe(options)
    x = torch.empty(2, 16, 288, 288)
    module = captured(lambda x: functional.unfold(x, 3, padding=1), [x]).module
    standard_pipeline(target, options).run(module, PassContext.create(target, options))


def test_equal_nests_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    options = CompileOptions(target="nvgpu", arch="sm_90a")
    target = describe(options)
    search, found = windows.quickest_windows, []

    def counted(nest: Nest, target: TargetDescription) -> Any:
        found.append(search(nest, target))
        return found[-1]

    def layers(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> Any:
        return depthwise(x, w), depthwise(y, v)

    monkeypatch.setattr(windows, "quickest_windows", counted)
    w = torch.empty(144, 1, 3, 3)
    module = captured(layers, [*torch.empty(2, 8, 144, 56, 56), w, w.clone()]).module
    heard: list[Event] = []
    with events.listening(heard.append):
        standard_pipeline(target, options).run(module, PassContext.create(target, options))
    factors = [e.data["unroll_factors"] for e in heard if e.data.get("pass") == "jam-windows"]
    assert len(found) == 1
    assert len(factors) == 2
    assert factors[0] == factors[1] == found[0].factors
