"""Convolutions whose windows one thread copies pixel by pixel, run by the simulator."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import pytest
import torch
from tests.extended.test_group_units_simulated import ARCH, findings, first, last
from tests.extended.test_kernels_simulated import simulate
from tests.support.any_unit import predict_by
from tests.support.sweeps import sweep
from torch.nn import functional

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.plans.windowed_arrays import WindowedArray
from polyblocks.affine.gpu.tiles.units_cost import predict_units

pytestmark = pytest.mark.cpu

r = torch.randn


def predict_boxes(
    monkeypatch: pytest.MonkeyPatch, cluster: tuple[int, int] | None = None, tile: int = 0
) -> list[GroupUnitPlan]:
    """Let the model prefer bulk copies, of a cluster and of so many rows, if given; such plans."""
    seen: list[GroupUnitPlan] = []

    def predict(plan: UnitPlan, *given: Any) -> Predicted:
        fits = isinstance(plan, GroupUnitPlan) and plan.bulk is not None
        fits = fits and cluster in (None, plan.cluster) and tile in (0, plan.sizes.tile[0])
        fits = fits and isfinite(predict_units(plan, *given).seconds)
        seen.extend([plan] * fits)  # type: ignore[list-item]
        return Predicted(-1.0 / len(seen) if fits else 1e9, 0.0, 0.0)

    predict_by(monkeypatch, predict)
    return seen


@dataclass(frozen=True)
class Case:
    """An image, the filters, and how windows move."""

    image: tuple[int, ...]
    filters: tuple[int, ...]
    stride: Any = 1
    padding: Any = 0
    dilation: Any = 1
    cluster: tuple[int, int] | None = None

    def inputs(self) -> list[torch.Tensor]:
        torch.manual_seed(0)
        images, *size, channels = self.image
        columns, *window, _ = self.filters
        return [
            r(images, *size, channels).half(),
            r(columns, *window, channels).half(),
            r(columns).half(),
        ]

    def __call__(self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        dimensions = x.dim() - 2
        of = (functional.conv1d, functional.conv2d, functional.conv3d)[dimensions - 1]
        to_last, to_first = (0, -1, *range(1, 1 + dimensions)), (0, *range(2, x.dim()), 1)
        given = x.permute(to_last), w.permute(to_last)
        made = of(*given, b, self.stride, self.padding, self.dilation)
        # Of three dimensions PyTorch's own results have channels apart.
        return made.relu().permute(to_first).contiguous()


CASES = {
    "3x3": Case((2, 9, 11, 64), (72, 3, 3, 64), padding=1),
    "3x3, every second one": Case((2, 13, 10, 64), (64, 3, 3, 64), stride=2, padding=1),
    "5x5, apart": Case((3, 13, 17, 128), (64, 5, 5, 128), padding=4, dilation=2),
    "7x7": Case((1, 20, 23, 64), (128, 7, 7, 64), stride=2, padding=3),
    "1x1, every second one": Case((3, 9, 7, 128), (64, 1, 1, 128), stride=2),
    "sides that differ": Case(
        (2, 12, 15, 64), (64, 3, 5, 64), stride=(3, 1), padding=(0, 2), dilation=(2, 1)
    ),
    "one dimension": Case((3, 70, 64), (64, 5, 64), stride=3, padding=2, dilation=2),
    "three dimensions": Case((2, 5, 6, 7, 64), (64, 3, 3, 3, 64), padding=1),
    "clusters that share pixels": Case((2, 8, 8, 64), (256, 3, 3, 64), padding=1, cluster=(1, 2)),
    "clusters that share filters": Case((4, 8, 8, 64), (64, 3, 3, 64), padding=1, cluster=(2, 1)),
}


@pytest.mark.parametrize("ptx", sweep([False, True], False), ids=["ir", "ptx"])
@pytest.mark.parametrize("name", CASES)
def test_convolutions_are_those_of_pytorch(
    name: str, ptx: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    plans = predict_boxes(monkeypatch, case.cluster)
    inputs, kinds = case.inputs(), []

    def look(plan: dict[str, Any]) -> None:
        arguments = [each for row in plan["launches"] for each in row["arguments"]]
        kinds.extend(each["tensor_map"].get("kind") for each in arguments if "tensor_map" in each)

    (found,), launches = simulate(case, inputs, ARCH, change=look, ptx=ptx)
    assert any(isinstance(each, WindowedArray) for plan in plans for each in plan.arrays)
    assert kinds.count("im2col") == 1
    assert findings(launches) == []
    expected = case(*(x.double() for x in inputs))
    eager = (case(*inputs).double() - expected).abs().max()
    error = (torch.from_numpy(found).double() - expected).abs().max()
    assert error <= 2 * eager + 1e-6


def test_by_hand_and_of_infinities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding is zeros, and not what is beside it in memory, which has no numbers here."""
    plans = predict_boxes(monkeypatch)
    x, w = r(3, 9, 9, 64).half(), r(64, 3, 3, 64).half()
    x[1] = torch.nan
    x[0, 4, 8, 5], x[2, 0, 0, 0] = torch.inf, torch.nan

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return first(functional.conv2d(last(x), last(w), padding=1))

    (found,), launches = simulate(function, [x, w], ARCH)
    assert plans
    assert findings(launches) == []
    expected = function(x.double(), w.double())
    result = torch.from_numpy(found).double()
    torch.testing.assert_close(result, expected, rtol=0.01, atol=0.1, equal_nan=True)


def changed(key: str, to: Callable[[list[int]], list[int]]) -> Callable[[dict[str, Any]], None]:
    """A change of the description of what windows are in."""

    def change(plan: dict[str, Any]) -> None:
        arguments = [each for row in plan["launches"] for each in row["arguments"]]
        for each in arguments:
            if each.get("tensor_map", {}).get("kind") == "im2col":
                each["tensor_map"][key] = to(each["tensor_map"][key])

    return change


def swapped(code: str) -> str:
    """A change of LLVM IR: the offsets of pixels change places."""
    pattern = re.compile(r"(im2col\.4d\([^\n]*?)(i16 (?:%\S+|\d+)), (i16 (?:%\S+|\d+)), (i16 0,)")
    made, count = pattern.subn(r"\1\3, \2, \4", code)
    assert count
    return made


#: Fault -> what it changes, and what the simulator says; nothing: the result is wrong.
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "offsets that change places": ({"optimize": swapped}, ""),
    "another lower corner": ({"change": changed("lower", lambda n: [0, *n[1:]])}, "out of bounds"),
    "another upper corner": ({"change": changed("upper", lambda n: [n[0] + 1, *n[1:]])}, ""),
    "another step": ({"change": changed("steps", lambda n: [2, *n[1:]])}, ""),
    "more channels": ({"change": changed("box", lambda n: [2 * n[0], n[1]])}, "wrong barrier"),
    "fewer pixels": ({"change": changed("box", lambda n: [n[0], n[1] // 2])}, "wrong barrier"),
    "boxes": ({"change": changed("kind", lambda n: "tiled")}, "out of bounds"),  # type: ignore
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, expected = FAULTS[fault]
    plans = predict_boxes(monkeypatch, tile=64)
    case = Case((2, 8, 9, 64), (64, 3, 3, 64), padding=1)
    inputs = case.inputs()
    (found,), launches = simulate(case, inputs, ARCH, **given)
    assert plans
    kinds = {f.kind for launch in launches for f in launch.findings}
    if expected:
        assert expected in kinds
    else:
        wrong = torch.from_numpy(found).double() - case(*(x.double() for x in inputs))
        assert not wrong.abs().max() < 1


def test_the_assembler_gets_pixels() -> None:
    import polyblocks

    x, w = torch.zeros(32, 28, 28, 128).half(), torch.zeros(128, 3, 3, 128).half()
    options = {"target": "nvgpu", "arch": ARCH, "simulate": True}
    made = polyblocks.aot(
        lambda x, w: first(functional.conv2d(last(x), last(w), padding=1)),
        [x, w],
        options,
        frontend="torch",
    )
    described = [each for row in made.manifest["launches"] for each in row["arguments"]]
    maps = [each["tensor_map"] for each in described if "tensor_map" in each]
    (pixels,) = [each for each in maps if each.get("kind") == "im2col"]
    assert (pixels["lower"], pixels["upper"], pixels["steps"]) == ([-1, -1], [-1, -1], [1, 1])
