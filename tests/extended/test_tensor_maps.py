"""Tensor maps in launch plans: made by the driver, right wherever arrays are."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.extended.test_group_units_simulated import ARCH, plans
from tests.extended.test_window_copies_simulated import predict_boxes
from tests.support import random_launches
from tests.support.stand_in_driver import for_stand_in
from torch.nn import functional

import polyblocks
from polyblocks.artifact import Artifact
from polyblocks.errors import ExecutionError
from polyblocks.runtime.device.plan import LaunchPlan, Slot, read_plan
from polyblocks.runtime.device.tensor_map import TensorMap
from polyblocks_nvgpu.bulk import tensor_maps

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="drivers are built with gcc"),
]

__all__ = ["plans"]

SHAPES = (64, 72), (72, 64)


def product() -> Artifact:
    """Two products in a row, so that there are graphs, and an array in the workspace."""
    given = [torch.zeros(shape).half() for shape in SHAPES]
    options = {"target": "nvgpu", "arch": ARCH, "simulate": True}
    made = polyblocks.aot(lambda a, b: (a @ b) @ (a @ b), given, options, frontend="torch")
    described = [each for row in made.manifest["launches"] for each in row["arguments"]]
    assert any("tensor_map" in each for each in described)
    return for_stand_in(made, "ptx")


@pytest.fixture
def bench(plans: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> Any:
    monkeypatch.setitem(random_launches.TARGETS, "nvgpu", (ARCH, "ptx", "CudaDriver"))
    native = getattr(request, "param", True)
    made = random_launches.Bench("nvgpu", product(), tmp_path, devices=1, native=native)
    yield made
    made.check()


@pytest.mark.parametrize("use_graph", [False, True])
def test_products_are_right_wherever_arrays_are(bench: Any, use_graph: bool) -> None:
    executable, driver = bench.load(use_graph), bench.driver
    stream = driver.create_stream(0)
    out = np.zeros((64, 64), np.float16)
    for seed in range(3):
        torch.manual_seed(seed)
        a, b = (torch.randn(shape).half() / 4 for shape in SHAPES)
        addresses = [bench.upload(each.numpy()) for each in (a, b)] + [bench.upload(out)]
        executable.launcher(0)(stream, *addresses)
        driver.wait(stream)
        with bench.stand_in._lock:
            found = bench.stand_in.download(addresses[-1], out)
        square = (a.double() @ b.double()).half().double()
        np.testing.assert_allclose(found, (square @ square).numpy(), rtol=0.02, atol=0.05)


def test_the_address_of_another_call_is_found(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: arrays have moved, and tensor maps still say where the first ones are."""
    torch.manual_seed(0)
    once = [torch.randn(shape).half() / 4 for shape in SHAPES]
    stale = [bench.upload(each.numpy()) for each in once]
    with_maps = LaunchPlan.with_maps

    def kept(self: LaunchPlan, encode: Any) -> LaunchPlan:
        made = with_maps(self, encode)
        slots = [
            Slot("value", 0, stale[each.row] + each.number)
            if each.of_map and each.kind == "argument" and each.row < len(stale)
            else each
            for each in made.slots
        ]
        return replace(made, slots=tuple(slots))

    monkeypatch.setattr(LaunchPlan, "with_maps", kept)
    executable, driver = bench.load(False), bench.driver
    stream, out = driver.create_stream(0), np.zeros((64, 64), np.float16)
    again = [torch.randn(shape).half() / 4 for shape in SHAPES]
    addresses = [bench.upload(each.numpy()) for each in again] + [bench.upload(out)]
    executable.launcher(0)(stream, *addresses)
    driver.wait(stream)
    with bench.stand_in._lock:
        found = bench.stand_in.download(addresses[-1], out).astype(np.float64)

    def error(a: torch.Tensor, b: torch.Tensor) -> float:
        square = (a.double() @ b.double()).numpy()
        return float(np.abs(found - square @ square).max())

    assert error(*again) > 1 > 0.2 > error(*once)


def window_program(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any], Any]:
    """A program whose windows have sides that differ, its operands, and the result."""
    monkeypatch.setitem(random_launches.TARGETS, "nvgpu", (ARCH, "ptx", "CudaDriver"))
    predict_boxes(monkeypatch)
    function = partial(windows, stride=(1, 2), padding=(2, 1))
    torch.manual_seed(0)
    x, w = torch.randn(2, 7, 9, 64).half(), torch.randn(64, 3, 5, 64).half()
    options = {"target": "nvgpu", "arch": ARCH, "simulate": True}
    made = polyblocks.aot(function, [x, w], options, frontend="torch")
    described = [each for row in made.manifest["launches"] for each in row["arguments"]]
    assert [each["tensor_map"].get("kind") for each in described if "tensor_map" in each].count(
        "im2col"
    ) == 1
    expected = function(x.double(), w.double()).numpy()
    return for_stand_in(made, "ptx"), [x.numpy(), w.numpy()], expected


# In front of the libraries for C, which open a driver for the whole process.
def test_the_loader_describes_windows(
    plans: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact, operands, expected = window_program(monkeypatch)
    bench = random_launches.Bench("nvgpu", artifact, tmp_path, devices=1, native=True)
    executable, driver = bench.load(False), bench.driver
    out = np.zeros(expected.shape, np.float16)
    addresses = [bench.upload(each) for each in (*operands, out)]
    stream = driver.create_stream(0)
    executable.launcher(0)(stream, *addresses)
    driver.wait(stream)
    with bench.stand_in._lock:
        found = bench.stand_in.download(addresses[-1], out)
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.1)
    bench.check()


def test_c_libraries_make_them(bench: Any, tmp_path: Path) -> None:
    from tests.support.c_libraries import Library
    from tests.support.stand_in_driver import DriverLibrary, StandIn

    folder = tmp_path / "driver"
    folder.mkdir()
    drivers = DriverLibrary("nvgpu", folder)
    given = bench.stand_in
    drivers.stand_in = StandIn(given.semantics, given.chips)
    library = Library(bench.artifact, tmp_path / "library")
    out = np.zeros((64, 64), np.float16)
    for seed in range(2):
        torch.manual_seed(seed)
        a, b = (torch.randn(shape).half() / 4 for shape in SHAPES)
        assert library(a.numpy(), b.numpy(), out) == 0, library.error()
        square = (a.double() @ b.double()).half().double()
        np.testing.assert_allclose(out, (square @ square).numpy(), rtol=0.02, atol=0.05)


def windows(
    x: torch.Tensor, w: torch.Tensor, stride: tuple[int, int], padding: tuple[int, int]
) -> torch.Tensor:
    last = functional.conv2d(
        x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), stride=stride, padding=padding
    )
    return last.permute(0, 2, 3, 1)


def test_c_libraries_describe_windows(
    plans: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.c_libraries import Library
    from tests.support.stand_in_driver import DriverLibrary, StandIn

    artifact, operands, expected = window_program(monkeypatch)
    given = random_launches.Bench("nvgpu", artifact, tmp_path, devices=1, native=True).stand_in
    folder = tmp_path / "driver"
    folder.mkdir()
    drivers = DriverLibrary("nvgpu", folder)
    drivers.stand_in = StandIn(given.semantics, given.chips)
    library = Library(artifact, tmp_path / "library")
    out = np.zeros(expected.shape, np.float16)
    assert library(*operands, out) == 0, library.error()
    np.testing.assert_allclose(out, expected, rtol=0.02, atol=0.1)


def refused(function: str, status: int) -> Exception:
    return ExecutionError(f"{function}: {status}")


def test_drivers_that_make_none() -> None:
    with pytest.raises(ExecutionError, match="no function cuTensorMapEncodeTiled; install"):
        tensor_maps.encode(None, _described(), 1 << 20, refused)
    with pytest.raises(ExecutionError, match="cuTensorMapEncodeTiled: 1"):
        tensor_maps.encode(_driver(1), _described(), 1 << 20, refused)
    with pytest.raises(ExecutionError, match="tensor maps of another form"):
        tensor_maps.words_of_any(_driver(0), _described(), (256, 512), refused)
    windows = replace(_described(), kind="im2col", extents=(64, 8, 2), box=(64, 8))
    with pytest.raises(ExecutionError, match="no function cuTensorMapEncodeIm2col; install"):
        tensor_maps.encode(_driver(0), windows, 1 << 20, refused)


def _driver(status: int) -> Any:
    """A library whose only function of tensor maps returns a status."""
    return SimpleNamespace(cuTensorMapEncodeTiled=lambda *given: status)


def _described() -> TensorMap:
    from polyblocks.runtime.device.plan import Slot

    return TensorMap(Slot("argument"), 2, (72, 64), (144,), (64, 64))


def test_other_vendors_make_none(bench: Any) -> None:
    from polyblocks.runtime.device.bindings import BindingsDriver

    with pytest.raises(ExecutionError, match="makes no tensor maps"):
        BindingsDriver.encode_map(bench.driver, 0, _described())


def test_words_are_behind_an_address_of_their_own(bench: Any) -> None:
    plan = read_plan(bench.artifact.manifest)
    first = next(k for k, slot in enumerate(plan.slots) if slot.of_map)
    assert [slot.kind for slot in plan.slots[first + 1 : first + 16]] == ["map"] * 15
    assert any(first in launch.slots for launch in plan.launches)
    filled = plan.with_maps(lambda each: range(16))
    assert [slot.number for slot in filled.slots[first + 1 : first + 16]] == list(range(1, 16))
    assert not filled.tensor_maps
