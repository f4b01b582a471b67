"""Tensor maps in launch plans: made by the driver, right wherever arrays are."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.extended.test_group_units_simulated import ARCH, plans
from tests.support import random_launches
from tests.support.stand_in_driver import for_stand_in

import polyblocks
from polyblocks.artifact import Artifact
from polyblocks.errors import ExecutionError
from polyblocks.runtime.device.plan import TensorMap, read_plan
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


def refused(function: str, status: int) -> Exception:
    return ExecutionError(f"{function}: {status}")


def test_drivers_that_make_none() -> None:
    with pytest.raises(ExecutionError, match="no function cuTensorMapEncodeTiled; install"):
        tensor_maps.encode(None, _described(), 1 << 20, refused)
    with pytest.raises(ExecutionError, match="cuTensorMapEncodeTiled: 1"):
        tensor_maps.encode(lambda *given: 1, _described(), 1 << 20, refused)
    with pytest.raises(ExecutionError, match="tensor maps of another form"):
        tensor_maps.words_of_any(lambda *given: 0, _described(), (256, 512), refused)


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
