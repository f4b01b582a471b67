"""Graphs of tensors on a GPU: what a call does, with a driver and an allocator that are made up."""

from __future__ import annotations

import numpy as np
import pytest
from fake_driver import FakeDriver, artifact, launch, view
from manifest_rows import row

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from polyblocks.errors import InputError, TargetError  # noqa: E402
from polyblocks.options import CompileOptions  # noqa: E402
from polyblocks.runtime.device.executable import DeviceExecutable  # noqa: E402
from polyblocks.runtime.source import Source  # noqa: E402
from polyblocks_torch import backend  # noqa: E402
from polyblocks_torch.launch import accelerator, device_launcher, launcher  # noqa: E402
from polyblocks_torch.launch.argument_writer import ArgumentWriter  # noqa: E402
from polyblocks_torch.launch.arrays import TorchArrays  # noqa: E402
from polyblocks_torch.launch.launcher import make_call  # noqa: E402
from polyblocks_torch.launch.native_reader import reader  # noqa: E402
from polyblocks_torch.recording.canonical import capture_graph  # noqa: E402

GPU = torch.device("cuda", 1)
N = 6


def add_twice(x: int, y: int, out: int) -> None:
    view(out, N)[:] = view(x, N) + 2 * view(y, N)


@pytest.fixture
def gpu(monkeypatch):
    """The tensors of a graph are taken for those of a GPU; memory that is asked for is counted."""
    asked = []

    def allocate(shape, strides, dtype):
        asked.append((tuple(shape), tuple(strides), dtype))
        return torch.empty_strided(shape, strides, dtype=dtype)

    monkeypatch.setattr(launcher, "device_of", lambda capture: GPU)
    monkeypatch.setattr(accelerator, "allocator", lambda device: allocate)
    monkeypatch.setattr(accelerator, "current_stream", lambda: lambda number: 70 + number)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, *a, **k: self)
    return asked


def call_of(function, arguments, source, **options):
    inputs = [torch.zeros(2, 3) for _ in range(arguments)]
    made = capture_graph(make_fx(function)(*inputs), inputs, "f")
    driver = FakeDriver({"add": add_twice}, ("v1", "v1"))
    executable = DeviceExecutable(source, lambda: driver)
    return driver, make_call(made, executable, CompileOptions.from_dict(options))


def full(value: float) -> torch.Tensor:
    return torch.full((2, 3), float(value))


ADD = artifact(
    [
        row("input", "x"),
        row("input", "y"),
        row("output", "o"),
        {"role": "workspace", "shape": [100]},
    ],
    [launch("add", 0, 1, 2), launch("add", 0, 1, 3)],
)


def test_a_call_launches_on_the_current_stream_and_waits_for_nothing(gpu):
    driver, call = call_of(lambda x, y: x + 2 * y, 2, ADD)
    for _ in range(2):
        driver.calls.clear()
        (result,) = call([full(1), full(2)])
        assert (result == 5).all()
        assert [c[:4] for c in driver.calls] == [("launch", "add", 1, 71)] * 2
    # Results and workspace are PyTorch's.
    assert gpu == [((2, 3), (3, 1), torch.float32), ((256,), (1,), torch.uint8)] * 2
    assert not driver.memory


def test_iterations(gpu):
    driver, call = call_of(lambda x, y: x + 2 * y, 2, ADD, num_iters=3)
    call([full(1), full(2)])
    # The second time the same addresses come, they are recorded.
    assert (driver.counts["launch"], driver.counts["replay"]) == (4, 2)


def test_constants_are_moved_once(gpu):
    held = torch.arange(2048.0)  # a smaller one would be a part of the program
    given = [torch.zeros(2048)]
    made = capture_graph(make_fx(lambda x: x + held)(*given), given, "f")
    source = Source()
    arguments = ArgumentWriter(source, made, GPU, {})
    assert arguments.addresses([0, 1])[1] == str(held.data_ptr())
    assert any(
        isinstance(value, torch.Tensor) and value.data_ptr() == held.data_ptr()
        for value in source.names.values()
    )


def test_tensors_that_begin_anywhere_are_copied_where_kernels_rely_on_more(gpu):
    rows = [row("input", "x") | {"alignment": 64}, row("input", "y", updates=1)]
    rows[1]["alignment"] = 64

    def add_to(x: int, y: int) -> None:
        assert x % 64 == y % 64 == 0
        view(y, N)[:] += view(x, N)

    source = artifact(rows, [launch("add", 0, 1)])
    inputs = [torch.zeros(2, 3) for _ in range(2)]
    made = capture_graph(make_fx(lambda x, y: (y.copy_(x + y), None)[1])(*inputs), inputs, "f")
    executable = DeviceExecutable(source, lambda: FakeDriver({"add": add_to}, ("v1", "v1")))
    call = make_call(made, executable, CompileOptions())
    memory = torch.arange(64, dtype=torch.float32)
    x, y = (memory[k : k + 6].view(2, 3) for k in (1, 33))
    expected = x + y
    call([x, y])
    np.testing.assert_array_equal(y.numpy(), expected.numpy())


def test_the_device_of_a_graph():
    class Graph:
        def __init__(self, *values):
            nodes = [type("Node", (), {"meta": {"val": value}}) for value in values]
            self.graph_module = type("Module", (), {"graph": type("G", (), {"nodes": nodes})})

    class Fake(torch.Tensor):
        device = GPU

    assert device_launcher.device_of(Graph(torch.ones(1), 3)) is None
    assert device_launcher.device_of(Graph(3, torch.ones(1).as_subclass(Fake))) == GPU


# --- what is refused ------------------------------------------------------------------------------


class Somewhere:
    """A tensor for the checks of a graph's inputs."""

    layout, dtype = torch.strided, torch.float32

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)


def checked(monkeypatch, devices, **options):
    class Node:
        op, meta = "placeholder", {}

        def __init__(self, name):
            self.target = name

    graph = type("Module", (), {"graph": type("G", (), {})})
    graph.graph.nodes = [Node(name) for name in "xy"]
    values = [Somewhere(device) for device in devices]
    real = isinstance
    monkeypatch.setattr(
        backend, "isinstance", lambda v, t: type(v) is Somewhere or real(v, t), raising=False
    )
    backend._check_inputs(graph, values, CompileOptions.from_dict(options))


def test_tensors_in_several_places(monkeypatch):
    options = {"target": "nvgpu", "arch": "sm_90a"}
    checked(monkeypatch, ("cuda:0", "cuda:0"), **options)
    checked(monkeypatch, ("cpu", "cpu"), **options)
    for places, found in (
        (("cpu", "cuda:0"), "x on cpu, y on cuda:0"),
        (("cuda:0", "cuda:1"), "x on cuda:0, y on cuda:1"),
    ):
        with pytest.raises(InputError, match=f"in several places: {found}; expected all on the"):
            checked(monkeypatch, places, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"target": "cpu"},
        {"target": "nvgpu", "arch": "sm_90a", "simulate": True},
        {"target": "amdgpu", "arch": "gfx1100"},
    ],
)
def test_targets_that_do_not_take_tensors_of_this_gpu(monkeypatch, options):
    with pytest.raises(TargetError, match=f"x is on cuda:0, but target '{options['target']}' take"):
        checked(monkeypatch, ("cuda:0", "cuda:0"), **options)


def test_the_allocator_knows_the_current_device(monkeypatch):
    from torch._C._dynamo import guards

    made = []
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 1, raising=False)
    monkeypatch.setattr(guards, "_empty_strided_cuda", lambda *a: made.append(("quick", *a)))
    monkeypatch.setattr(torch, "empty_strided", lambda *a, **k: made.append((*a, k["device"])))
    for number in (1, 0):
        accelerator.allocator(torch.device("cuda", number))((2,), (1,), torch.int8)
    assert made == [("quick", (2,), (1,), torch.int8), ((2,), (1,), torch.device("cuda", 0))]


# --- calls in machine code ------------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch):
    """Tensors of the host are read as those of the GPU; which of them Python has looked at."""
    looked_at = []
    pointer = torch.Tensor.data_ptr

    def data_ptr(tensor):
        looked_at.append(tensor)
        return pointer(tensor)

    monkeypatch.setattr(TorchArrays, "device_reader", lambda self, device: reader())
    monkeypatch.setattr(torch.Tensor, "data_ptr", data_ptr)
    return looked_at


def test_tensors_are_read_in_machine_code_from_the_third_call_on(gpu, read):
    driver, call = call_of(lambda x, y: x + 2 * y, 2, ADD)
    for number in range(5):
        read.clear()
        x, y = full(number), full(2)
        (result,) = call([x, y])
        assert (result == number + 4).all()
        assert (len(read) > 0) == (number < 2)
    assert driver.named("launch")[-1][2:4] == (1, 71)
    # Results and workspace are PyTorch's.
    assert gpu == [((2, 3), (3, 1), torch.float32), ((256,), (1,), torch.uint8)] * 5
    # What has no memory is for Python.
    x.untyped_storage().resize_(0)
    with pytest.raises(InputError, match="has no memory"):
        call([x, y])


def test_tensors_that_begin_anywhere_are_left_to_python(gpu, read):
    rows = [row("input", "x") | {"alignment": 64}, row("input", "y", updates=1)]

    def add_to(x: int, y: int) -> None:
        assert x % 64 == 0
        view(y, N)[:] += view(x, N)

    source = artifact(rows, [launch("add", 0, 1)])
    inputs = [torch.zeros(2, 3) for _ in range(2)]
    made = capture_graph(make_fx(lambda x, y: (y.copy_(x + y), None)[1])(*inputs), inputs, "f")
    executable = DeviceExecutable(source, lambda: FakeDriver({"add": add_to}, ("v1", "v1")))
    call = make_call(made, executable, CompileOptions())
    memory = torch.arange(256, dtype=torch.float32)
    start = -(memory.data_ptr() // 4) % 16
    for offset in (0, 0, 0, 1, 0, 1):
        x, y = memory[start + offset :][:6].view(2, 3), full(1)
        read.clear()
        version = y._version
        call([x, y])
        assert torch.equal(y, x + 1)
        assert y._version == version, "AOTAutograd counts"
    assert len(read) > 0
    read.clear()
    call([memory[start:][:6].view(2, 3), full(1)])
    assert not read


def test_constants_and_iterations_in_machine_code(gpu, read):
    held = torch.arange(2048.0)
    rows = [row("input", name, shape=(2048,)) for name in "xc"]
    source = artifact([*rows, row("output", "o", shape=(2048,))], [launch("add", 0, 1, 2)])

    def add(x: int, y: int, out: int) -> None:
        view(out, 2048)[:] = view(x, 2048) + view(y, 2048)

    given = [torch.zeros(2048)]
    made = capture_graph(make_fx(lambda x: x + held)(*given), given, "f")
    driver = FakeDriver({"add": add}, ("v1", "v1"))
    executable = DeviceExecutable(source, lambda: driver)
    call = make_call(made, executable, CompileOptions(num_iters=3))
    for number in range(4):
        read.clear()
        driver.calls.clear()
        x = torch.full((2048,), float(number))
        (result,) = call([x])
        assert torch.equal(result, x + held)
        assert len(driver.named("launch")) == 3
    assert not read
