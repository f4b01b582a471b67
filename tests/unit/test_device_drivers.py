"""The two drivers, on recorded stand-ins of the vendors' bindings."""

from __future__ import annotations

import ctypes
import enum
import itertools
import sys
import types

import numpy as np
import pytest

from polyblocks.errors import ArtifactError, ExecutionError, TargetError
from polyblocks.runtime.device.executable import DeviceExecutable
from polyblocks.runtime.device.plan import Launch
from polyblocks_amdgpu import driver as hip
from polyblocks_nvgpu import driver as cuda

DRIVERS = {"nvgpu": cuda, "amdgpu": hip}
EXTRA = {"nvgpu": "cuda", "amdgpu": "hip"}
PACKAGE = {"nvgpu": "cuda.bindings", "amdgpu": "hip"}


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class Names:
    """Constants of which only the name matters."""

    def __init__(self, **numbers: int) -> None:
        self.__dict__.update(numbers)

    def __getattr__(self, name: str) -> int:
        return abs(hash(name)) % 1000


class FakeCuda(types.ModuleType):
    """``cuda.bindings.driver`` with two devices; calls are kept."""

    CUresult = CUresult
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE = 2, 1

    def __init__(self, capabilities=((9, 0), (8, 6)), failing=None) -> None:
        super().__init__("cuda.bindings.driver")
        for name in (
            "CUjit_option CUfunction_attribute CUstream_flags CUevent_flags CUstreamCaptureMode"
        ).split():
            setattr(self, name, Names())
        self.CUdevice_attribute = Names(
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=75,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=76,
        )
        self.capabilities = capabilities
        self.failing = dict(failing or {})
        self.calls: list[tuple] = []
        self.current = 0
        self.numbers = itertools.count(1000)
        self.kept: dict[int, object] = {}
        self.capturing: set[int] = set()

    def CUcontext(self, number):
        return number

    def CUmodule(self, number):
        return number

    CUfunction = CUmodule

    def __getattr__(self, name: str):
        if not name.startswith("cu"):
            raise AttributeError(name)

        def function(*args):
            self.calls.append((name, *args))
            status = self.failing.get(name, CUresult.CUDA_SUCCESS)
            result = self.answer(name, args)
            if status:
                return (status, None) if result is not None else (status,)
            return (status,) if result is None else (status, result)

        function.__name__ = name
        return function

    def answer(self, name: str, args):
        if name == "cuDeviceGetCount":
            return len(self.capabilities)
        if name == "cuDeviceGet":
            return args[0]
        if name == "cuDeviceGetName":
            return b"Fake GPU\0\0\0"
        if name == "cuDeviceGetAttribute":
            return self.capabilities[args[1]][args[0] - 75]
        if name == "cuDevicePrimaryCtxRetain":
            return 50 + args[0]
        if name == "cuCtxGetCurrent":
            return self.current
        if name == "cuCtxSetCurrent":
            self.current = int(args[0])
            return None
        if name == "cuCtxGetDevice":
            return self.current - 50
        if name == "cuGetErrorString":
            return f"text of {args[0].name}".encode()
        if name == "cuModuleLoadDataEx" and name in self.failing:
            args[3][0][:14] = b"line 3: bad op"
        if name == "cuMemHostAlloc":
            number = next(self.numbers)
            self.kept[number] = memory = ctypes.c_int32(77)
            return ctypes.addressof(memory)
        if name == "cuMemHostGetDevicePointer":
            return args[0] + (1 << 40)
        if name == "cuStreamIsCapturing":
            return int(args[0] in self.capturing)
        returns = (
            "cuModuleLoadDataEx cuModuleGetFunction cuMemAlloc cuStreamCreate cuEventCreate "
            "cuStreamEndCapture cuGraphInstantiate"
        )
        return next(self.numbers) if name in returns.split() else None

    def named(self, *names: str):
        return [call for call in self.calls if call[0] in names]


LAUNCH = Launch("softmax", (4096, 2, 1), (256, 1, 1), 65536, (0, 1))


def test_a_launch_is_one_call_with_the_parameters_address():
    api = FakeCuda()
    driver = cuda.CudaDriver(api)
    module = driver.load_module(0, b"\x7fELF")
    (load,) = api.named("cuModuleLoadDataEx")
    assert load[1] == b"\x7fELF\0"
    run = driver.prepare(0, module, LAUNCH, 12345)
    (get,) = api.named("cuModuleGetFunction")
    assert get[1:] == (module, b"softmax")
    (attribute,) = api.named("cuFuncSetAttribute")
    assert attribute[-1] == 65536
    api.calls.clear()
    run(7)
    run(9)
    function = attribute[1]
    assert api.calls == [
        ("cuLaunchKernel", function, 4096, 2, 1, 256, 1, 1, 65536, 7, 12345, 0),
        ("cuLaunchKernel", function, 4096, 2, 1, 256, 1, 1, 65536, 9, 12345, 0),
    ]


def test_devices_are_those_of_the_driver_in_its_order():
    api = FakeCuda()
    driver = cuda.CudaDriver(api)
    assert driver.device_count() == 2
    assert driver.device_name(1) == "Fake GPU (sm_86)"
    assert api.named("cuDeviceGet")[0][1] == 1
    assert driver.current_device() == 0
    # A thread without a context keeps that of device 0, but not that of another.
    assert driver.activate(0) is None
    assert api.current == 50
    assert driver.activate(0) is None
    assert driver.activate(1) == 50
    assert driver.current_device() == 1
    driver.restore(50)
    assert driver.current_device() == 0
    assert len(api.named("cuDevicePrimaryCtxRetain")) == 2
    with pytest.raises(TargetError, match=r"no CUDA device 2; this process may use 2, as CUDA_VIS"):
        driver.activate(2)


@pytest.mark.parametrize(
    "arch, form, here, rank",
    [
        ("sm_90a", "cubin", (9, 0), 0),
        ("sm_90", "cubin", (9, 0), 0),
        ("sm_90a", "ptx", (9, 0), 100),
        ("sm_80", "cubin", (8, 6), 6),
        ("sm_86", "cubin", (8, 0), None),
        ("sm_80", "cubin", (9, 0), None),
        ("sm_80", "ptx", (9, 0), 110),
        ("sm_90a", "ptx", (10, 0), None),
        ("sm_100f", "cubin", (10, 3), 3),
        ("sm_100f", "ptx", (12, 0), None),
        ("sm_120", "ptx", (12, 1), 101),
        ("sm_90", "hsaco", (9, 0), None),
        ("gfx1100", "cubin", (9, 0), None),
    ],
)
def test_which_code_a_device_runs(arch, form, here, rank):
    assert cuda.CudaDriver(FakeCuda((here,))).rank(arch, form, 0) == rank


def test_status_words_are_memory_of_the_host():
    api = FakeCuda()
    word = cuda.CudaDriver(api).status_word(0)
    assert word.value == 0
    host = word.address - (1 << 40)
    ctypes.c_int32.from_address(host).value = 4
    assert word.value == 4
    word.close()
    word.close()
    assert api.named("cuMemFreeHost") == [("cuMemFreeHost", host)]
    assert word.value == 0


def test_streams_copies_events_and_memory():
    api = FakeCuda()
    driver = cuda.CudaDriver(api)
    driver.activate(0)
    stream, address = driver.create_stream(0), driver.allocate(0, 512)
    driver.copy_in(address, 1, 2, stream)
    driver.copy_out(3, address, 4, stream)
    driver.wait(stream)
    driver.order(stream, 5)
    event = driver.record(stream)
    assert driver.has_passed(event)
    api.failing["cuEventQuery"] = CUresult.CUDA_ERROR_NOT_READY
    assert not driver.has_passed(event)
    driver.free(0, address)
    driver.destroy_stream(0, stream)
    driver.synchronize()
    names = [call[0] for call in api.calls if not call[0].startswith("cuCtxGet")]
    assert names == [
        "cuDeviceGetCount", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
        "cuStreamCreate", "cuMemAlloc", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
        "cuStreamSynchronize", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent",
        "cuEventDestroy", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventQuery",
        "cuMemFree", "cuStreamDestroy", "cuCtxSynchronize",
    ]  # fmt: skip
    assert api.named("cuMemcpyHtoDAsync") == [("cuMemcpyHtoDAsync", address, 1, 2, stream)]
    assert api.named("cuMemcpyDtoHAsync") == [("cuMemcpyDtoHAsync", 3, address, 4, stream)]


def test_graphs():
    api = FakeCuda()
    driver = cuda.CudaDriver(api)
    recorded = []
    graph = driver.capture(0, recorded.append)
    (stream,) = recorded
    driver.replay(graph, 5)
    assert api.named("cuGraphLaunch") == [("cuGraphLaunch", graph, 5)]
    assert len(api.named("cuGraphDestroy")) == 1
    assert api.named("cuStreamDestroy") == [("cuStreamDestroy", stream)]
    api.capturing.add(9)
    assert driver.is_capturing(9)
    assert not driver.is_capturing(5)
    with pytest.raises(ZeroDivisionError, match="division"):
        driver.capture(0, lambda stream: 1 / 0)
    assert len(api.named("cuStreamDestroy")) == 2
    assert len(api.named("cuGraphExecDestroy")) == 1


def test_errors_of_the_driver_say_what_failed():
    api = FakeCuda(failing={"cuMemAlloc": CUresult.CUDA_ERROR_OUT_OF_MEMORY})
    driver = cuda.CudaDriver(api)
    with pytest.raises(MemoryError, match="cuMemAlloc failed: text of CUDA_ERROR_OUT_OF_MEMORY"):
        driver.allocate(0, 1)
    module = driver.load_module(0, b"code")
    run = driver.prepare(0, module, LAUNCH, 1)
    api.failing["cuLaunchKernel"] = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(
        ExecutionError,
        match=r"cuLaunchKernel of 'softmax' failed: text of CUDA_ERROR_ILLEGAL_ADDRESS \(CUDA_ERROR"
        r"_ILLEGAL_ADDRESS\); the process cannot use the device any more; run it with the option",
    ):
        run(5)
    api.failing["cuModuleLoadDataEx"] = CUresult.CUDA_ERROR_INVALID_PTX
    with pytest.raises(ExecutionError, match=r"\(CUDA_ERROR_INVALID_PTX\): line 3: bad op$"):
        driver.load_module(0, b"code")
    api.failing["cuModuleGetFunction"] = CUresult.CUDA_ERROR_NOT_FOUND
    with pytest.raises(ArtifactError, match="the artifact's code has no kernel 'softmax'"):
        driver.prepare(0, module, LAUNCH, 1)
    assert api.current == 50


def test_a_forked_process_is_told(monkeypatch):
    api = FakeCuda(failing={"cuMemAlloc": CUresult.CUDA_ERROR_NOT_INITIALIZED})
    driver = cuda.CudaDriver(api)
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(ExecutionError, match="forked after the device was used.*method 'spawn'"):
        driver.allocate(0, 1)


class FakeHip(types.ModuleType):
    """``hip.hip`` with two devices; calls are kept."""

    hipStreamNonBlocking, hipEventDisableTiming = 1, 2

    class hipError_t(enum.IntEnum):
        hipSuccess = 0
        hipErrorOutOfMemory = 2
        hipErrorNoDevice = 100
        hipErrorNotFound = 500
        hipErrorNotReady = 600

    def __init__(self) -> None:
        super().__init__("hip.hip")
        self.hipStreamCaptureMode = Names()
        self.calls: list[tuple] = []
        self.failing: dict[str, int] = {}
        self.current = 0
        self.numbers = itertools.count(1000)
        self.word = ctypes.c_int32(77)

    named = FakeCuda.named

    def hipGetErrorString(self, status):
        return f"text of {status.name}"

    def __getattr__(self, name: str):
        if not name.startswith("hip"):
            raise AttributeError(name)

        def function(*args):
            self.calls.append((name, *args))
            status = self.failing.get(name, self.hipError_t.hipSuccess)
            result = self.answer(name, args)
            return (status,) if result is None else (status, result)

        function.__name__ = name
        return function

    def answer(self, name: str, args):
        if name == "hipGetDeviceCount":
            return 2
        if name == "hipGetDevice":
            return self.current
        if name == "hipSetDevice":
            self.current = args[0]
            return None
        if name == "hipGetDeviceProperties":
            return types.SimpleNamespace(name=b"Fake GPU", gcnArchName=b"gfx1100:sramecc-")
        if name == "hipHostMalloc":
            return ctypes.addressof(self.word)
        if name == "hipHostGetDevicePointer":
            return args[0]
        if name == "hipEventElapsedTime":
            return 250.0
        if name == "hipStreamIsCapturing":
            return 0
        returns = (
            "hipModuleLoadData hipModuleGetFunction hipMalloc hipStreamCreateWithFlags "
            "hipEventCreateWithFlags hipStreamEndCapture hipGraphInstantiateWithFlags"
        )
        return next(self.numbers) if name in returns.split() else None


def test_the_hip_driver():
    api = FakeHip()
    driver = hip.HipDriver(api)
    assert (driver.device_count(), driver.device_name(1)) == (2, "Fake GPU (gfx1100)")
    assert driver.rank("gfx1100", "hsaco", 0) == 0
    assert driver.rank("gfx1101", "hsaco", 0) is None
    assert driver.rank("gfx1100", "cubin", 0) is None
    assert driver.activate(1) == 0
    driver.restore(0)
    module = driver.load_module(1, b"code")
    run = driver.prepare(1, module, LAUNCH, 12345)
    run(7)
    launched = api.calls[-1]
    assert launched[0] == "hipModuleLaunchKernel"
    assert launched[2:] == (4096, 2, 1, 256, 1, 1, 65536, 7, 12345, None)
    word = driver.status_word(0)
    assert word.value == 0
    # In the device's memory, cleared by a copy, and shown to the host by another one.
    assert (api.named("hipMemcpyHtoDAsync")[-1][1], word.address) == (word.address, 1002)
    word.publish(5)
    host = ctypes.addressof(api.word)
    assert api.named("hipMemcpyDtoHAsync") == [("hipMemcpyDtoHAsync", host, 1002, 4, 5)]
    word.close()
    assert api.named("hipFree", "hipHostFree") == [("hipFree", 1002), ("hipHostFree", host)]
    address = driver.allocate(0, 64)
    driver.copy_in(address, 1, 2, 5)
    driver.copy_out(1, address, 2, 5)
    driver.wait(5)
    driver.order(5, 6)
    graph = driver.capture(0, lambda stream: None)
    driver.replay(graph, 5)
    driver.destroy_graph(graph)
    assert not driver.is_capturing(5)
    assert driver.has_passed(driver.record(5))
    assert driver.elapsed(driver.record(5, timed=True), driver.record(5, timed=True)) == 0.25
    flags = [call[1] for call in api.named("hipEventCreateWithFlags")[-3:]]
    assert flags == [api.hipEventDisableTiming, 0, 0]
    driver.free(0, address)
    driver.unload_module(1, module)
    driver.synchronize()
    assert api.current == 0
    with pytest.raises(
        TargetError, match="there is no HIP device 5; this process may use 2, as HI"
    ):
        driver.activate(5)
    api.failing["hipMalloc"] = api.hipError_t.hipErrorOutOfMemory
    with pytest.raises(MemoryError, match="hipMalloc failed: text of hipErrorOutOfMemory"):
        driver.allocate(0, 1)
    api.failing["hipModuleGetFunction"] = api.hipError_t.hipErrorNotFound
    with pytest.raises(ArtifactError, match="the artifact's code has no kernel 'softmax'"):
        driver.prepare(0, module, LAUNCH, 1)
    api.failing["hipEventQuery"] = api.hipError_t.hipErrorNotReady
    assert not driver.has_passed(3)


# --- what is missing ------------------------------------------------------------------------------


@pytest.fixture(params=sorted(DRIVERS))
def target(request, monkeypatch):
    monkeypatch.setattr(DRIVERS[request.param], "_driver", None)
    return request.param


def connect_with(target, monkeypatch, api) -> None:
    name = "driver" if target == "nvgpu" else "hip"
    package = types.ModuleType(PACKAGE[target])
    if api is not None:
        setattr(package, name, api)
    monkeypatch.setitem(sys.modules, PACKAGE[target].partition(".")[0], package)
    monkeypatch.setitem(sys.modules, PACKAGE[target], package)
    DRIVERS[target].connect()


def test_without_the_bindings(target, monkeypatch):
    with pytest.raises(
        TargetError,
        match=rf"not installed; pip install polyblocks-{target}\[{EXTRA[target]}\]$",
    ):
        connect_with(target, monkeypatch, None)


def test_without_a_driver(target, monkeypatch):
    api = types.ModuleType("api")

    def missing(*args):
        raise RuntimeError("no library\nmore")

    api.cuInit = api.hipGetDeviceCount = missing
    with pytest.raises(
        TargetError, match=r"compile_options={'simulate': True} \(.* says: no library\)$"
    ):
        connect_with(target, monkeypatch, api)


def test_without_a_device(target, monkeypatch):
    api = types.ModuleType("api")
    failed = CUresult.CUDA_ERROR_NO_DEVICE if target == "nvgpu" else FakeHip.hipError_t(100)
    api.cuInit = lambda flags: (failed,)
    api.hipGetDeviceCount = lambda: (failed, 0)
    with pytest.raises(TargetError, match=r"no device \(\w+\w+\); see \w+_VISIBLE_DEVICES and"):
        connect_with(target, monkeypatch, api)
    api.cuInit = lambda flags: (0,)
    api.cuDeviceGetCount = api.hipGetDeviceCount = lambda: (0, 0)
    with pytest.raises(TargetError, match=r"finds no device \(none is visible\)"):
        connect_with(target, monkeypatch, api)


def test_one_connection_per_process(target, monkeypatch):
    api = FakeCuda() if target == "nvgpu" else FakeHip()
    assert DRIVERS[target].connected() is None
    connect_with(target, monkeypatch, api)
    assert DRIVERS[target].connected() is DRIVERS[target].connect()


def test_loading_touches_no_driver(target, monkeypatch):
    import importlib

    from fake_driver import artifact, launch
    from manifest_rows import row

    arch, form = ("sm_90a", "cubin") if target == "nvgpu" else ("gfx1100", "hsaco")
    source = artifact(
        [row("input", "x"), row("output", "o")], [launch("k", 0, 1)], arch=arch, form=form
    )
    plugin = importlib.import_module(f"polyblocks_{target}.plugin")
    plugin.synchronize()  # nothing was launched: nothing to wait for
    executable = plugin.load_artifact(artifact=source)
    assert isinstance(executable, DeviceExecutable)
    x = np.zeros((2, 3), np.float32)
    monkeypatch.setitem(sys.modules, PACKAGE[target], None)
    with pytest.raises(TargetError, match="is not installed; pip install"):
        executable.entry(b"".join(int(x.ctypes.data).to_bytes(8, "little") for _ in range(2)), 1)
