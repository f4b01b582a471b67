"""The HIP runtime, through ``hip-python``. Nothing is imported before the first launch."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from polyblocks.errors import ArtifactError, TargetError
from polyblocks.isolation import forks
from polyblocks.runtime.device.bindings import BindingsDriver, DeviceWord
from polyblocks.runtime.device.launches.native_driver import (
    Costs,
    Names,
    NativeDriver,
    open_loaded,
)
from polyblocks.runtime.device.plan import Launch

#: ``DLDeviceType`` of a device's memory.
ROCM = 10

#: The library, as the bindings open it. Others of its names may be another copy, PyTorch's.
LIBRARIES = ("libamdhip64.so",)
#: hip_runtime_api.h.
NAMES = Names(
    launch="hipModuleLaunchKernel",
    is_capturing="hipStreamIsCapturing",
    create_graph="hipGraphCreate",
    add_node="hipGraphAddKernelNode",
    instantiate="hipGraphInstantiateWithFlags",
    update_node="hipGraphExecKernelNodeSetParams",
    replay="hipGraphLaunch",
    destroy_executable="hipGraphExecDestroy",
    destroy_graph="hipGraphDestroy",
    current="hipGetDevice",
)

#: No device was there to measure them. A launch writes a packet of 64 bytes and rings a bell; a
#: replay writes the packets of all kernels, without looking at their operands. Taken from the other
#: vendor's driver, but for kernels of a graph, each of which HIP submits by itself.
COSTS = Costs(launch=2e-6, replay=2.5e-6, replayed_node=0.5e-6, update_node=1e-6)

#: hipHostMallocPortable: for all devices.
_PORTABLE = 1


class _NodeParameters(ctypes.Structure):
    """``hipKernelNodeParams`` of hip_runtime_api.h; its function may be one of a module."""

    _fields_ = (
        ("block", ctypes.c_uint32 * 3),
        ("extra", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("operands", ctypes.c_void_p),
        ("shared", ctypes.c_uint32),
    )


def node_parameters(function: int, launch: Launch, operands: int) -> _NodeParameters:
    """A kernel of a graph, as the runtime takes it."""
    grid, block = (ctypes.c_uint32 * 3)(*launch.grid), (ctypes.c_uint32 * 3)(*launch.block)
    return _NodeParameters(block, None, function, grid, operands, launch.shared_bytes)


class HipDriver(BindingsDriver):
    """See :class:`polyblocks.runtime.device.driver.Driver`.

    Devices are numbered as the runtime numbers them, which ``HIP_VISIBLE_DEVICES`` and
    ``ROCR_VISIBLE_DEVICES`` decide.

    Args:
        api: the module ``hip.hip``.
        library: the runtime's, for calls without the bindings; None: there are none.
    """

    device_kinds: tuple[int, ...] = (ROCM,)
    # The name in PyTorch and cupy for ROCm, too.
    array_protocols: tuple[str, ...] = ("__cuda_array_interface__",)
    default_stream = 0

    def __init__(self, api: Any, library: Any = None) -> None:
        super().__init__()
        self._api = api
        self.native = NativeDriver.of(library, NAMES, COSTS, node_parameters, self._failure_of)
        self._used: set[int] = set()

    def describe_status(self, status: Any) -> str:
        """See the base class."""
        text = self._api.hipGetErrorString(status)
        what = text.decode() if isinstance(text, bytes) else str(text)
        return f"{what} ({getattr(status, 'name', status)})"

    def is_no_memory(self, status: Any) -> bool:
        """See the base class."""
        return bool(status == self._api.hipError_t.hipErrorOutOfMemory)

    def _failure_of(self, function: str, status: int) -> Exception:
        try:
            return self.failure(function, self._api.hipError_t(status))
        except ValueError:  # newer than the bindings
            return self.failure(function, status)

    # --- devices ---------------------------------------------------------------------------------

    def device_count(self) -> int:
        """See Driver."""
        return int(self.call(self._api.hipGetDeviceCount))

    def current_device(self) -> int:
        """See Driver."""
        return int(self.call(self._api.hipGetDevice))

    def device_name(self, device: int) -> str:
        """See Driver."""
        name, arch = self._properties(device)
        return f"{name} ({arch})"

    def rank(self, arch: str, form: str, device: int) -> int | None:
        """Code runs on the architecture that it is for, and on no other."""
        return 0 if form == "hsaco" and arch == self._properties(device)[1] else None

    def activate(self, device: int) -> int | None:
        """See Driver."""
        native = self.native
        previous = self.call(self._api.hipGetDevice) if native is None else native.current()
        if previous == device:
            return None
        if device not in self._used:
            self._properties(device)  # says which devices there are
        self.call(self._api.hipSetDevice, device)
        return int(previous)

    def restore(self, previous: int) -> None:
        """See Driver."""
        self.call(self._api.hipSetDevice, previous)

    def synchronize(self, device: int | None = None) -> None:
        """See Driver."""
        for number in list(self._used) if device is None else [device]:
            self._on(number, self._api.hipDeviceSynchronize)

    # --- code ------------------------------------------------------------------------------------

    def load_module(self, device: int, image: bytes) -> int:
        """Load a code object."""
        self._used.add(device)
        return int(self._on(device, self._api.hipModuleLoadData, image))

    def unload_module(self, device: int, module: int) -> None:
        """See Driver."""
        self._on(device, self._api.hipModuleUnload, module)

    def find_kernel(self, device: int, module: int, launch: Launch) -> int:
        """See Driver."""
        api = self._api
        previous = self.activate(device)
        try:
            status, function = api.hipModuleGetFunction(module, launch.kernel.encode())
        finally:
            if previous is not None:
                self.restore(previous)
        if status == api.hipError_t.hipErrorNotFound:
            raise ArtifactError(f"the artifact's code has no kernel '{launch.kernel}'")
        if status:
            raise self.failure("hipModuleGetFunction", status)
        return int(function)

    def prepare(
        self, device: int, module: int, launch: Launch, parameters: int
    ) -> Callable[[int], None]:
        """See Driver."""
        function = self.find_kernel(device, module, launch)
        launch_kernel, failure, kernel = (
            self._api.hipModuleLaunchKernel,
            self.failure,
            launch.kernel,
        )
        size, shared = (*launch.grid, *launch.block), launch.shared_bytes

        def run(stream: int) -> None:
            (status,) = launch_kernel(function, *size, shared, stream, parameters, None)
            if status:
                raise failure(f"hipModuleLaunchKernel of '{kernel}'", status)

        return run

    # --- memory ----------------------------------------------------------------------------------

    def allocate(self, device: int, nbytes: int) -> int:
        """See Driver."""
        return int(self._on(device, self._api.hipMalloc, nbytes))

    def free(self, device: int, address: int) -> None:
        """See Driver."""
        self._on(device, self._api.hipFree, address)

    def status_word(self, device: int) -> DeviceWord:
        """In the device's own memory: a bus has no atomic maximum.

        (PCI Express Base Specification, "Atomic Operations": fetch-and-add, swap, and compare and
        swap.)
        """
        api = self._api
        host = int(self._on(device, api.hipHostMalloc, 4, _PORTABLE))
        return DeviceWord(self, device, host, lambda: self._on(device, api.hipHostFree, host))

    def copy_in(self, address: int, host: int, nbytes: int, stream: int) -> None:
        """See Driver."""
        self.call(self._api.hipMemcpyHtoDAsync, address, host, nbytes, stream)

    def copy_out(self, host: int, address: int, nbytes: int, stream: int) -> None:
        """See Driver."""
        self.call(self._api.hipMemcpyDtoHAsync, host, address, nbytes, stream)

    # --- streams, events, graphs -----------------------------------------------------------------

    def create_stream(self, device: int) -> int:
        """See Driver."""
        flags = self._api.hipStreamNonBlocking
        return int(self._on(device, self._api.hipStreamCreateWithFlags, flags))

    def destroy_stream(self, device: int, stream: int) -> None:
        """See Driver."""
        self._on(device, self._api.hipStreamDestroy, stream)

    def wait(self, stream: int) -> None:
        """See Driver."""
        self.call(self._api.hipStreamSynchronize, stream)

    def record(self, stream: int, timed: bool = False) -> int:
        """See Driver."""
        api = self._api
        flags = 0 if timed else api.hipEventDisableTiming
        event = int(self.call(api.hipEventCreateWithFlags, flags))
        self.call(api.hipEventRecord, event, stream)
        return event

    def elapsed(self, first: int, then: int) -> float:
        """See Driver."""
        return float(self.call(self._api.hipEventElapsedTime, first, then)) / 1e3

    def wait_event(self, stream: int, event: int) -> None:
        """See the base class."""
        self.call(self._api.hipStreamWaitEvent, stream, event, 0)

    def has_passed(self, event: int) -> bool:
        """See Driver."""
        (status,) = self._api.hipEventQuery(event)
        if status == self._api.hipError_t.hipErrorNotReady:
            return False
        if status:
            raise self.failure("hipEventQuery", status)
        return True

    def destroy_event(self, event: int) -> None:
        """See Driver."""
        self.call(self._api.hipEventDestroy, event)

    def is_capturing(self, stream: int) -> bool:
        """See Driver."""
        return bool(self.call(self._api.hipStreamIsCapturing, stream))

    def begin_capture(self, stream: int) -> None:
        """See the base class."""
        mode = self._api.hipStreamCaptureMode.hipStreamCaptureModeThreadLocal
        self.call(self._api.hipStreamBeginCapture, stream, mode)

    def end_capture(self, stream: int) -> int:
        """See the base class."""
        graph = int(self.call(self._api.hipStreamEndCapture, stream))
        try:
            return int(self.call(self._api.hipGraphInstantiateWithFlags, graph, 0))
        finally:
            self.call(self._api.hipGraphDestroy, graph)

    def replay(self, graph: int, stream: int) -> None:
        """See Driver."""
        self.call(self._api.hipGraphLaunch, graph, stream)

    def destroy_graph(self, graph: int) -> None:
        """See Driver."""
        self.call(self._api.hipGraphExecDestroy, graph)

    # --- helpers ---------------------------------------------------------------------------------

    def _on(self, device: int, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of the runtime while a device is current."""
        previous = self.activate(device)
        try:
            return self.call(function, *args)
        finally:
            if previous is not None:
                self.restore(previous)

    @functools.cache  # noqa: B019 (one driver per process)
    def _properties(self, device: int) -> tuple[str, str]:
        """Name and architecture, without the features behind the colon."""
        count = self.device_count()
        if not 0 <= device < count:
            raise TargetError(
                f"there is no HIP device {device}; this process may use {count}, as "
                "HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES say"
            )
        properties = self.call(self._api.hipGetDeviceProperties, device)
        return _text(properties.name), _text(properties.gcnArchName).partition(":")[0]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


_driver: HipDriver | None = None
_connecting = forks.lock()


def connect() -> HipDriver:
    """The process's driver.

    Raises:
        TargetError: ``hip-python`` or ROCm is not installed, or there is no device.
    """
    global _driver
    with _connecting:
        if _driver is None:
            _driver = HipDriver(_initialized(), open_loaded(*LIBRARIES))
        return _driver


def connected() -> HipDriver | None:
    """The process's driver if it was used."""
    return _driver


def _initialized() -> Any:
    instead = "run the program without one with compile_options={'simulate': True}"
    try:
        from hip import hip as api
    except ImportError:
        raise TargetError(
            "target 'amdgpu' launches kernels through hip-python, which is not installed; "
            "pip install polyblocks-amdgpu[hip]"
        ) from None
    try:
        status, count = api.hipGetDeviceCount()
    except RuntimeError as error:  # the bindings find no library
        first = (str(error).splitlines() or [""])[0]
        raise TargetError(
            f"target 'amdgpu' finds no HIP runtime; install ROCm on a machine with a GPU, or "
            f"{instead} (hip-python says: {first})"
        ) from None
    if status or not count:
        name = getattr(status, "name", status) if status else "none is visible"
        raise TargetError(
            f"target 'amdgpu' finds no device ({name}); see HIP_VISIBLE_DEVICES and rocminfo, or "
            f"{instead}"
        )
    return api
