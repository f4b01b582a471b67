"""Calls of GPU programs in machine code, on a stand-in for the vendors' drivers."""

from __future__ import annotations

import dataclasses
import gc
import shutil
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from sweeps import sweep
from tests.support.random_launches import COLUMNS, REFUSED, ROWS, TARGETS, Bench, program, wanted

import polyblocks
from polyblocks.errors import ExecutionError
from polyblocks.runtime.bound_weights import bind_weights
from polyblocks.runtime.device.launches.graphs import KEPT
from polyblocks.runtime.launch import bind
from polyblocks.runtime.native.dispatch import dispatched
from polyblocks.runtime.slots import WEIGHT_NAMES

torch = pytest.importorskip("torch")

from tests.support.gpu_tensors import GpuTensors  # noqa: E402

from polyblocks_torch.launch import native_reader  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="drivers are built with gcc")


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
    """A program as a function of tensors, in Python (``slow``) and in machine code (``fast``)."""

    def __init__(
        self, bench: Bench, use_graph: bool | str = "auto", interface: Any = None, **settings: Any
    ) -> None:
        self.bench = bench
        self.interface = interface or GpuTensors(bench)
        self.executable = bench.load(use_graph)
        self.slow = bind(self.executable, self.interface, **settings)
        slow = self.slow
        self.fast = dispatched(slow, lambda *_: slow)

    def values(self, number: float) -> np.ndarray:
        return np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) * number

    def tensor(self, number: float = 1, device: int = 0) -> torch.Tensor:
        return self.interface.tensor(self.values(number), device)

    def __call__(self, *tensors: torch.Tensor, call: Any = None) -> list[str]:
        """Functions of the driver that a call has called, whose result is checked."""
        stand_in = self.bench.stand_in
        stand_in.calls.clear()
        described = self.interface.described
        result = (call or self.fast)(*tensors)
        self.described = self.interface.described - described
        called = [
            name
            for name in stand_in.calls
            if not name.startswith(("get_", "current", "is_", "allocate"))
        ]
        for stream in self.interface.stream_of.values():
            self.bench.driver.wait(stream)
        x = tensors[0].detach().numpy()
        np.testing.assert_allclose(result.detach().numpy(), wanted(x), rtol=1e-5)
        return called


@pytest.mark.parametrize("target", sorted(TARGETS), indirect=True)
def test_arrays_are_read_and_graphs_replayed_without_python(bench):
    calls = Calls(bench)
    x = calls.tensor()
    kernels = len(bench.artifact.manifest["launches"])
    assert calls(x)[-kernels:] == ["launch"] * kernels
    assert calls.described > 0
    calls(x)
    assert calls.fast.__self__.count == 2, "two classes of tensors"
    for number in range(2, 5):
        called = calls(calls.tensor(number))
        assert calls.described == 0
        assert called[-1] in ("replay", "launch")


class Again(GpuTensors):
    """Gives the same memory for each result, as an allocator does when results are given up."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.memory: dict[Any, torch.Tensor] = {}

    def empty(self, spec, device):
        if (spec, device) not in self.memory:
            self.memory[spec, device] = super().empty(spec, device)
        return self.memory[spec, device]


def python_launches(calls: Calls, monkeypatch) -> list[int]:
    """Gets an item for each launch that Python makes."""
    made: list[int] = []
    graphs = calls.executable.program(0)._graphs
    plain = type(graphs).__call__

    def counted(self, *arguments):
        made.append(1)
        return plain(self, *arguments)

    monkeypatch.setattr(type(graphs), "__call__", counted)
    return made


def test_what_python_does_is_record_and_move(bench, monkeypatch):
    calls = Calls(bench, interface=Again(bench))
    one, other = calls.tensor(1), calls.tensor(2)
    for _ in range(3):
        calls(one)
    made = python_launches(calls, monkeypatch)
    assert calls(one) == ["replay"]
    assert made == []
    moved = calls(other)
    assert moved[-1] == "replay"
    assert set(moved[:-1]) == {"update_node"}
    assert made == [1]
    assert calls(other) == ["replay"]
    assert made == [1]
    assert calls(one)[0] == "instantiate"
    for each in (one, other, other, one):
        assert calls(each) == ["replay"]
    assert made == [1, 1]
    facts = calls.executable.program(0).graph_facts()
    assert facts["graphs"] == 2


def test_the_graph_that_machine_code_used_last_is_moved_last(bench, monkeypatch):
    from polyblocks.runtime.device.launches import graphs

    monkeypatch.setattr(graphs, "KEPT", 2)
    calls = Calls(bench, interface=Again(bench))
    one, two, three = (calls.tensor(n) for n in (1, 2, 3))
    for each in (one, one, one, two, one, two, one, one):
        calls(each)
    made = python_launches(calls, monkeypatch)
    for each in (one, two, one):
        assert calls(each) == ["replay"]
    assert made == []
    assert calls(three)[-1] == "replay"
    assert calls(one) == ["replay"], "not the one that was used last"
    assert made == [1]


def test_graphs_belong_to_the_stream_that_is_current(bench, monkeypatch):
    calls = Calls(bench, interface=Again(bench))
    x = calls.tensor()
    for _ in range(3):
        calls(x)
    first = calls.interface.stream_of[0]
    calls.interface.stream_of[0] = bench.driver.create_stream(0)
    made = python_launches(calls, monkeypatch)
    assert "launch" in calls(x)
    assert calls(x)[0] == "instantiate"
    assert len(made) == 2
    assert calls(x) == ["replay"]
    calls.interface.stream_of[0] = first
    assert calls(x) == ["replay"]
    assert len(made) == 2


def test_launches_one_by_one_take_new_addresses(bench):
    calls = Calls(bench, use_graph=False)
    kernels = len(bench.artifact.manifest["launches"])
    for number in range(1, 6):
        assert calls(calls.tensor(number))[-kernels:] == ["launch"] * kernels
    assert calls.described == 0
    frames = list(calls.executable.program(0)._frames)
    calls(calls.tensor(7))
    assert calls.executable.program(0)._frames == frames, "Python's are not used"


def test_a_stream_that_the_caller_records_takes_launches(bench):
    calls = Calls(bench, interface=Again(bench))
    x = calls.tensor()
    for _ in range(3):
        calls(x)
    stream = calls.interface.stream_of[0]
    bench.stand_in.calls.clear()
    bench.driver.begin_capture(stream)
    result = calls.fast(x)
    graph = bench.driver.end_capture(stream)
    assert "launch" in bench.stand_in.calls
    assert "replay" not in bench.stand_in.calls
    result.zero_()
    bench.driver.replay(graph, stream)
    bench.driver.wait(stream)
    np.testing.assert_allclose(result.numpy(), wanted(x.numpy()), rtol=1e-5)
    bench.driver.destroy_graph(graph)
    assert calls(x) == ["replay"]


def test_each_device_has_code_of_its_own(bench):
    calls = Calls(bench)
    for _ in range(3):
        calls(calls.tensor(1))
    for _ in range(3):
        calls(calls.tensor(2, device=1))
    for device in (0, 1, 1, 0):
        bench.driver.activate(device)
        calls(calls.tensor(3, device))
        assert calls.described == 0


def test_another_device_that_is_current_stays_current(bench):
    calls = Calls(bench)
    x = calls.tensor()
    for _ in range(3):
        calls(x)
    bench.driver.activate(1)
    calls(x)
    assert calls.described == 0
    assert bench.stand_in.current == 1
    bench.driver.activate(0)


def outcome(call: Any, *tensors: Any, **named: Any) -> tuple[type, str]:
    try:
        call(*tensors, **named)
    except Exception as error:
        return type(error), str(error)
    return type(None), ""


def test_errors_are_those_of_python(bench):
    calls = Calls(bench)
    x = calls.tensor()
    for _ in range(3):
        calls(x)
    make = calls.interface.tensor
    wrong = [
        (),
        (x, x),
        (None,),
        (make(np.zeros((ROWS, COLUMNS), np.float64)),),
        (make(np.zeros((COLUMNS, ROWS), np.float32)),),
        (make(np.zeros((COLUMNS, ROWS), np.float32)).T,),
        (make(np.zeros((1, ROWS, COLUMNS), np.float32)),),
        (make(np.zeros(ROWS * COLUMNS * 4 + 1, np.uint8))[1:].numpy().view(np.float32),),
        (torch._neg_view(x),),
        (x.to_sparse(),),
    ]
    for given in wrong:
        expected = outcome(calls.slow, *given)
        assert expected[1] != ""
        assert outcome(calls.fast, *given) == expected
    assert outcome(calls.fast, x=x)[0] is TypeError
    with pytest.raises(polyblocks.errors.InputError, match=r"takes 1 array, got 2"):
        calls.fast(x, x)
    calls(x)
    assert calls.described == 0


@pytest.mark.parametrize("field", ["device", "index"])
def test_tensors_of_other_devices_are_left_to_python(bench, field):
    class Elsewhere(GpuTensors):
        def device_reader(self, device):
            made = super().device_reader(device)
            state = type(made.state)(*made.state)
            place = native_reader.STATE.index(field)
            state[place] = 1 + (state[place] or 0) % 2**32
            return dataclasses.replace(made, state=state)

    calls = Calls(bench, interface=Elsewhere(bench))
    for _ in range(4):
        calls(calls.tensor())
        assert calls.described > 0


def test_tensors_of_a_gpu_have_a_reader_that_takes_none_of_the_host():
    reader = native_reader.reader(torch.device("cuda", 3))
    host = native_reader.reader()
    assert reader is not None
    names = native_reader.STATE
    places = {name: (a, b) for name, a, b in zip(names, reader.state, host.state, strict=True)}
    different = {name for name, (a, b) in places.items() if a != b}
    assert different == {"device", "index"}
    assert (places["device"][0], places["index"][0]) == (1, 3)


@pytest.mark.parametrize("use_graph", [False, "auto"])
def test_a_launch_that_the_driver_refuses_is_named(bench, use_graph):
    calls = Calls(bench, use_graph)
    for _ in range(3):
        calls(calls.tensor())
    launches = bench.artifact.manifest["launches"]
    for number in range(len(launches)):
        before = bench.stand_in.counts["launch"]
        bench.stand_in.refuse = lambda name, count, last=before + number: (
            REFUSED if name == "launch" and count > last else 0
        )
        x = calls.tensor()
        bench.stand_in.failing["update_node"] = REFUSED
        with pytest.raises(ExecutionError, match=rf"aunchKernel of '{launches[number]['kernel']}'"):
            calls.fast(x)
        bench.stand_in.refuse = lambda name, count: 0
        bench.stand_in.failing.clear()
    calls(calls.tensor())


def test_a_graph_that_the_driver_refuses_is_launched_plainly(bench):
    calls = Calls(bench, interface=Again(bench))
    x = calls.tensor()
    for _ in range(4):
        calls(x)
    bench.stand_in.failing["replay"] = REFUSED
    assert set(calls(x)) >= {"launch"}
    bench.stand_in.failing.clear()
    assert "launch" in calls(x)
    assert calls.executable.program(0).graph_facts()["stopped"] != ""
    assert calls.described == 0


def test_iterations(bench):
    calls = Calls(bench, use_graph=False, num_iters=3)
    kernels = len(bench.artifact.manifest["launches"])
    for _ in range(4):
        called = calls(calls.tensor())
        assert called.count("launch") == 3 * kernels
    assert calls.described == 0
    # From the second on, Python makes up for what is left.
    lanes = calls.executable.program(0)._plain_lanes
    assert all(lane.take() for lane in lanes)
    assert calls(calls.tensor()).count("launch") == 3 * kernels
    for lane in lanes:
        lane.give()


def add_to(x, y):
    x += y.sum()
    return x - y


@pytest.mark.parametrize("target", sorted(TARGETS), indirect=True)
def test_updates_in_place(target, tmp_path):
    made = program(target, add_to, [torch.rand(ROWS, COLUMNS), torch.rand(ROWS, COLUMNS)])
    bench = Bench(target, made, tmp_path)
    calls = Calls(bench)
    stream = calls.interface.stream_of[0]
    for number in range(1, 5):
        x, y = calls.tensor(), calls.tensor(number)
        described, version = calls.interface.described, x._version
        out = calls.fast(x, y)
        bench.driver.wait(stream)
        expected = calls.values(1) + calls.values(number).sum()
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(out.numpy(), expected - calls.values(number), rtol=1e-6)
        assert x._version == version + 1
        assert calls.interface.updated == number
    assert calls.interface.described == described
    expected = outcome(calls.slow, x, x)
    assert "shares memory with" in expected[1]
    assert outcome(calls.fast, x, x) == expected
    graded = x.clone().requires_grad_()
    assert "cannot be written" in outcome(calls.slow, graded, y)[1]
    assert outcome(calls.fast, graded, y) == outcome(calls.slow, graded, y)
    bench.check()


def scaled(x, w):
    return x * w.sum() - x.sum()


@pytest.mark.parametrize("target", sorted(TARGETS), indirect=True)
def test_bound_weights(target, tmp_path):
    made = program(target, scaled, [torch.rand(ROWS, COLUMNS), torch.rand(ROWS)])
    made.manifest[WEIGHT_NAMES] = [["w"]]
    bench = Bench(target, made, tmp_path)
    interface = GpuTensors(bench)
    w = interface.tensor(np.full(ROWS, 2, np.float32))
    weights = bind_weights(made.manifest, made.blobs, {"w": w}, lambda _: interface)
    calls = Calls(bench, interface=interface, weights=weights)
    stream = interface.stream_of[0]

    def right(x, w):
        described = interface.described
        got = calls.fast(x)
        bench.driver.wait(stream)
        expected = x.numpy() * w.sum().item() - x.numpy().sum()
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)
        return interface.described == described

    for number in range(3):
        right(calls.tensor(number), w)
    assert right(calls.tensor(4), w)
    w.mul_(3)
    assert right(calls.tensor(5), w), "values are read where they are"
    w.data = interface.tensor(np.full(ROWS, 7, np.float32))
    assert not right(calls.tensor(6), w), "it has other memory"
    assert right(calls.tensor(7), w)
    w.data = interface.tensor(np.full(ROWS + 1, 7, np.float32))
    assert outcome(calls.fast, calls.tensor()) == outcome(calls.slow, calls.tensor())
    assert "weight 'w'" in outcome(calls.fast, calls.tensor())[1]
    bench.check()


def looked_up(x, i):
    return x - x[i].sum(dim=0).sum() / 4


@pytest.mark.parametrize("target", sorted(TARGETS), indirect=True)
def test_failed_checks_are_raised_by_the_next_call(target, tmp_path):
    made = program(target, looked_up, [torch.rand(ROWS, COLUMNS), torch.tensor([0, 1])])
    bench = Bench(target, made, tmp_path)
    calls = Calls(bench)
    stream = calls.interface.stream_of[0]
    places = calls.interface.tensor(np.array([0, 2]))
    for _ in range(4):
        calls.fast(calls.tensor(), places)
    bench.driver.wait(stream)
    calls.fast(calls.tensor(), calls.interface.tensor(np.array([0, 9])))
    bench.driver.wait(stream)
    described = calls.interface.described
    with pytest.raises(ExecutionError, match=r"in an earlier call"):
        calls.fast(calls.tensor(), places)
    calls.fast(calls.tensor(), places)
    assert calls.interface.described == described
    # The word is freed with the program.
    bench.driver.wait(stream)
    calls.executable.close()
    with pytest.raises(ExecutionError, match=r"is closed; load it again"):
        calls.fast(calls.tensor(), places)
    bench.check()


def test_kernels_that_are_timed_are_launched_by_python(target, tmp_path):
    made = program(target)
    names = [{"name": "p"}, *({"name": each["kernel"]} for each in made.manifest["launches"])]
    made.manifest["profile"] = names
    bench = Bench(target, made, tmp_path)
    seen: list[int] = []
    bench.driver.record = lambda stream, timed=False: seen.append(stream) or 1  # type: ignore
    bench.driver.has_passed = lambda event: True  # type: ignore
    bench.driver.elapsed = lambda first, then: 1e-3  # type: ignore
    bench.driver.destroy_event = lambda event: None  # type: ignore
    calls = Calls(bench)
    for _ in range(4):
        before = len(seen)
        calls(calls.tensor())
        assert len(seen) > before
    assert calls.described == 0
    assert calls.executable.profile()[0]["calls"] == 4
    bench.check()


def test_a_program_that_is_loaded_for_each_call(bench):
    calls = Calls(bench)
    calls.executable._keep = False
    for _ in range(4):
        assert "load_module" in " ".join(calls(calls.tensor()))
    assert calls.described == 0


def test_a_closed_program_says_so(bench):
    calls = Calls(bench, use_graph=False)
    x = calls.tensor()
    for _ in range(3):
        calls(x)
    calls.executable.close()
    with pytest.raises(ExecutionError, match="is closed; load it again"):
        calls.fast(x)


def test_what_a_call_uses_lives_as_long_as_the_function(bench):
    calls = Calls(bench)
    x = calls.tensor()
    for _ in range(3):
        calls(x)
    fast = calls.fast
    del calls.slow, calls.executable
    gc.collect()
    calls(x, call=fast)
    assert calls.described == 0


def test_threads_share_lanes(bench):
    calls = Calls(bench, interface=Again(bench))
    own = [calls.tensor(number) for number in range(1, 5)]
    for each in own * 3:
        calls(each)
    wrong: list[BaseException] = []

    def work(x: torch.Tensor) -> None:
        try:
            for _ in range(40):
                calls.fast(x)
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(x,)) for x in own * 2]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    for each in own:
        calls(each)
    facts = calls.executable.program(0).graph_facts()
    assert facts["stopped"] == ""
    assert facts["graphs"] == len(bench.stand_in.executables)
    calls.executable.close()
    assert not bench.stand_in.executables


def test_a_function_is_gone_with_its_last_reference(bench):
    calls = Calls(bench)
    for device in (0, 0, 0, 1, 1):
        calls(calls.tensor(device=device))
    gone = weakref.ref(calls.executable)
    gc.disable()
    try:
        del calls.slow, calls.fast, calls.executable
        assert gone() is None
    finally:
        gc.enable()


def test_a_graph_is_there_after_a_device_that_could_not_be_made_current(bench, monkeypatch):
    calls = Calls(bench, interface=Again(bench))
    x = calls.tensor()
    for _ in range(4):
        calls(x)

    def refuse(device):
        raise ExecutionError("the device is busy")

    bench.driver.activate(1)
    with monkeypatch.context() as patch:
        patch.setattr(bench.driver, "activate", refuse)
        with pytest.raises(ExecutionError, match="the device is busy"):
            calls.fast(x)
    bench.driver.activate(0)
    assert calls(x) == ["replay"]
    assert calls.executable.program(0).graph_facts()["graphs"] == 1


def test_lanes_of_graphs_that_were_given_up_are_used_again(bench, monkeypatch):
    calls = Calls(bench, use_graph=True)
    for number in range(3 * KEPT):
        calls(calls.tensor(number))
    facts = calls.executable.program(0).graph_facts()
    assert (facts["graphs"], facts["stopped"]) == (KEPT, "")
    lanes = calls.executable.program(0).lanes
    assert sum(row.table is not None for row in lanes._lanes) == KEPT
