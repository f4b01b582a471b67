"""The benchmark of what the host spends on launches."""

from __future__ import annotations

import shutil

import pytest
from bench import device_calls, host_launches
from bench.counting_driver import CountingDriver

from polyblocks.runtime.device.launches.graphs import KEPT
from polyblocks_nvgpu.driver import CudaDriver

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="drivers are built with gcc")


def test_every_case_is_measured_beside_its_bar(tmp_path, capsys):
    path = tmp_path / "rows.json"
    assert host_launches.main(["--rounds", "1", "--number", "1", "--json", str(path)]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20
    assert lines[0].startswith("launch        plain")
    assert "(bar 60)" in lines[-1]
    assert path.read_text().count('"us"') == 20


def test_the_cases_do_what_they_are_called(tmp_path):
    api = CountingDriver(tmp_path)
    driver = CudaDriver(api, api.library)
    driver.rank = lambda *_: 0
    names = "cuLaunchKernel", "cuGraphLaunch", "cuGraphExecKernelNodeSetParams"
    for cases in (
        host_launches.launches(driver),
        device_calls.tensors(driver),
        device_calls.weights(driver),
        device_calls.protocol(driver),
    ):
        made = {}
        for case, call in cases:
            for _ in range(3):
                call()
            # Results may be at other addresses than before.
            every = []
            for _ in range(20):
                before = [api.count(name) for name in names]
                call()
                every.append([api.count(name) - n for name, n in zip(names, before, strict=True)])
            made[case] = min(every)
        launches = host_launches.LAUNCHES
        assert made["plain"] == [launches, 0, 0]
        assert made["replayed"] == [0, 1, 0]
        moved = made["new addresses"]
        assert moved[:2] == [0, 1]
        assert 0 < moved[2] <= launches


def test_calls_of_loaded_programs_leave_no_events_and_no_memory(tmp_path):
    api = CountingDriver(tmp_path)
    driver = CudaDriver(api, api.library)
    driver.rank = lambda *_: 0
    calls = [*device_calls.tensors(driver), *device_calls.protocol(driver)]
    for case, call in calls:
        for _ in range(100):
            call()
        allocated = api.count("cuMemAlloc")
        for _ in range(300):
            call()
        assert api.count("cuMemAlloc") == allocated, case
        assert api.count("cuEventCreate") - api.count("cuEventDestroy") <= 1
        assert (
            api.count("cuGraphInstantiateWithFlags") - api.count("cuGraphExecDestroy") <= 6 * KEPT
        )
