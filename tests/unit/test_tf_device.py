"""TensorFlow's tensors on a GPU that is made up: used where they are, on TensorFlow's stream or,
where XLA cannot call programs, through DLPack."""

from __future__ import annotations

import ctypes
import re
import weakref

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from fake_driver import KIND, FakeDriver, artifact, launch, view  # noqa: E402
from manifest_rows import row  # noqa: E402
from tensorflow.python.framework.ops import EagerTensor  # noqa: E402

from polyblocks.errors import ExecutionError, InputError, TargetError  # noqa: E402
from polyblocks.frontends import programs  # noqa: E402
from polyblocks.runtime.arrays import HOST, Device  # noqa: E402
from polyblocks.runtime.bound_weights import BoundWeights  # noqa: E402
from polyblocks.runtime.device.calls.xla_device_call import XlaDeviceCall  # noqa: E402
from polyblocks.runtime.device.executable import DeviceExecutable  # noqa: E402
from polyblocks.runtime.device.exported import tensor_in  # noqa: E402
from polyblocks.runtime.launch import bind  # noqa: E402
from polyblocks.runtime.slots import signature_of  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402
from polyblocks_nvgpu import driver as vendor  # noqa: E402
from polyblocks_tf import function, specs  # noqa: E402
from polyblocks_tf.launch import device_call  # noqa: E402
from polyblocks_tf.launch.arrays import TfArrays  # noqa: E402
from polyblocks_tf.tracing import graph  # noqa: E402
from polyblocks_tf.xla import targets  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

OPTIONS = {"target": "nvgpu", "arch": "sm_90a", "strict_target": True}
GPU = Device(2, 0)


class Kernels(dict):
    """Every kernel adds two arrays of six floats."""

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str):
        def add(x: int, y: int, out: int) -> None:
            view(out, 6)[:] = view(x, 6) + view(y, 6)

        return add


class Driver(FakeDriver):
    device_kinds = (2,)

    def wait_quietly(self, stream: int) -> None:
        """What a reader of results on the same stream sees, which waits for nothing."""
        self._drain(stream)

    def rank(self, arch: str, form: str, device: int) -> int | None:
        return 0 if arch == "sm_90a" else None


#: TensorFlow's stream, as XLA tells it.
STREAM = 55


@pytest.fixture
def gpu(monkeypatch):
    """Tensors that ``place`` is given are on the GPU; their memory is the host's.

    XLA has no such platform here: the CPU's calls the programs.
    """
    # What is launched runs when its stream is waited for, or when XLA's results are looked at.
    driver = Driver(Kernels(), eager=False)
    there: list = []

    def is_there(tensor) -> bool:
        return any(tensor is each for each in there)

    def put(tensor):
        there.append(tensor)
        return tensor

    def from_dlpack(capsule):
        address, _, spec = tensor_in(capsule)
        return put(tf.constant(view(address, spec.numel).reshape(spec.shape)))

    def launched(self, frame):
        launching(self, frame)
        driver.wait_quietly(STREAM)

    launching = XlaDeviceCall._launch
    monkeypatch.setattr(vendor, "connect", lambda: driver)
    # Programs that an earlier test has loaded are with that one's driver.
    monkeypatch.setattr(programs, "_loaded", weakref.WeakValueDictionary())
    monkeypatch.setattr(device_call, "is_on_gpu", is_there)
    monkeypatch.setattr(TfArrays, "device", lambda self, x: GPU if is_there(x) else HOST)
    monkeypatch.setattr(
        TfArrays, "pointer", lambda self, x: int(x._numpy().__array_interface__["data"][0])
    )
    monkeypatch.setattr(tf.experimental.dlpack, "from_dlpack", from_dlpack)
    monkeypatch.setattr(XlaDeviceCall, "stream_of", lambda self, frame: STREAM)
    monkeypatch.setattr(XlaDeviceCall, "_launch", launched)
    monkeypatch.setitem(targets.PLATFORMS, 2, targets.Platform("Host", "CPU", "CPU"))
    monkeypatch.setattr(TfArrays, "transfer", lambda self, x, device: put(tf.identity(x)))
    driver.place, driver.is_there = put, is_there
    return driver


def six(start: float):
    return tf.constant(np.arange(start, start + 6, dtype=np.float32).reshape(2, 3))


@pytest.fixture
def without_xla(gpu, monkeypatch):
    """The same where TensorFlow's library does not have the interface."""
    monkeypatch.setattr(targets, "_GET_API", "no_such_function")
    targets._table.cache_clear()
    yield gpu
    targets._table.cache_clear()


WITHOUT = rf"TensorFlow {re.escape(tf.__version__)} does not export XLA's interface on this system"


def sums():
    return polyblocks_jit_tf(
        lambda x, y: {"sum": x + y, "none": tf.zeros((0, 3))}, compile_options=OPTIONS
    )


def test_tensors_on_the_gpu_are_taken_on_tensorflows_stream(gpu):
    f = sums()
    x, y = gpu.place(six(0)), gpu.place(six(10))
    for _ in range(3):
        result = f(x, y)
        np.testing.assert_array_equal(result["sum"], six(0) + six(10))
        assert result["none"].shape == (0, 3)
    assert {call[3] for call in gpu.named("launch")} == {STREAM}
    assert not gpu.named("wait", "synchronize", "order", "copy_in", "copy_out")
    assert not gpu.events, "nothing is held until the stream has passed"
    assert f.polyblocks_report().waits == []
    # The same function with tensors of the host copies them.
    result = f(six(0), six(10))
    assert not gpu.is_there(result["sum"])
    np.testing.assert_array_equal(result["sum"], six(0) + six(10))
    assert (gpu.counts["copy_in"], gpu.counts["copy_out"]) == (2, 1)


def test_a_failed_launch_is_raised_as_it_is(gpu, monkeypatch):
    f = sums()
    x, y = gpu.place(six(0)), gpu.place(six(10))
    f(x, y)

    def refuse(self, frame):
        raise ExecutionError("the launch failed")

    monkeypatch.setattr(XlaDeviceCall, "stream_of", refuse)
    with pytest.raises(ExecutionError, match="^the launch failed$"):
        f(x, y)
    assert f.polyblocks_report().waits == []


def test_without_xlas_interface_each_call_waits_once_and_says_why(without_xla, caplog):
    gpu, f = without_xla, sums()
    x, y = gpu.place(six(0)), gpu.place(six(10))
    for _ in range(2):
        result = f(x, y)
        assert gpu.is_there(result["sum"])
        np.testing.assert_array_equal(result["sum"], six(0) + six(10))
    assert gpu.named("wait") == [("wait", gpu.default_stream)] * 2
    assert not gpu.named("synchronize", "copy_in", "copy_out")
    report = f.polyblocks_report()
    (why,) = report.waits
    assert re.fullmatch(WITHOUT, why)
    assert report.to_json()["waits"] == [why]
    assert f"each call waits for its TensorFlow arguments: {why}" in str(report)
    assert len([r for r in caplog.records if "waits for its TensorFlow" in r.getMessage()]) == 1


def test_what_xla_cannot_compile_waits(gpu, monkeypatch):
    monkeypatch.setitem(targets.PLATFORMS, 2, targets.Platform("Host", "CUDA", "CPU"))
    f = sums()
    result = f(gpu.place(six(0)), gpu.place(six(10)))
    np.testing.assert_array_equal(result["sum"], six(0) + six(10))
    (why,) = f.polyblocks_report().waits
    assert why.startswith("XLA cannot call the program: "), why
    assert "CPU" in why


@pytest.mark.parametrize(
    "place, value, message",
    [
        (32, 1, r"is of version 1\.\d+, expected 0\.1 or a later 0\.x"),
        (36, 0, r"is of version 0\.0, expected 0\.1 or a later 0\.x"),
        (16, 16, r"has another layout than expected: \d+ bytes, 16 of them for the version"),
        (0, 80, r"has another layout than expected: 80 bytes, 24 of them for the version"),
    ],
)
def test_another_interface_is_not_used(place, value, message):
    table = targets._table()
    size = ctypes.c_size_t.from_address(table).value
    copy = ctypes.create_string_buffer(ctypes.string_at(table, size), size)
    address = ctypes.addressof(copy)
    targets.check_table(address)
    ctypes.c_int32.from_address(address + place).value = value
    with pytest.raises(targets.Unavailable, match=message):
        targets.check_table(address)


def test_weights_that_are_bound_are_passed_by_xla(monkeypatch):
    source = artifact(
        [row("input", "x"), row("input", "w"), row("output", "o")], [launch("add", 0, 1, 2)]
    )
    source.manifest["weight_names"] = [["w"]]
    driver = FakeDriver(Kernels())
    monkeypatch.setattr(XlaDeviceCall, "stream_of", lambda self, frame: STREAM)
    monkeypatch.setattr(TfArrays, "device", lambda self, x: Device(KIND, 0))
    monkeypatch.setitem(targets.PLATFORMS, KIND, targets.Platform("Host", "CPU", "CPU"))
    executable = DeviceExecutable(source, lambda: driver)
    slots = signature_of(source.manifest, {}).inputs[-1:]
    weights = BoundWeights("f", slots, [["w"]], (), {"w": six(7)}, lambda _: TfArrays())
    f = bind(executable, TfArrays(), weights=weights)
    for start in (0, 1):
        np.testing.assert_array_equal(f(six(start)), six(start) + six(7))
    assert {call[3] for call in driver.named("launch")} == {STREAM}
    with pytest.raises(InputError, match=r"f\(x\) takes 1 array, got 2"):
        f(six(0), six(1))


def test_xla_refuses_a_name_twice():
    source = artifact([row("output", "o")], [launch("fill", 0)])
    calls = [XlaDeviceCall(DeviceExecutable(source, lambda: None)) for _ in range(2)]
    host = targets.Platform("Host", "CPU", "CPU")
    targets.register("polyblocks_twice", host, calls[0].address)
    with pytest.raises(targets.Unavailable, match="^XLA does not take the program: .*twice"):
        targets.register("polyblocks_twice", host, calls[1].address)


def test_what_a_function_holds_goes_to_the_gpu(gpu):
    weight = tf.Variable(six(5))

    @polyblocks_jit_tf(compile_options=OPTIONS)
    def f(x):
        weight.assign_add(x)

    f(gpu.place(six(0)))
    np.testing.assert_array_equal(weight, six(0) + six(5))
    f(gpu.place(six(1)))
    np.testing.assert_array_equal(weight, six(0) + six(5) + six(1))
    assert gpu.counts["copy_in"] == 0


def test_constants_go_to_the_gpu_once(gpu, monkeypatch):
    monkeypatch.setattr(graph, "LARGE_CONSTANT_BYTES", 1)  # smaller ones are a part of the code
    constant, moved = six(20), []
    transfer = TfArrays.transfer
    monkeypatch.setattr(
        TfArrays, "transfer", lambda self, x, device: moved.append(x) or transfer(self, x, device)
    )
    f = polyblocks_jit_tf(lambda x: x + constant, compile_options=OPTIONS)
    for start in range(3):
        np.testing.assert_array_equal(f(gpu.place(six(start))), six(start) + constant)
    assert len(moved) == 1
    assert gpu.counts["copy_in"] == 0


@pytest.mark.parametrize("dtype", sorted(specs.TF_DTYPES))
def test_xla_passes_arrays_of_every_dtype(dtype):
    """Through the text of a module, on the CPU; one copies the other's bytes."""
    shape = (3, 1, 5)
    source = artifact(
        [row("input", "x", shape, dtype), row("output", "o", shape, dtype)], [launch("copy", 0, 1)]
    )
    size = specs.TF_DTYPES[dtype].size

    def copy(x: int, out: int) -> None:
        ctypes.memmove(out, x, 15 * size)

    driver = FakeDriver({"copy": copy})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(XlaDeviceCall, "stream_of", lambda self, frame: STREAM)
        patch.setattr(TfArrays, "device", lambda self, x: Device(KIND, 0))
        patch.setitem(targets.PLATFORMS, KIND, targets.Platform("Host", "CPU", "CPU"))
        f = bind(DeviceExecutable(source, lambda: driver), TfArrays())
        x = tf.cast(tf.reshape(tf.range(15) % 2, shape), specs.TF_DTYPES[dtype])
        result = f(x)
        assert f.waits == ""
        with pytest.raises(
            InputError, match=rf"argument 1 \('x'\) of f: expected {dtype}\[3, 1, 5"
        ):
            f(tf.zeros((3, 1, 4), x.dtype))
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x)
    assert len(driver.named("launch")) == 1


def test_tensors_in_several_places(gpu):
    f = polyblocks_jit_tf(lambda x, y: x + y, compile_options=OPTIONS)
    with pytest.raises(InputError, match=r"the arrays are in several places: .* on device 0.*host"):
        f(gpu.place(six(0)), six(1))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"target": "cpu"}, "but target 'cpu' takes tensors on the CPU; copy it with tf.device"),
        (OPTIONS | {"simulate": True}, "but the simulator takes tensors on the CPU; copy it"),
        (
            {"target": "amdgpu", "arch": "gfx1100"},
            "but target 'amdgpu' takes tensors on the CPU and on its own devices; copy it",
        ),
        (OPTIONS, None),
    ],
)
def test_targets_that_do_not_take_tensors_of_this_gpu(options, message):
    class Somewhere:
        backing_device = "/job:localhost/replica:0/task:0/device:GPU:0"

        def __dlpack_device__(self):
            return (2, 0)

    checked = function.CompileOptions.from_dict(options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(function, "EagerTensor", Somewhere)
        if message is None:
            function._check_device(Somewhere(), "x", checked)
            return
        with pytest.raises(TargetError, match=rf"^x is on /job.*GPU:0, {message}"):
            function._check_device(Somewhere(), "x", checked)
    assert function.EagerTensor is EagerTensor
