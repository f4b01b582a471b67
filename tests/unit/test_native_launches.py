"""Launches by machine code and graphs that move, on a stand-in for the vendors' drivers."""

from __future__ import annotations

import gc
import shutil
import struct
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from bench.counting_driver import CountingDriver
from bench.host_launches import executable as counted_program
from sweeps import sweep
from tests.support.random_launches import (
    COLUMNS,
    REFUSED,
    ROWS,
    TARGETS,
    Bench,
    program,
    run,
    wanted,
)

from polyblocks.artifact import Artifact
from polyblocks.errors import ExecutionError
from polyblocks.reports.report import Report
from polyblocks.runtime.device.launches import native_launcher
from polyblocks.runtime.device.launches.graphs import KEPT
from polyblocks.runtime.device.launches.native_driver import Costs, open_loaded
from polyblocks.runtime.device.program import unload_retired
from polyblocks.runtime.native import native_code
from polyblocks_nvgpu.driver import CudaDriver

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="drivers are built with gcc")

LAUNCH = {"nvgpu": "cuLaunchKernel", "amdgpu": "hipModuleLaunchKernel"}
UPDATE = {"nvgpu": "cuGraphExecKernelNodeSetParams", "amdgpu": "hipGraphExecKernelNodeSetParams"}


@pytest.fixture(scope="module", params=sweep(sorted(TARGETS), "nvgpu"))
def target(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def artifact(target):
    return program(target)


@pytest.fixture
def bench(target, artifact, tmp_path):
    made = Bench(target, artifact, tmp_path)
    yield made
    made.check()


class Calls:
    """Calls on one device and one stream, whose results are checked."""

    def __init__(self, bench: Bench, executable, device: int = 0) -> None:
        self.bench, self.executable, self.device = bench, executable, device
        self.stream = bench.driver.create_stream(device)
        self.number = 0

    def arrays(self) -> list[int]:
        self.number += 1
        x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) * self.number
        return [self.bench.upload(each, self.device) for each in (x, 0 * x)]

    def __call__(self, arrays: list[int]) -> list[str]:
        """What the driver was asked to do besides telling what is current."""
        stand_in = self.bench.stand_in
        stand_in.calls.clear()
        self.executable.launcher(self.device)(self.stream, *arrays)
        called = [
            name for name in stand_in.calls if not name.startswith(("get_", "current", "is_"))
        ]
        self.bench.driver.wait(self.stream)
        x, out = (stand_in.download(each, np.zeros((ROWS, COLUMNS), np.float32)) for each in arrays)
        np.testing.assert_allclose(out, wanted(x), rtol=1e-5)
        stand_in.view(arrays[1])[:] = 0
        return called


@pytest.mark.parametrize("target", sorted(TARGETS), indirect=True)
def test_addresses_that_come_again_are_recorded_and_others_moved_there(bench):
    executable = bench.load()
    calls = Calls(bench, executable)
    first, second = calls.arrays(), calls.arrays()
    kernels = len(bench.artifact.manifest["launches"])
    assert calls(first)[-kernels:] == ["launch"] * kernels
    assert calls(first) == ["create_graph", *["add_node"] * kernels, "instantiate", "replay"]
    assert calls(first) == ["replay"]
    moved = calls(second)
    assert moved[-1] == "replay"
    assert set(moved[:-1]) == {"update_node"}
    assert len(moved) - 1 <= kernels
    assert calls(second) == ["replay"]
    # The addresses from before are known, and get a graph of their own again.
    assert calls(first)[0] == "instantiate"
    assert calls(second) == calls(first) == ["replay"]
    facts = executable.program(0).graph_facts()
    assert (facts["graphs"], facts["kernels"]) == (2, 2 * kernels)
    assert facts["host_bytes"] > 0
    executable.close()
    assert not bench.stand_in.executables
    assert not bench.stand_in.graphs


def test_only_kernels_whose_addresses_changed_are_updated(bench):
    calls = Calls(bench, bench.load())
    x, out = calls.arrays()
    (other,) = calls.arrays()[1:]
    for _ in range(2):
        calls([x, out])
    uses = [
        any(operand.get("argument") == 1 for operand in launch["arguments"])
        for launch in bench.artifact.manifest["launches"]
    ]
    assert 0 < sum(uses) < len(uses)
    assert calls([x, other]) == [*["update_node"] * sum(uses), "replay"]


@pytest.mark.parametrize("use_graph", [True, False])
def test_graphs_at_once_and_never(bench, use_graph):
    calls = Calls(bench, bench.load(use_graph))
    arrays = calls.arrays()
    made = [calls(arrays)[-1] for _ in range(3)]
    assert made == (["replay"] * 3 if use_graph else ["launch"] * 3)


def test_graphs_belong_to_a_stream(bench):
    executable = bench.load()
    one, other = Calls(bench, executable), Calls(bench, executable)
    arrays = one.arrays()
    for _ in range(2):
        one(arrays)
    new = one.arrays()
    assert other(new)[-1] == "launch", "the graph of another stream is not moved"
    assert other(new)[-1] == "replay"
    assert one(arrays) == ["replay"]


def test_a_bounded_number_of_graphs_is_kept(bench):
    executable = bench.load()
    calls = Calls(bench, executable)
    arrays = [calls.arrays() for _ in range(KEPT + 5)]
    for _ in range(3):
        for each in arrays:
            calls(each)
    assert len(bench.stand_in.executables) == executable.program(0).graph_facts()["graphs"] == KEPT
    other = Calls(bench, executable)
    for _ in range(2):
        other(arrays[0])
    assert len(bench.stand_in.executables) == KEPT, "of another stream one is given up"
    executable.close()
    assert not bench.stand_in.executables


@pytest.mark.parametrize("target", sorted(TARGETS), indirect=True)
def test_a_launch_that_the_driver_refuses_is_named(bench, target):
    calls = Calls(bench, bench.load())
    arrays = calls.arrays()
    kernel = bench.artifact.manifest["launches"][1]["kernel"]
    message = f"{LAUNCH[target]} of '{kernel}' failed: illegal address"
    start = bench.stand_in.counts["launch"]
    bench.stand_in.refuse = lambda name, n: REFUSED * (name == "launch" and n == start + 2)
    with pytest.raises(ExecutionError, match=message):
        calls(arrays)
    bench.stand_in.refuse = lambda name, n: 0
    calls(arrays)


@pytest.mark.parametrize("method", ["create_graph", "add_node", "instantiate", "replay"])
def test_a_driver_that_refuses_graphs_gets_launches(bench, method):
    executable = bench.load()
    calls = Calls(bench, executable)
    arrays = calls.arrays()
    calls(arrays)
    bench.stand_in.failing = {method: REFUSED}
    assert calls(arrays)[-1] == "launch"
    assert "illegal address" in executable.program(0).graph_facts()["stopped"]
    bench.stand_in.failing = {}
    assert set(calls(arrays)) == {"launch"}, "it is not tried again"
    assert not bench.stand_in.executables
    executable.close()
    assert not bench.stand_in.graphs


@pytest.mark.parametrize("target", sorted(TARGETS), indirect=True)
def test_an_update_that_fails_in_the_middle_leaves_no_graph(bench, target):
    executable = bench.load()
    calls = Calls(bench, executable)
    arrays = calls.arrays()
    for _ in range(2):
        calls(arrays)
    start = bench.stand_in.counts["update_node"]
    bench.stand_in.refuse = lambda name, n: REFUSED * (name == "update_node" and n == start + 2)
    assert calls(calls.arrays())[-1] == "launch"
    stopped = executable.program(0).graph_facts()["stopped"]
    assert stopped.startswith(f"{UPDATE[target]} of '")
    assert not bench.stand_in.executables


@pytest.mark.parametrize(
    "kind, method",
    [("NativeFrame", "replay"), ("NativeFrame", "move"), ("NativeDriver", "instantiate")],
)
def test_interrupted_calls_leave_no_graph(bench, monkeypatch, kind, method):
    executable = bench.load()
    calls = Calls(bench, executable)
    arrays = calls.arrays()
    for _ in range(1 if method == "instantiate" else 2):
        calls(arrays)

    def interrupted(*_):
        raise KeyboardInterrupt("by the user")

    given = calls.arrays() if method == "move" else arrays
    with monkeypatch.context() as patch:
        patch.setattr(getattr(native_launcher, kind), method, interrupted)
        with pytest.raises(KeyboardInterrupt, match="by the user"):
            calls(given)
    facts = executable.program(0).graph_facts()
    assert (facts["graphs"], facts["stopped"]) == (0, "")
    assert not bench.stand_in.executables
    calls(arrays)
    assert executable.program(0).graph_facts()["graphs"] == 1


@pytest.mark.parametrize("target", sorted(TARGETS), indirect=True)
def test_a_device_that_is_lost_is_told_as_without_graphs(bench, target):
    calls = Calls(bench, bench.load())
    arrays = calls.arrays()
    for _ in range(3):
        calls(arrays)
    bench.stand_in.failing = {"replay": REFUSED, "launch": REFUSED}
    kernel = bench.artifact.manifest["launches"][0]["kernel"]
    with pytest.raises(ExecutionError, match=f"{LAUNCH[target]} of '{kernel}' failed"):
        calls(arrays)


def test_a_recording_of_the_callers_takes_launches(bench):
    executable = bench.load()
    calls = Calls(bench, executable)
    arrays = calls.arrays()
    for _ in range(2):
        calls(arrays)
    nbytes, launch = executable.workspace_launcher(0)
    workspace = bench.driver.allocate(0, nbytes)
    for _ in range(2):  # known addresses, too
        launch(calls.stream, workspace, *arrays)
    bench.stand_in.calls.clear()
    kernels = len(bench.artifact.manifest["launches"])
    graph = bench.driver.capture(0, lambda stream: launch(stream, workspace, *arrays))
    again = bench.driver.capture(0, lambda stream: launch(stream, workspace, *arrays))
    assert bench.stand_in.calls.count("launch") == 2 * kernels
    assert "replay" not in bench.stand_in.calls
    bench.driver.wait(calls.stream)
    for each in (graph, again):
        bench.stand_in.view(arrays[1])[:] = 0
        bench.driver.replay(each, calls.stream)
        bench.driver.wait(calls.stream)
        x, out = (bench.stand_in.download(a, np.zeros((ROWS, COLUMNS), np.float32)) for a in arrays)
        np.testing.assert_allclose(out, wanted(x), rtol=1e-5)


def test_a_stream_that_the_caller_records_takes_launches_also_of_known_addresses(bench):
    executable = bench.load()
    calls = Calls(bench, executable)
    arrays, other = calls.arrays(), calls.arrays()
    nbytes, launch = executable.workspace_launcher(0)
    workspace = bench.driver.allocate(0, nbytes)
    for _ in range(3):
        launch(calls.stream, workspace, *arrays)
    bench.driver.wait(calls.stream)
    for each in (arrays, other):  # known ones, and those that would be moved to
        bench.stand_in.calls.clear()
        bench.driver.begin_capture(calls.stream)
        launch(calls.stream, workspace, *each)
        graph = bench.driver.end_capture(calls.stream)
        assert "launch" in bench.stand_in.calls
        assert not {"replay", "update_node"} & set(bench.stand_in.calls)
        bench.driver.replay(graph, calls.stream)
        bench.driver.wait(calls.stream)
        x, out = (bench.stand_in.download(a, np.zeros((ROWS, COLUMNS), np.float32)) for a in each)
        np.testing.assert_allclose(out, wanted(x), rtol=1e-5)
        bench.driver.destroy_graph(graph)
    launch(calls.stream, workspace, *arrays)
    assert bench.stand_in.calls[-1] == "replay", "afterwards it is as before"
    bench.driver.wait(calls.stream)


def test_calls_of_one_hash_are_told_apart(tmp_path):
    api = CountingDriver(tmp_path)
    driver = CudaDriver(api, api.library)
    driver.rank = lambda *_: 0
    loaded = counted_program(driver, "auto", arrays=6, launches=4)
    _, launch = loaded.workspace_launcher(0)
    one, other = [0, *range(5)], [(1 << 61) - 1, *range(5)]
    assert hash(tuple(one)) == hash(tuple(other))
    for _ in range(3):
        launch(7, 1 << 20, *one)
    replays, updates = api.count("cuGraphLaunch"), api.count("cuGraphExecKernelNodeSetParams")
    launch(7, 1 << 20, *other)
    assert api.count("cuGraphLaunch") == replays + 1
    assert api.count("cuGraphExecKernelNodeSetParams") > updates


def test_arrays_of_the_host_are_copied_around_a_replay(bench):
    executable = bench.load()
    outputs = [row["role"] == "output" for row in executable.manifest["arguments"]]
    assert outputs == [False, True]
    for number in range(1, 5):
        x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) * number
        out = np.zeros_like(x)
        bench.stand_in.calls.clear()
        assert executable.entry(struct.pack("2Q", x.ctypes.data, out.ctypes.data), 1) == 0
        np.testing.assert_allclose(out, wanted(x), rtol=1e-5)
        assert ("replay" in bench.stand_in.calls) == (number > 1)
    executable.close()
    assert not bench.stand_in.executables


def looked_up(x, i):
    """Several kernels, one of which checks its places."""
    return x - x[i].sum(dim=0).sum() / 4


@pytest.mark.parametrize("target", sorted(TARGETS), indirect=True)
def test_failed_checks_of_replayed_programs_are_told_by_the_next_call(target, tmp_path):
    import torch

    given = [torch.rand(ROWS, COLUMNS), torch.tensor([0, 1])]
    bench = Bench(target, program(target, looked_up, given), tmp_path)
    executable = bench.load()
    if len(executable.manifest["launches"]) < 2:
        pytest.fail("the program has one kernel, which is no graph")
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    stream = bench.driver.create_stream(0)
    places = np.array([0, 2])
    arrays = [bench.upload(each) for each in (x, places, 0 * x)]
    launch = executable.launcher(0)
    for right in (True, True, True, False):
        bench.stand_in.view(arrays[1])[:] = np.frombuffer(
            (places if right else places + 7).tobytes(), np.uint8
        )
        bench.stand_in.calls.clear()
        launch(stream, *arrays)
        bench.driver.wait(stream)
    assert "replay" in bench.stand_in.calls
    with pytest.raises(ExecutionError, match="index out of range.*in an earlier call"):
        launch(stream, *arrays)
    bench.stand_in.view(arrays[1])[:] = np.frombuffer(places.tobytes(), np.uint8)
    launch(stream, *arrays)
    bench.driver.wait(stream)
    out = bench.stand_in.download(arrays[2], x)
    np.testing.assert_allclose(out, x - x[places].sum() / 4, rtol=1e-5)
    executable.close()
    assert not bench.stand_in.pinned
    bench.check()


def test_graphs_stand_in_the_report(bench):
    report = Report()
    bench.artifact = Artifact.from_bytes(bench.artifact.to_bytes())
    report.add_artifact(bench.artifact)
    executable = bench.load()
    assert report.graphs() == []
    calls = Calls(bench, executable, device=1)
    arrays = calls.arrays()
    for _ in range(2):
        calls(arrays)
    (row,) = report.graphs()
    kernels = len(bench.artifact.manifest["launches"])
    assert (row["device"], row["graphs"], row["kernels"], row["stopped"]) == (1, 1, kernels, "")
    assert row["host_bytes"] > 0
    assert f"on device 1: 1 recorded as graphs, {kernels} kernels, " in str(report)
    bench.stand_in.failing = {"replay": REFUSED}
    calls(arrays)
    (row,) = report.graphs()
    assert (row["graphs"], row["kernels"]) == (0, 0)
    assert "no more are recorded: " in str(report)
    assert "illegal address" in str(report)
    executable.close()
    assert report.graphs() == []


def test_two_devices_have_graphs_of_their_own(bench):
    executable = bench.load()
    both = [Calls(bench, executable, device) for device in (0, 1)]
    arrays = [calls.arrays() for calls in both]
    for _ in range(3):
        made = [calls(each) for calls, each in zip(both, arrays, strict=True)]
    assert ["replay" in each and "launch" not in each for each in made] == [True, True]
    assert [executable.program(d).graph_facts()["graphs"] for d in (0, 1)] == [1, 1]
    assert bench.driver.current_device() == 0


def test_without_llvm_python_makes_the_launches(bench, monkeypatch):
    monkeypatch.setattr(native_launcher, "_launcher", [None])
    calls = Calls(bench, bench.load())
    arrays = calls.arrays()
    assert calls(arrays)[-1] == "launch"
    recorded = calls(arrays)
    assert "begin_capture" in recorded
    assert recorded[-1] == "replay"
    assert calls(arrays) == ["replay"]
    assert calls(calls.arrays())[-1] == "launch"


def test_llvm_may_be_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(native_launcher, "_launcher", [])
    monkeypatch.setattr(native_code, "_placed", {})
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert native_launcher.native_launcher() is not None, "it was compiled before"
    monkeypatch.setattr(native_launcher, "_launcher", [])
    monkeypatch.setattr(native_code, "_placed", {})
    monkeypatch.setattr(native_code, "_objects", {})
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    assert native_launcher.native_launcher() is None
    assert native_launcher._launcher == [None], "it is looked for once"


def test_a_program_that_is_closed_says_so(bench):
    executable = bench.load()
    calls = Calls(bench, executable)
    arrays = calls.arrays()
    for _ in range(3):
        calls(arrays)
    nbytes, launch = executable.workspace_launcher(0)
    executable.close()
    with pytest.raises(ExecutionError, match="is closed; load it again"):
        launch(calls.stream, bench.driver.allocate(0, nbytes), *arrays)
    assert not bench.stand_in.executables
    _, launch = executable.workspace_launcher(0)
    del executable, calls.executable
    gc.collect()
    unload_retired(bench.driver)
    with pytest.raises(ExecutionError, match="the program is closed; load it again"):
        launch(calls.stream, bench.driver.allocate(0, nbytes), *arrays)
    assert not bench.stand_in.modules


def test_without_addresses_python_makes_the_launches(target, artifact, tmp_path):
    bench = Bench(target, artifact, tmp_path, native=False)
    assert bench.driver.native is None
    calls = Calls(bench, bench.load())
    arrays = calls.arrays()
    assert [calls(arrays)[-1] for _ in range(3)] == ["launch", "replay", "replay"]
    bench.check()


def test_a_library_without_graphs_of_nodes_records(bench):
    bench.driver.native.has_graphs = False
    calls = Calls(bench, bench.load())
    arrays = calls.arrays()
    calls(arrays)
    assert "begin_capture" in calls(arrays)
    assert calls(arrays) == ["replay"]


def test_a_library_that_lacks_functions_is_not_used():
    api = SimpleNamespace(CUresult=None)
    assert CudaDriver(api, open_loaded("libc.so.6")).native is None
    assert CudaDriver(api).native is None


def test_when_moving_a_graph_is_cheaper():
    costs = Costs(launch=2e-6, replay=2.5e-6, replayed_node=0.2e-6, update_node=1e-6)
    assert [costs.most_updates(n) for n in (1, 2, 3, 4, 157)] == [0, 1, 2, 4, 157]


def test_a_library_that_is_not_loaded_is_not_opened():
    assert open_loaded("libm-of-nobody.so.9") is None
    assert open_loaded("libc.so.6") is not None


def test_random_calls_of_several_threads(bench):
    counts = run(bench, 160)
    assert min(counts[name] for name in ("launch", "replay", "update_node", "instantiate")) > 0


@pytest.mark.parametrize("calls", sweep((8_000, 100_000), 8_000))
def test_calls_keep_no_memory(calls, tmp_path):
    api = CountingDriver(tmp_path)
    driver = CudaDriver(api, api.library)
    driver.rank = lambda *_: 0
    loaded = counted_program(driver, "auto", arrays=6, launches=4)
    _, launch = loaded.workspace_launcher(0)

    def call(n: int) -> None:
        # Addresses that come again, some that move, some streams.
        base = 4096 * (n % 5 if n % 3 else n)
        launch(n % 4, 1 << 20, *[base + 4096 * k for k in range(6)])

    for n in range(2000):
        call(n)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for n in range(2000, 2000 + calls):
            call(n)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 64 << 10
    made, given_up = api.count("cuGraphInstantiateWithFlags"), api.count("cuGraphExecDestroy")
    assert 0 < made - given_up <= KEPT
    assert api.count("cuGraphExecKernelNodeSetParams") > 1000
    loaded.close()
    assert api.count("cuGraphExecDestroy") == made
    assert api.count("cuGraphDestroy") == api.count("cuGraphCreate") == 1
