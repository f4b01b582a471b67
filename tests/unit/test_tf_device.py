"""TensorFlow's tensors on a GPU that is made up: used where they are, through DLPack."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from fake_driver import FakeDriver, view  # noqa: E402
from tensorflow.python.framework.ops import EagerTensor  # noqa: E402

from polyblocks.errors import InputError, TargetError  # noqa: E402
from polyblocks.runtime.arrays import HOST, Device  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402
from polyblocks_nvgpu import driver as vendor  # noqa: E402
from polyblocks_tf import function  # noqa: E402
from polyblocks_tf.launch import device_call  # noqa: E402
from polyblocks_tf.launch.arrays import TfArrays  # noqa: E402

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

    def rank(self, arch: str, form: str, device: int) -> int | None:
        return 0 if arch == "sm_90a" else None


@pytest.fixture
def gpu(monkeypatch):
    """Tensors that ``place`` is given are on the GPU; their memory is the host's."""
    driver = Driver(Kernels())
    there: list = []

    def is_there(tensor) -> bool:
        return any(tensor is each for each in there)

    def put(tensor):
        there.append(tensor)
        return tensor

    def adopt(self, memory):
        spec = memory.spec
        return put(tf.constant(view(memory.address, spec.numel).reshape(spec.shape)))

    monkeypatch.setattr(vendor, "connect", lambda: driver)
    monkeypatch.setattr(device_call, "is_on_gpu", is_there)
    monkeypatch.setattr(TfArrays, "device", lambda self, x: GPU if is_there(x) else HOST)
    monkeypatch.setattr(
        TfArrays, "pointer", lambda self, x: int(x._numpy().__array_interface__["data"][0])
    )
    monkeypatch.setattr(TfArrays, "adopt", adopt)
    monkeypatch.setattr(TfArrays, "transfer", lambda self, x, device: put(tf.identity(x)))
    driver.place, driver.is_there = put, is_there
    return driver


def six(start: float):
    return tf.constant(np.arange(start, start + 6, dtype=np.float32).reshape(2, 3))


def test_tensors_on_the_gpu_stay_there(gpu):
    f = polyblocks_jit_tf(
        lambda x, y: {"sum": x + y, "none": tf.zeros((0, 3))}, compile_options=OPTIONS
    )
    x, y = gpu.place(six(0)), gpu.place(six(10))
    result = f(x, y)
    assert gpu.is_there(result["sum"])
    np.testing.assert_array_equal(result["sum"], six(0) + six(10))
    assert result["none"].shape == (0, 3)
    assert gpu.counts["copy_in"] == gpu.counts["copy_out"] == 0
    # The same function with tensors of the host copies them.
    result = f(six(0), six(10))
    assert not gpu.is_there(result["sum"])
    np.testing.assert_array_equal(result["sum"], six(0) + six(10))
    assert (gpu.counts["copy_in"], gpu.counts["copy_out"]) == (2, 1)


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
