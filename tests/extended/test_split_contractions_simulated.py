"""Contractions of few rows and columns and many steps: in parts, joined in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.extended.test_kernels_simulated import TARGETS, simulate
from tests.support.captured import captured
from tests.support.sweeps import sweep
from torch.nn import functional

from polyblocks.affine.gpu import split_k
from polyblocks.events import Event, listening
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext
from polyblocks.registry.honoured_options import describe_target

pytestmark = pytest.mark.cpu

r = torch.randn
#: name -> function, shapes of the arguments.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "whole parts": (torch.matmul, ((32, 8192), (8192, 48))),
    "epilogue": (
        lambda x, w, b: torch.relu(functional.linear(x, w, b)),
        ((33, 8008), (40, 8008), (40,)),
    ),
    "odd": (lambda a, b: torch.tanh(a @ b), ((45, 6001), (6001, 67))),
    "batch": (torch.bmm, ((2, 20, 6000), (2, 6000, 24))),
    "pixels": (
        lambda x, w: functional.conv2d(x, w, padding=1),
        ((1, 1600, 6, 6), (48, 1600, 3, 3)),
    ),
}
CHIPS = ("sm_75", "sm_80", "sm_90a", "gfx1100", "gfx1200")


def arguments(name: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [r(shape).to(torch.float16) for shape in PROGRAMS[name][1]]


def splits(inputs: list[torch.Tensor], arch: str) -> tuple[list[dict[str, Any]], int]:
    """What is decided about parts of a product, and the multiprocessors of the chip."""
    options = CompileOptions(target=TARGETS[arch], arch=arch)
    target = describe_target(options)
    decided: list[dict[str, Any]] = []

    def listen(event: Event) -> None:
        if event.kind == "decision" and event.data["pass"] == "split-contractions":
            decided.append(event.data)

    module = captured(torch.matmul, inputs).module
    with listening(listen):
        standard_pipeline(target, options).run(module, PassContext.create(target, options))
    return decided, target.shared_level.size


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", sweep(CHIPS, "sm_80", "gfx1100"))
@pytest.mark.parametrize("name", sweep(PROGRAMS, "epilogue", "odd"))
def test_parts_compute_what_float64_does(
    name: str, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of sizes that a simulator computes in seconds, parts save little.
    monkeypatch.setattr(split_k, "WORTH_PARTS", 1.0)
    function, inputs = PROGRAMS[name][0], arguments(name)
    outputs, launches = simulate(function, inputs, arch)
    assert [str(f) for launch in launches for f in launch.findings] == []
    parts, join = launches[-2:]
    assert parts.kernel.endswith("_parts")
    assert join.kernel == parts.kernel.removesuffix("_parts")
    if name == "epilogue":
        assert parts.counts.instructions["matrix"]
        assert "matrix" not in join.counts.instructions
    expected = function(*(x.double() for x in inputs))
    eager = (function(*inputs).double() - expected).abs().max()
    error = (torch.from_numpy(outputs[0]).double() - expected).abs().max()
    assert error <= 2 * eager + 1e-6


def test_every_run_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_k, "WORTH_PARTS", 1.0)
    function, inputs = PROGRAMS["epilogue"][0], arguments("epilogue")
    runs = [simulate(function, inputs, "sm_80") for _ in range(2)]
    assert all("atomic" not in each.counts.instructions for _, run in runs for each in run)
    (first,), (second,) = (outputs for outputs, _ in runs)
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("arch", ["sm_80", "gfx1100", "gfx1200"])
def test_parts_fill_the_chip(arch: str) -> None:
    inputs = [r(128, 16384).half(), r(16384, 128).half()]
    (parts,), multiprocessors = splits(inputs, arch)
    assert parts["blocks"] >= 0.9 * multiprocessors
    assert parts["predicted_seconds"] < parts["whole_seconds"]


def test_what_fills_the_chip_is_not_split() -> None:
    inputs = [r(1024, 512).half(), r(512, 2048).half()]
    assert splits(inputs, "sm_80")[0] == []
