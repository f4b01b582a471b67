"""Programs for devices that XLA calls itself, with a driver that is made up."""

from __future__ import annotations

import numpy as np
import pytest
from fake_driver import KIND, FakeDriver, artifact, launch, view
from manifest_rows import row

jax = pytest.importorskip("jax")

from polyblocks.errors import ExecutionError, InputError  # noqa: E402
from polyblocks.options import CompileOptions  # noqa: E402
from polyblocks.runtime.arrays import Device  # noqa: E402
from polyblocks.runtime.device.calls.xla_device_call import XlaDeviceCall  # noqa: E402
from polyblocks.runtime.device.executable import DeviceExecutable  # noqa: E402
from polyblocks.runtime.launch import bind  # noqa: E402
from polyblocks_jax.compiler import takes  # noqa: E402
from polyblocks_jax.launch import loaded_call, programs  # noqa: E402
from polyblocks_jax.launch.arrays import JaxArrays  # noqa: E402

N = 6
ADD = artifact(
    [row("input", "x"), row("output", "o"), row("input", "y"), row("output", "p")],
    [launch("add", 0, 2, 1), launch("add", 0, 0, 3)],
)


def add(x: int, y: int, out: int) -> None:
    view(out, N)[:] = view(x, N) + view(y, N)


def called(name: str, body, stream=77, **settings):
    """XLA's own call on the CPU, where there is no stream to ask for."""
    import ctypes

    driver = FakeDriver({"add": body})
    call = XlaDeviceCall(DeviceExecutable(ADD, lambda: driver), **settings)
    if stream is not None:
        call.stream_of = lambda frame: stream
    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(call.address)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu", api_version=1)
    out = jax.ShapeDtypeStruct((2, 3), np.float32)
    x, y = np.full((2, 3), 1, np.float32), np.full((2, 3), 2, np.float32)
    results = jax.jit(lambda x, y: jax.ffi.ffi_call(name, (out, out))(x, y))(x, y)
    return driver, [np.asarray(result) for result in results]


def test_xla_calls_a_program_on_its_stream():
    driver, (first, second) = called("device_add", add, iterations=2)
    assert (first == 3).all()
    assert (second == 2).all()
    assert [c[3] for c in driver.named("launch")[:2]] == [77] * 2
    assert driver.named("replay") == [("replay", 77)], "the same addresses come again"
    assert not driver.named("wait", "copy_in", "synchronize")


def test_an_error_is_an_error_of_xla():
    def refuse(*args):
        raise ExecutionError("the launch failed")

    with pytest.raises(Exception, match="ExecutionError: the launch failed"):
        called("device_refuse", refuse)


def test_a_call_without_a_stream():
    with pytest.raises(Exception, match="XLA tells no stream for this call"):
        called("device_without", add, stream=None)


def test_updates_in_place_are_refused():
    source = artifact([row("input", "x", updates=0)], [])
    with pytest.raises(InputError, match="'x' is updated in place, which XLA does not allow"):
        XlaDeviceCall(DeviceExecutable(source, lambda: None))


def test_a_loaded_program_is_called_by_xla_and_waits_for_nothing(monkeypatch):
    """As with arrays of JAX's on a GPU, which the arrays here are said to be on."""
    source = artifact(
        [row("input", "x"), row("input", "w"), row("output", "o")], [launch("add", 0, 1, 2)]
    )
    weights = np.arange(N, dtype=np.float32)
    source.manifest["arguments"][1]["stored"] = "w.bin"
    source.blobs["w.bin"] = weights.tobytes()
    driver = FakeDriver({"add": add})
    waited = []
    monkeypatch.setattr(XlaDeviceCall, "stream_of", lambda self, frame: 55)
    monkeypatch.setattr(JaxArrays, "device", lambda self, array: Device(KIND, 0))
    monkeypatch.setattr(JaxArrays, "make_ready", lambda self, *_: waited.append(1))
    # XLA has no such platform here: the CPU's calls the handler for it.
    monkeypatch.setattr(loaded_call, "_platform_of", lambda array: "fake")
    made = programs._make_known
    monkeypatch.setattr(programs, "_make_known", lambda name, call, _: made(name, call, "cpu"))
    on = loaded_call._Known.on
    monkeypatch.setattr(loaded_call._Known, "on", lambda self, _, **more: on(self, "fake", **more))

    # From the first call on: DLPack of JAX knows no such device.
    monkeypatch.setattr(JaxArrays, "own_call", lambda self, b: loaded_call.loaded_call(b))

    executable = DeviceExecutable(source, lambda: driver)
    f = bind(executable, JaxArrays(), blobs=source.blobs)
    x = jax.numpy.ones((2, 3))
    for _ in range(3):
        np.testing.assert_array_equal(f(x), weights.reshape(2, 3) + 1)
    assert [call[3] for call in driver.named("launch")] == [55] * 3
    assert len(driver.named("copy_in")) == 1  # of the weights, once
    assert not waited
    assert not driver.named("copy_out", "synchronize", "order")
    with pytest.raises(InputError, match=r"argument 1 \('x'\) of f: expected float32\[2, 3\], got"):
        f(jax.numpy.ones((3, 2)))


@pytest.mark.parametrize(
    "options, platforms, expected",
    [
        ({"target": "nvgpu"}, ("cuda",), True),
        ({"target": "nvgpu"}, ("rocm",), False),
        ({"target": "nvgpu"}, ("cuda", "cpu"), False),
        ({"target": "nvgpu", "simulate": True}, ("cuda",), False),
        ({"target": "amdgpu"}, ("rocm",), True),
        ({"target": "cpu"}, ("cuda",), False),
        ({"target": "nvgpu"}, ("tpu",), False),
    ],
)
def test_which_arrays_a_target_takes(options, platforms, expected):
    assert takes(CompileOptions.from_dict(options), platforms) is expected
