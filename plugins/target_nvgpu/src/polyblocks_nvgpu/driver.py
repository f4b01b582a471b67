"""The CUDA driver, through ``cuda.bindings``. Nothing is imported before the first launch."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.errors import ArtifactError, TargetError
from polyblocks.isolation import forks
from polyblocks.runtime.device.bindings import BindingsDriver, HostWord
from polyblocks.runtime.device.launches.native_driver import (
    Costs,
    Names,
    NativeDriver,
    open_loaded,
)
from polyblocks.runtime.device.plan import Launch
from polyblocks.runtime.device.tensor_map import TensorMap
from polyblocks_nvgpu.bulk import tensor_maps

#: ``CUstream`` of the legacy default stream; DLPack gives it the same number.
LEGACY_STREAM = 1
#: ``DLDeviceType`` of device and of managed memory.
CUDA, CUDA_MANAGED = 2, 13

#: The library that the bindings open.
LIBRARIES = ("libcuda.so.1", "libcuda.so")
#: cuda.h: names of functions whose parameters have been the same since CUDA 10.
NAMES = Names(
    launch="cuLaunchKernel",
    is_capturing="cuStreamIsCapturing",
    create_graph="cuGraphCreate",
    add_node="cuGraphAddKernelNode",
    instantiate="cuGraphInstantiateWithFlags",
    update_node="cuGraphExecKernelNodeSetParams",
    replay="cuGraphLaunch",
    destroy_executable="cuGraphExecDestroy",
    destroy_graph="cuGraphDestroy",
    current="cuCtxGetCurrent",
)

#: A launch from C takes about 2 us (through the bindings 7 us on an H200's host). A graph of
#: kernels in a row: 2 us + 0.2 us a kernel with CUDA 11.8, 2.5 us + 0.001 us with 12.6 (NVIDIA,
#: "Constant Time Launch for Straight-Line CUDA Graphs", 2024); the larger ones of both. The cost
#: of an update is not published: it copies the operands, as a launch does, and submits nothing;
#: half of that.
COSTS = Costs(launch=2e-6, replay=2.5e-6, replayed_node=0.2e-6, update_node=1e-6)

#: Bytes between two addresses for which tensor maps are compared.
_APART = 256

_ARCH = re.compile(r"sm_(\d+)(\d)([af]?)$")

#: After these the context is lost, and each later call fails as well.
_FATAL = frozenset(
    {
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "CUDA_ERROR_ASSERT",
    }
)


class _NodeParameters(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS_v1`` of cuda.h."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint32),
        ("operands", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
    )


def node_parameters(function: int, launch: Launch, operands: int) -> _NodeParameters:
    """A kernel of a graph, as the driver takes it."""
    grid, block = (ctypes.c_uint32 * 3)(*launch.grid), (ctypes.c_uint32 * 3)(*launch.block)
    return _NodeParameters(function, grid, block, launch.shared_bytes, operands, None)


class CudaDriver(BindingsDriver):
    """See :class:`polyblocks.runtime.device.driver.Driver`.

    It works in the primary contexts of the devices, as PyTorch, JAX, TensorFlow and cupy do.
    Devices are numbered as the driver numbers them, which ``CUDA_VISIBLE_DEVICES`` decides.

    Args:
        api: the module ``cuda.bindings.driver``, after ``cuInit``.
        library: the driver's, for calls without the bindings; None: there are none.
    """

    device_kinds: tuple[int, ...] = (CUDA, CUDA_MANAGED)
    array_protocols: tuple[str, ...] = ("__cuda_array_interface__",)
    default_stream = LEGACY_STREAM

    def __init__(self, api: Any, library: Any = None) -> None:
        super().__init__()
        self._api = api
        self._library = library
        self.native = NativeDriver.of(library, NAMES, COSTS, node_parameters, self._failure_of)
        self._contexts: dict[int, Any] = {}
        self._lock = forks.lock()

    def describe_status(self, status: Any) -> str:
        """See the base class."""
        name = getattr(status, "name", str(status))
        code, text = self._api.cuGetErrorString(status)
        what = "unknown error" if code or not text else text.decode()
        more = (
            "; the process cannot use the device any more; run it with the option 'simulate' to "
            "find the access and its line"
            if name in _FATAL
            else ""
        )
        return f"{what} ({name}){more}"

    def is_no_memory(self, status: Any) -> bool:
        """See the base class."""
        return bool(status == self._api.CUresult.CUDA_ERROR_OUT_OF_MEMORY)

    def _failure_of(self, function: str, status: int) -> Exception:
        try:
            return self.failure(function, self._api.CUresult(status))
        except ValueError:  # newer than the bindings
            return self.failure(function, status)

    # --- devices ---------------------------------------------------------------------------------

    def device_count(self) -> int:
        """See Driver."""
        return int(self.call(self._api.cuDeviceGetCount))

    def current_device(self) -> int:
        """See Driver."""
        if not int(self.call(self._api.cuCtxGetCurrent)):
            return 0
        return int(self.call(self._api.cuCtxGetDevice))

    def device_name(self, device: int) -> str:
        """See Driver."""
        name = self.call(self._api.cuDeviceGetName, 256, self._handle(device))
        major, minor = self._capability(device)
        return f"{name.split(bytes(1))[0].decode()} (sm_{major}{minor})"

    def rank(self, arch: str, form: str, device: int) -> int | None:
        """Machine code for this very chip, then for an earlier one of its generation, then PTX.

        Code for ``sm_90a`` runs on 9.0 alone; machine code on chips of its generation from its own
        on (CUDA C++ Programming Guide, "Binary Compatibility"); PTX for a family (``sm_100f``) on
        its generation; other PTX on every later chip.
        """
        match = _ARCH.match(arch)
        if match is None:
            return None
        wanted = int(match[1]), int(match[2])
        here = self._capability(device)
        distance = 10 * (here[0] - wanted[0]) + here[1] - wanted[1]
        same = here[0] == wanted[0]
        if distance < 0 or (match[3] == "a" and distance) or (match[3] == "f" and not same):
            return None
        if form == "cubin":
            return distance if same else None
        return 100 + distance if form == "ptx" else None

    def activate(self, device: int) -> int | None:
        """See Driver."""
        context = self._contexts.get(device) or self._context(device)
        native = self.native
        if native is not None:
            previous = native.current()
        else:
            previous = int(self.call(self._api.cuCtxGetCurrent))
        if previous == int(context):
            return None
        self.call(self._api.cuCtxSetCurrent, context)
        # A thread without a context has device 0, and may as well keep it.
        return None if previous == 0 and device == 0 else previous

    def restore(self, previous: int) -> None:
        """See Driver."""
        self.call(self._api.cuCtxSetCurrent, self._api.CUcontext(previous))

    def synchronize(self, device: int | None = None) -> None:
        """See Driver."""
        for number in list(self._contexts) if device is None else [device]:
            self._on(number, self._api.cuCtxSynchronize)

    # --- code ------------------------------------------------------------------------------------

    def load_module(self, device: int, image: bytes) -> int:
        """Load a cubin, or let the driver compile PTX."""
        option = self._api.CUjit_option
        log = bytearray(8192)
        options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        previous = self.activate(device)
        try:
            # PTX ends with a null byte; machine code says itself where it ends.
            status, module = self._api.cuModuleLoadDataEx(
                image + b"\0", len(options), options, [log, len(log)]
            )
        finally:
            if previous is not None:
                self.restore(previous)
        if status:
            said = log.partition(b"\0")[0].decode(errors="replace").strip()
            error = self.failure("cuModuleLoadDataEx", status)
            raise type(error)(f"{error}: {' '.join(said.split())}" if said else str(error))
        return int(module)

    def unload_module(self, device: int, module: int) -> None:
        """See Driver."""
        self._on(device, self._api.cuModuleUnload, self._api.CUmodule(module))

    def find_kernel(self, device: int, module: int, launch: Launch) -> int:
        """See Driver."""
        api = self._api
        previous = self.activate(device)
        try:
            name = launch.kernel.encode()
            status, function = api.cuModuleGetFunction(api.CUmodule(module), name)
            if status == api.CUresult.CUDA_ERROR_NOT_FOUND:
                raise ArtifactError(f"the artifact's code has no kernel '{launch.kernel}'")
            if status:
                raise self.failure("cuModuleGetFunction", status)
            if launch.shared_bytes:
                # More than 48 KiB in all must be asked for; asking for less does no harm.
                attribute = api.CUfunction_attribute
                self.call(
                    api.cuFuncSetAttribute,
                    function,
                    attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    launch.shared_bytes,
                )
        finally:
            if previous is not None:
                self.restore(previous)
        return int(function)

    def prepare(
        self, device: int, module: int, launch: Launch, parameters: int
    ) -> Callable[[int], None]:
        """See Driver."""
        function = self._api.CUfunction(self.find_kernel(device, module, launch))
        launch_kernel, failure, kernel = self._api.cuLaunchKernel, self.failure, launch.kernel
        grid_x, grid_y, grid_z = launch.grid
        block_x, block_y, block_z = launch.block
        shared = launch.shared_bytes

        def run(stream: int) -> None:
            (status,) = launch_kernel(
                function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                parameters, 0,
            )  # fmt: skip
            if status:
                raise failure(f"cuLaunchKernel of '{kernel}'", status)

        return run

    def encode_map(self, device: int, described: TensorMap) -> Sequence[int]:
        """See Driver."""
        # Of memory that there is: the driver may look at addresses.
        address = self.allocate(device, 2 * _APART)
        try:
            addresses = address, address + _APART
            return tensor_maps.words_of_any(self._library, described, addresses, self._failure_of)
        finally:
            self.free(device, address)

    # --- memory ----------------------------------------------------------------------------------

    def allocate(self, device: int, nbytes: int) -> int:
        """See Driver."""
        return int(self._on(device, self._api.cuMemAlloc, nbytes))

    def free(self, device: int, address: int) -> None:
        """See Driver."""
        self._on(device, self._api.cuMemFree, address)

    def status_word(self, device: int) -> HostWord:
        """See Driver."""
        api = self._api
        flags = api.CU_MEMHOSTALLOC_DEVICEMAP | api.CU_MEMHOSTALLOC_PORTABLE
        host = int(self._on(device, api.cuMemHostAlloc, 4, flags))
        address = int(self._on(device, api.cuMemHostGetDevicePointer, host, 0))
        return HostWord(host, address, lambda: self._on(device, api.cuMemFreeHost, host))

    def copy_in(self, address: int, host: int, nbytes: int, stream: int) -> None:
        """See Driver."""
        self.call(self._api.cuMemcpyHtoDAsync, address, host, nbytes, stream)

    def copy_out(self, host: int, address: int, nbytes: int, stream: int) -> None:
        """See Driver."""
        self.call(self._api.cuMemcpyDtoHAsync, host, address, nbytes, stream)

    # --- streams, events, graphs -----------------------------------------------------------------

    def create_stream(self, device: int) -> int:
        """See Driver."""
        flags = int(self._api.CUstream_flags.CU_STREAM_NON_BLOCKING)
        return int(self._on(device, self._api.cuStreamCreate, flags))

    def destroy_stream(self, device: int, stream: int) -> None:
        """See Driver."""
        self._on(device, self._api.cuStreamDestroy, stream)

    def wait(self, stream: int) -> None:
        """See Driver."""
        self.call(self._api.cuStreamSynchronize, stream)

    def record(self, stream: int, timed: bool = False) -> int:
        """See Driver."""
        flags = 0 if timed else int(self._api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        event = self.call(self._api.cuEventCreate, flags)
        self.call(self._api.cuEventRecord, event, stream)
        return int(event)

    def elapsed(self, first: int, then: int) -> float:
        """See Driver."""
        return float(self.call(self._api.cuEventElapsedTime, first, then)) / 1e3

    def wait_event(self, stream: int, event: int) -> None:
        """See the base class."""
        self.call(self._api.cuStreamWaitEvent, stream, event, 0)

    def has_passed(self, event: int) -> bool:
        """See Driver."""
        (status,) = self._api.cuEventQuery(event)
        if status == self._api.CUresult.CUDA_ERROR_NOT_READY:
            return False
        if status:
            raise self.failure("cuEventQuery", status)
        return True

    def destroy_event(self, event: int) -> None:
        """See Driver."""
        self.call(self._api.cuEventDestroy, event)

    def is_capturing(self, stream: int) -> bool:
        """See Driver."""
        return bool(self.call(self._api.cuStreamIsCapturing, stream))

    def begin_capture(self, stream: int) -> None:
        """See the base class."""
        mode = self._api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self.call(self._api.cuStreamBeginCapture, stream, mode)

    def end_capture(self, stream: int) -> int:
        """See the base class."""
        graph = self.call(self._api.cuStreamEndCapture, stream)
        try:
            return int(self.call(self._api.cuGraphInstantiate, graph, 0))
        finally:
            self.call(self._api.cuGraphDestroy, graph)

    def replay(self, graph: int, stream: int) -> None:
        """See Driver."""
        self.call(self._api.cuGraphLaunch, graph, stream)

    def destroy_graph(self, graph: int) -> None:
        """See Driver."""
        self.call(self._api.cuGraphExecDestroy, graph)

    # --- helpers ---------------------------------------------------------------------------------

    def _on(self, device: int, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of the driver while a device is current."""
        previous = self.activate(device)
        try:
            return self.call(function, *args)
        finally:
            if previous is not None:
                self.restore(previous)

    def _handle(self, device: int) -> Any:
        count = self.device_count()
        if not 0 <= device < count:
            raise TargetError(
                f"there is no CUDA device {device}; this process may use {count}, as "
                "CUDA_VISIBLE_DEVICES says"
            )
        return self.call(self._api.cuDeviceGet, device)

    def _context(self, device: int) -> Any:
        with self._lock:
            if device not in self._contexts:
                handle = self._handle(device)
                self._contexts[device] = self.call(self._api.cuDevicePrimaryCtxRetain, handle)
            return self._contexts[device]

    @functools.cache  # noqa: B019 (one driver per process)
    def _capability(self, device: int) -> tuple[int, int]:
        attribute = self._api.CUdevice_attribute
        major, minor = (
            self.call(self._api.cuDeviceGetAttribute, which, self._handle(device))
            for which in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        return int(major), int(minor)


_driver: CudaDriver | None = None
_connecting = forks.lock()

_INSTEAD = (
    "install NVIDIA's driver on a machine with a GPU, or run the program without one with "
    "compile_options={'simulate': True}"
)


def connect() -> CudaDriver:
    """The process's driver.

    Raises:
        TargetError: ``cuda-bindings`` or the driver is not installed, or there is no device.
    """
    global _driver
    with _connecting:
        if _driver is None:
            _driver = CudaDriver(_initialized(), open_loaded(*LIBRARIES))
        return _driver


def connected() -> CudaDriver | None:
    """The process's driver if it was used."""
    return _driver


def _initialized() -> Any:
    try:
        from cuda.bindings import driver as api
    except ImportError:
        raise TargetError(
            "target 'nvgpu' launches kernels through cuda-bindings, which is not installed; "
            "pip install polyblocks-nvgpu[cuda]"
        ) from None
    try:
        (status,) = api.cuInit(0)
    except RuntimeError as error:  # the bindings find no library
        first = (str(error).splitlines() or [""])[0]
        raise TargetError(
            f"target 'nvgpu' finds no CUDA driver; {_INSTEAD} (cuda-bindings says: {first})"
        ) from None
    count = 0
    if not status:
        status, count = api.cuDeviceGetCount()
    if status or not count:
        name = getattr(status, "name", status) if status else "none is visible"
        raise TargetError(
            f"target 'nvgpu' finds no device ({name}); see CUDA_VISIBLE_DEVICES and nvidia-smi, "
            "or run the program without one with compile_options={'simulate': True}"
        )
    return api
