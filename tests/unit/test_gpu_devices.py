"""The device that is present, as a driver describes it: a made-up driver, and made-up files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from polyblocks.errors import TargetError
from polyblocks.options import CompileOptions
from polyblocks.target import TargetDescription
from polyblocks.targets.gpu_description import STREAMED
from polyblocks_amdgpu import device as amd
from polyblocks_amdgpu.describe import describe as describe_amd
from polyblocks_nvgpu import device as nvidia
from polyblocks_nvgpu.describe import describe as describe_nvidia

NOT_FOUND = 1
NO_DEVICE = 100

H200 = {
    "clock_khz": 1980000, "multiprocessors": 132, "memory_khz": 3201000, "bus_bits": 6144,
    "l2": 62914560, "threads": 2048, "major": 9, "minor": 0, "shared": 233472,
    "registers": 65536, "shared_per_block_optin": 232448, "blocks": 32, "shared_reserved": 1024,
}  # fmt: skip


class Driver:
    """The functions of the driver's library that are asked; devices are (name, attributes)."""

    def __init__(self, *devices: tuple[str, dict[str, int]], current: int | None = None) -> None:
        self.devices = devices
        self.current = current
        self.status = 0
        self.names = {number: name for name, number in nvidia.ATTRIBUTES.items()}

    def cuInit(self, flags: int) -> int:
        assert flags == 0
        return self.status

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = len(self.devices)
        return 0

    def cuCtxGetDevice(self, device: Any) -> int:
        if self.current is None:
            return 201
        device._obj.value = self.current
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> int:
        if index >= len(self.devices):
            return NO_DEVICE
        device._obj.value = index
        return 0

    def cuDeviceGetName(self, text: Any, size: int, device: Any) -> int:
        text.value = self.devices[device.value][0].encode()[: size - 1]
        return 0

    def cuDeviceGetAttribute(self, value: Any, number: int, device: Any) -> int:
        facts = self.devices[device.value][1]
        name = self.names[number]
        if name not in facts:
            return NOT_FOUND
        value._obj.value = facts[name]
        return 0

    def cuGetErrorName(self, status: int, text: Any) -> int:
        if status != NO_DEVICE:
            return NOT_FOUND
        text._obj.value = b"CUDA_ERROR_NO_DEVICE"
        return 0


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a driver the one of this machine."""

    def install(driver: Driver) -> Driver:
        monkeypatch.setattr(nvidia, "load", lambda name: driver)
        return driver

    return install


def here(**options: Any) -> TargetDescription:
    return describe_nvidia(CompileOptions(target="nvgpu", **options))


def test_a_device_of_the_table(drive: Any) -> None:
    drive(Driver(("NVIDIA H200", H200)))
    found = here()
    named = here(arch="h200")
    assert (found.arch, found.properties["chip"]) == ("sm_90a", "h200")
    assert found.multiprocessor == named.multiprocessor
    assert found.flops == named.flops
    assert found.matrix_units == named.matrix_units
    assert found.memory[:-1] == named.memory[:-1]
    # What the clock and the width of the bus give is a little more than what the data sheet says.
    assert found.memory[-1].bandwidth == pytest.approx(STREAMED * 4.917e12, rel=1e-3)
    assert here(arch="native").fingerprint() == found.fingerprint()


def test_a_device_that_the_table_does_not_have(drive: Any) -> None:
    """A mobile part: its own numbers where it says them, its kin's elsewhere."""
    facts = {"major": 8, "minor": 9, "multiprocessors": 76, "clock_khz": 2040000}
    drive(Driver(("NVIDIA GeForce RTX 4090 Laptop GPU", facts)))
    found, kin = here(), here(arch="sm_89")
    assert found.arch == "sm_89"
    assert found.properties["chip"] == "NVIDIA GeForce RTX 4090 Laptop GPU"
    assert found.parallel[0].size == 76
    assert found.flops["float32"] == pytest.approx(2 * 128 * 76 * 2.04e9)
    assert found.multiprocessor == replace(kin.multiprocessor, count=76)
    assert found.memory[-1].bandwidth == kin.memory[-1].bandwidth
    best = found.matrix_units[0]
    assert (best.accumulator, best.flops) == ("float32", pytest.approx(2 * 256 * 76 * 2.04e9))


def test_a_device_newer_than_the_table(drive: Any) -> None:
    drive(Driver(("NVIDIA Next", {**H200, "major": 13, "threads": 4096})))
    found = here()
    assert found.arch == "sm_121"
    assert found.multiprocessor is not None
    assert found.multiprocessor.threads == 4096


def test_the_device_of_the_current_context_is_meant(drive: Any) -> None:
    small = {"major": 7, "minor": 5, "multiprocessors": 40}
    devices = (("NVIDIA H200", H200), ("Tesla T4", small))
    drive(Driver(*devices))
    assert here().arch == "sm_90a"
    drive(Driver(*devices, current=1))
    assert here().arch == "sm_75"


@pytest.mark.parametrize(
    "status, reason",
    [
        (NO_DEVICE, r"the driver finds no device \(CUDA_ERROR_NO_DEVICE\)"),
        (3, r"the driver finds no device \(error 3\)"),
        (0, "the driver finds no device; name one"),
    ],
)
def test_a_driver_without_a_device(drive: Any, status: int, reason: str) -> None:
    drive(Driver()).status = status
    with pytest.raises(TargetError, match=f"'nvgpu' has no device to generate code for: {reason}"):
        here()


def test_a_context_on_a_device_that_is_gone(drive: Any) -> None:
    drive(Driver(("NVIDIA H200", H200), current=7))
    with pytest.raises(TargetError, match="cuDeviceGet of the driver failed .CUDA_ERROR_NO_DEV"):
        here()


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "LIBRARY", "libno-such-driver.so.1")
    message = (
        r"target 'nvgpu' has no device to generate code for: no driver is installed "
        r"\(libno-such-driver.so.1 is not found\); name one, for example "
        r"compile_options={'target': 'nvgpu', 'arch': 'sm_90a'}"
    )
    with pytest.raises(TargetError, match=message):
        here()


# --- AMD -----------------------------------------------------------------------------------------

CPU = {"cpu_cores_count": 16, "simd_count": 0, "gfx_target_version": 0}
NAVI31 = {
    "simd_count": 192, "simd_per_cu": 2, "gfx_target_version": 110000, "unique_id": 0xABC,
    "max_engine_clk_fcompute": 2482,
}  # fmt: skip
NAVI33 = {**NAVI31, "simd_count": 64, "gfx_target_version": 110002, "unique_id": 0xDEF}
CACHES = ({"level": 1, "size": 32}, {"level": 2, "size": 6144}, {"level": 3, "size": 98304})


def write(folder: Path, facts: dict[str, int]) -> None:
    folder.mkdir(parents=True)
    lines = [f"{name} {value}\n" for name, value in facts.items()]
    (folder / "properties").write_text("".join(lines))


@pytest.fixture
def topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make processors those of this machine, in the form of the driver's files."""
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)

    def install(*nodes: dict[str, int]) -> Path:
        folder = tmp_path / "nodes"
        for number, facts in enumerate(nodes):
            write(folder / str(number), facts)
            for index, cache in enumerate(CACHES if facts["simd_count"] else ()):
                write(folder / str(number) / "caches" / str(index), cache)
        monkeypatch.setattr(amd, "TOPOLOGY", folder)
        monkeypatch.setattr(amd, "DRIVER", tmp_path)
        return folder

    return install


def here_amd(**options: Any) -> TargetDescription:
    return describe_amd(CompileOptions(target="amdgpu", **options))


def test_an_amd_device(topology: Any) -> None:
    topology(CPU, NAVI31)
    found = here_amd()
    assert (found.arch, found.properties["chip"]) == ("gfx1100", "rx-7900-xtx")
    assert found.parallel[0].size == 48
    assert found.flops["float32"] == pytest.approx(2 * 256 * 48 * 2.482e9)
    assert [level.size >> 20 for level in found.memory[2:]] == [6, 96, 0]
    assert here_amd(arch="native") == found


def test_an_amd_device_with_fewer_units(topology: Any) -> None:
    topology({**NAVI33, "simd_count": 56})
    found = here_amd()
    assert (found.arch, found.properties["chip"]) == ("gfx1102", "w7500")
    assert found.parallel[0].size == 14


@pytest.mark.parametrize(
    "environment, archs",
    [
        ({}, "gfx1100 gfx1102"),
        ({"HIP_VISIBLE_DEVICES": "1"}, "gfx1102"),
        ({"HIP_VISIBLE_DEVICES": "1,0"}, "gfx1102 gfx1100"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, "gfx1102"),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, "gfx1100"),
        ({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}, "gfx1102"),
        ({"ROCR_VISIBLE_DEVICES": "GPU-0000000000000def"}, "gfx1102"),
        ({"HIP_VISIBLE_DEVICES": "0,7,1"}, "gfx1100"),
        ({"HIP_VISIBLE_DEVICES": ""}, ""),
        ({"ROCR_VISIBLE_DEVICES": "-1"}, ""),
    ],
)
def test_visible_devices(topology: Any, environment: dict[str, str], archs: str) -> None:
    folder = topology(CPU, NAVI31, NAVI33)
    found = amd.read_topology(folder, environment)
    assert [device.arch for device in found] == archs.split()
    assert [device.index for device in found] == list(range(len(found)))


def test_no_amd_device(topology: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    topology(CPU, NAVI31)
    monkeypatch.setitem(os.environ, "HIP_VISIBLE_DEVICES", "")
    with pytest.raises(TargetError, match="no device that this process may see; name one, for ex"):
        here_amd()
    monkeypatch.setattr(amd, "DRIVER", Path("/no/such/driver"))
    message = (
        r"target 'amdgpu' has no device to generate code for: no driver is installed "
        r"\(/no/such/driver is not there\); name one, for example "
        r"compile_options={'target': 'amdgpu', 'arch': 'gfx1100'}"
    )
    with pytest.raises(TargetError, match=message):
        here_amd()


def test_an_amd_device_of_another_kind(topology: Any) -> None:
    topology({**NAVI31, "gfx_target_version": 90010})
    with pytest.raises(TargetError, match="the device here is a gfx90a; .* code for gfx11"):
        here_amd()


def test_files_that_cannot_be_read(topology: Any) -> None:
    folder = topology(NAVI31)
    (folder / "0" / "properties").unlink()
    assert amd.read_topology(folder, {}) == []
