"""A shared library with a vendor's driver in it that runs kernels in the project's simulator.

It is built by the C compiler and loaded for the whole process, so that a library for C finds it
where it opens the driver. Each of its functions calls a Python method. Memory of devices is the
host's; a module is the text of the kernels before they become machine code, which
:func:`for_stand_in` puts where an artifact has that.

Work is done when somebody waits for it, in the order in which it was put on its stream.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import struct
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from polyblocks.artifact import Artifact
from polyblocks.simt import Simulator
from polyblocks.simt.llvm_ir.reader import read_module
from polyblocks.simt.types import Float, Pointer

OUT_OF_MEMORY, INVALID_IMAGE, NOT_FOUND, ILLEGAL_ADDRESS = 2, 200, 500, 700
NAMES = {
    2: "OUT_OF_MEMORY", 3: "NOT_INITIALIZED", 100: "NO_DEVICE", 200: "INVALID_IMAGE",
    500: "NOT_FOUND", 600: "NOT_READY", 700: "ILLEGAL_ADDRESS",
}  # fmt: skip

#: Types of parameters: pointer, int, unsigned, 64 bits.
_C_TYPES = {"p": "void *", "i": "int", "u": "unsigned", "q": "unsigned long long"}
_PYTHON_TYPES = {
    "p": ctypes.c_void_p, "i": ctypes.c_int, "u": ctypes.c_uint, "q": ctypes.c_uint64,
}  # fmt: skip

#: Function -> its parameters, as cuda.h declares them, and the method that does it.
CUDA = {
    "cuInit": ("u", "initialize"),
    "cuDeviceGetCount": ("p", "count_devices"),
    "cuGetErrorName": ("ip", "error_name"),
    "cuGetErrorString": ("ip", "error_text"),
    "cuDeviceGet": ("pi", "get_device"),
    "cuDeviceGetName": ("pii", "device_name"),
    "cuDeviceGetAttribute": ("pii", "device_attribute"),
    "cuDevicePrimaryCtxRetain": ("pi", "retain_context"),
    "cuCtxGetCurrent": ("p", "get_context"),
    "cuCtxSetCurrent": ("p", "set_context"),
    "cuCtxGetDevice": ("p", "context_device"),
    "cuCtxSynchronize": ("", "synchronize"),
    "cuModuleLoadDataEx": ("ppupp", "load_module_with_options"),
    "cuModuleUnload": ("p", "unload_module"),
    "cuModuleGetFunction": ("ppp", "find_function"),
    "cuFuncSetAttribute": ("pii", "set_function_attribute"),
    "cuLaunchKernel": ("puuuuuuuppp", "launch"),
    "cuTensorMapEncodeTiled": ("piuppppp" + "iiii", "encode_map"),
    "cuTensorMapEncodeIm2col": ("piupppppuup" + "iiii", "encode_windows"),
    "cuMemAlloc_v2": ("pq", "allocate"),
    "cuMemFree_v2": ("q", "free"),
    "cuMemHostAlloc": ("pqu", "allocate_host"),
    "cuMemFreeHost": ("p", "free_host"),
    "cuMemcpyHtoDAsync_v2": ("qpqp", "copy_in"),
    "cuMemcpyDtoHAsync_v2": ("pqqp", "copy_out"),
    "cuStreamCreate": ("pu", "create_stream"),
    "cuStreamDestroy_v2": ("p", "destroy_stream"),
    "cuStreamSynchronize": ("p", "wait"),
    "cuStreamIsCapturing": ("pp", "is_capturing"),
    "cuStreamBeginCapture": ("pi", "begin_capture"),
    "cuStreamEndCapture": ("pp", "end_capture"),
    "cuGraphCreate": ("pu", "create_graph"),
    "cuGraphAddKernelNode": ("pppqp", "add_node"),
    "cuGraphInstantiateWithFlags": ("ppq", "instantiate"),
    "cuGraphExecKernelNodeSetParams": ("ppp", "update_node"),
    "cuGraphLaunch": ("pp", "replay"),
    "cuGraphExecDestroy": ("p", "destroy_executable"),
    "cuGraphDestroy": ("p", "destroy_graph"),
    "cuMemHostGetDevicePointer_v2": ("ppu", "mapped_address"),
    "cuMemAllocAsync": ("pqp", "allocate_on_stream"),
    "cuMemFreeAsync": ("qp", "free_on_stream"),
}
#: The same of hip_runtime_api.h.
HIP = {
    "hipInit": ("u", "initialize"),
    "hipGetDeviceCount": ("p", "count_devices"),
    "hipDrvGetErrorName": ("ip", "error_name"),
    "hipDrvGetErrorString": ("ip", "error_text"),
    "hipGetDevice": ("p", "current_device"),
    "hipSetDevice": ("i", "set_device"),
    "hipGetDevicePropertiesR0600": ("pi", "device_properties"),
    "hipDeviceSynchronize": ("", "synchronize"),
    "hipModuleLoadData": ("pp", "load_module"),
    "hipModuleUnload": ("p", "unload_module"),
    "hipModuleGetFunction": ("ppp", "find_function"),
    "hipModuleLaunchKernel": ("puuuuuuuppp", "launch"),
    "hipMalloc": ("pq", "allocate"),
    "hipFree": ("q", "free"),
    "hipHostMalloc": ("pqu", "allocate_host"),
    "hipHostFree": ("p", "free_host"),
    "hipMemcpyHtoDAsync": ("qpqp", "copy_in"),
    "hipMemcpyDtoHAsync": ("pqqp", "copy_out"),
    "hipStreamCreateWithFlags": ("pu", "create_stream"),
    "hipStreamDestroy": ("p", "destroy_stream"),
    "hipStreamSynchronize": ("p", "wait"),
    "hipStreamIsCapturing": ("pp", "is_capturing"),
    "hipStreamBeginCapture": ("pi", "begin_capture"),
    "hipStreamEndCapture": ("pp", "end_capture"),
    "hipGraphCreate": ("pu", "create_graph"),
    "hipGraphAddKernelNode": ("pppqp", "add_node"),
    "hipGraphInstantiateWithFlags": ("ppq", "instantiate"),
    "hipGraphExecKernelNodeSetParams": ("ppp", "update_node"),
    "hipGraphLaunch": ("pp", "replay"),
    "hipGraphExecDestroy": ("p", "destroy_executable"),
    "hipGraphDestroy": ("p", "destroy_graph"),
    "hipMallocAsync": ("pqp", "allocate_on_stream"),
    "hipFreeAsync": ("qp", "free_on_stream"),
}
#: Target -> functions, and the name by which the library is opened.
DRIVERS = {"nvgpu": (CUDA, "libcuda.so.1"), "amdgpu": (HIP, "libamdhip64.so.7")}


class StandIn:
    """What the functions of a driver do.

    Args:
        semantics: target's ops for the simulator.
        chips: per device its architecture, and what the simulator must know of it.
        room: bytes that a device has.

    Attributes:
        calls: names of the methods that were called, in order.
        failing: method -> the status that it returns.
        launches: kernel, grid, block and bytes of shared memory of each launch.
        memory: address on a device -> device and block.
        streams, modules, pinned, graphs, executables: what has been made, and not given up.
        refuse: asked before each call of a method with its name and how often it was called; the
            status that it returns instead, 0 for none.
    """

    def __init__(self, semantics: Any, chips: dict[str, Any], room: int = 1 << 30) -> None:
        self.semantics = semantics
        self.archs = list(chips)
        self.chips = chips
        self.room = room
        self.calls: list[str] = []
        self.failing: dict[str, int] = {}
        self.launches: list[tuple[Any, ...]] = []
        self.memory: dict[int, tuple[int, Any, int]] = {}
        self.streams: set[int] = set()
        self.modules: dict[int, Any] = {}
        self.pinned: dict[int, Any] = {}
        self.graphs: dict[int, dict[int, Callable[[], None]]] = {}
        self.executables: dict[int, dict[int, Callable[[], None]]] = {}
        self.counts: Counter[str] = Counter()
        self.refuse: Callable[[str, int], int] = lambda name, count: 0
        #: Stream that records a graph -> what was put there.
        self.recording: dict[int, list[Callable[[], None]]] = {}
        self.log = ""
        self._functions: dict[int, tuple[Any, str]] = {}
        self._pending: dict[int, list[Callable[[], None]]] = {}
        self._texts: dict[int, Any] = {}
        self._numbers = itertools.count(1000)
        self._thread = threading.local()
        self._lock = threading.RLock()

    #: Whether :attr:`calls` and :attr:`launches` are kept.
    keep_calls = True

    def call(self, name: str, *arguments: Any) -> int:
        """What a function of the driver returns."""
        with self._lock:
            if self.keep_calls:
                self.calls.append(name)
            self.counts[name] += 1
            if name in self.failing:
                return self.failing[name]
            if status := self.refuse(name, self.counts[name]):
                return status
            return int(getattr(self, name)(*arguments) or 0)

    # --- devices

    def initialize(self, flags: int) -> None:
        assert flags == 0

    def count_devices(self, place: int) -> None:
        _put(place, len(self.archs), ctypes.c_int)

    def error_name(self, status: int, place: int) -> int:
        return self._text(status, place, f"ERROR_{NAMES.get(status, 'X')}")

    def error_text(self, status: int, place: int) -> int:
        return self._text(status, place, NAMES.get(status, "x").replace("_", " ").lower())

    def _text(self, status: int, place: int, text: str) -> int:
        if status not in NAMES:
            return 1
        held = self._texts.setdefault(text, ctypes.create_string_buffer(text.encode()))
        _put(place, ctypes.addressof(held))
        return 0

    @property
    def current(self) -> int | None:
        """The device that is current to this thread."""
        return getattr(self._thread, "device", None)

    @current.setter
    def current(self, device: int | None) -> None:
        self._thread.device = device

    def get_device(self, place: int, ordinal: int) -> None:
        _put(place, ordinal, ctypes.c_int)

    def current_device(self, place: int) -> None:
        _put(place, self.current or 0, ctypes.c_int)

    def set_device(self, device: int) -> None:
        self.current = device

    def device_name(self, place: int, size: int, device: int) -> None:
        ctypes.memmove(place, f"Chip {device}\0".encode(), min(size, 8))

    def device_attribute(self, place: int, which: int, device: int) -> None:
        number = int(self.archs[device].removeprefix("sm_").rstrip("af"))
        _put(place, {75: number // 10, 76: number % 10}[which], ctypes.c_int)

    def device_properties(self, place: int, device: int) -> None:
        # The size of the real one: what is behind it must not be touched.
        ctypes.memset(place, 0, 1472)
        ctypes.memmove(place, f"Chip {device}".encode(), 6)
        arch = f"{self.archs[device]}:sramecc+:xnack-".encode()
        ctypes.memmove(place + 1160, arch, len(arch))

    def retain_context(self, place: int, device: int) -> None:
        _put(place, 0xC000 + device)

    def get_context(self, place: int) -> None:
        _put(place, 0 if self.current is None else 0xC000 + self.current)

    def set_context(self, context: int | None) -> None:
        self.current = None if not context else context - 0xC000

    def context_device(self, place: int) -> int:
        assert self.current is not None
        return self.get_device(place, self.current) or 0

    def synchronize(self) -> None:
        for stream in list(self._pending):
            self.wait(stream)

    # --- code

    def load_module_with_options(
        self, place: int, image: int, count: int, options: int, values: int
    ) -> int:
        read = (ctypes.c_int * count).from_address(options)
        assert list(read) == [5, 6]
        buffer, size = (ctypes.c_uint64 * 2).from_address(values)
        if self.log:
            ctypes.memmove(buffer, self.log.encode() + b"\0", min(size, len(self.log) + 1))
            return INVALID_IMAGE
        return self.load_module(place, image) or 0

    def load_module(self, place: int, image: int) -> int | None:
        text = ctypes.string_at(image).decode()
        device = self.current or 0
        simulator = Simulator(read_module(text), self.semantics, self.chips[self.archs[device]])
        module = next(self._numbers)
        self.modules[module] = device, simulator
        _put(place, module)
        return None

    def unload_module(self, module: int) -> None:
        del self.modules[module]

    def find_function(self, place: int, module: int, name: int) -> int:
        device, simulator = self.modules[module]
        kernel = ctypes.string_at(name).decode()
        if kernel not in simulator.kernels:
            return NOT_FOUND
        assert device == (self.current or 0)
        function = next(self._numbers)
        self._functions[function] = simulator, kernel
        _put(place, function)
        return 0

    def set_function_attribute(self, function: int, attribute: int, value: int) -> None:
        assert function in self._functions
        assert attribute == 8
        assert value > 0

    def launch(self, function: int, *arguments: Any) -> None:
        x, y, z, a, b, c, shared, stream, operands, extra = arguments
        assert not extra
        self._work(stream, self._kernel(function, (x, y, z), (a, b, c), shared, operands))

    def _kernel(
        self, function: int, grid: Any, block: Any, shared: int, operands: int
    ) -> Callable[[], None]:
        """The work of a launch, with the operands as they are now."""
        simulator, kernel = self._functions[function]
        types = simulator._program(kernel).argument_types
        # The operands are copied when the driver is called.
        bits: list[Any] = []
        if types:
            places = (ctypes.c_uint64 * len(types)).from_address(operands)
            for place, kind in zip(places, types, strict=True):
                is_map = isinstance(kind, Pointer) and kind.space == 0
                words = list((ctypes.c_uint64 * (16 if is_map else 1)).from_address(place))
                bits.append(words if is_map else words[0])
        if self.keep_calls:
            self.launches.append((kernel, grid, block, shared))
        return lambda: self._run(simulator, kernel, grid, block, shared, types, bits)

    def _run(self, simulator: Any, kernel: str, grid: Any, block: Any, shared: int, types: Any,
             bits: list[Any]) -> None:  # fmt: skip
        with simulator.scratch():
            buffers: dict[int, Any] = {}
            values: list[Any] = []
            for kind, value in zip(types, bits, strict=True):
                if isinstance(value, list):
                    values.append(self._tensor_map(simulator, buffers, value))
                elif isinstance(kind, Pointer):
                    start = self._start(value)
                    if start not in buffers:
                        buffers[start] = simulator.buffer(self.view(start))
                    values.append(buffers[start] + (value - start))
                elif isinstance(kind, Float):
                    code = {16: "e", 32: "f", 64: "d"}[kind.bits]
                    (number,) = struct.unpack_from(code, struct.pack("Q", value))
                    values.append(number)
                else:
                    values.append(value & ((1 << kind.bits) - 1))
            result = simulator.launch(kernel, grid, block, values, shared)
            assert result.finished
            assert not result.findings, "\n".join(map(str, result.findings))
            for start, buffer in buffers.items():
                buffer.get(self.view(start))

    def encode_map(
        self, result: int, kind: int, rank: int, address: int, extents: int, strides: int,
        box: int, steps: int, *form: int,
    ) -> None:  # fmt: skip
        """A tensor map of its own form: the address comes first, as it does with CUDA's."""
        assert result % 64 == 0
        assert address % 16 == 0
        assert form == (0, 3, 3, 0)
        sizes = list((ctypes.c_uint64 * rank).from_address(extents))
        apart = list((ctypes.c_uint64 * (rank - 1)).from_address(strides)) if rank > 1 else []
        boxes = list((ctypes.c_uint32 * rank).from_address(box))
        assert list((ctypes.c_uint32 * rank).from_address(steps)) == [1] * rank
        assert all(stride % 16 == 0 for stride in apart)
        assert all(0 < extent <= 256 for extent in boxes)
        assert boxes[0] << kind == 128
        words = [address, kind, rank, *sizes, *apart, *boxes]
        (ctypes.c_uint64 * 16).from_address(result)[:] = [*words, *[0] * (16 - len(words))]

    def encode_windows(
        self, result: int, kind: int, rank: int, address: int, extents: int, strides: int,
        lower: int, upper: int, channels: int, pixels: int, steps: int, *form: int,
    ) -> None:  # fmt: skip
        """The same of windows: the corners and the step of a dimension share a word."""
        assert result % 64 == address % 16 == 0
        assert form == (0, 3, 3, 0)
        assert 3 <= rank <= 5
        sizes = list((ctypes.c_uint64 * rank).from_address(extents))
        apart = list((ctypes.c_uint64 * (rank - 1)).from_address(strides))
        corners = [(ctypes.c_int32 * (rank - 2)).from_address(each) for each in (lower, upper)]
        first, *each_step, last = (ctypes.c_uint32 * rank).from_address(steps)
        assert first == last == 1
        assert all(stride % 16 == 0 for stride in apart)
        most = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}[rank]
        assert all(-most <= corner < most for each in corners for corner in each)
        assert all(0 < step <= 8 for step in each_step)
        assert channels << kind == 128
        assert 0 < pixels <= 1024
        packed = [
            sum((number & 0xFFFF) << 16 * k for k, number in enumerate(numbers))
            for numbers in zip(*corners, each_step, strict=True)
        ]
        words = [address, kind + (rank << 8), *sizes, *apart, channels, pixels, *packed]
        (ctypes.c_uint64 * 16).from_address(result)[:] = [*words, *[0] * (16 - len(words))]

    def _tensor_map(self, simulator: Any, buffers: dict[int, Any], words: list[int]) -> Any:
        address, kind, rank, *rest = words
        pixels: dict[str, Any] = {}
        if kind >> 8:
            kind, rank, rest = kind & 0xFF, kind >> 8, [rank, *rest]
            packed = np.array(rest[2 * rank + 1 : 3 * rank - 1], np.uint64)
            numbers = packed[:, None] >> np.array([0, 16, 32], np.uint64)
            lower, upper, steps = numbers.astype(np.uint16).view(np.int16).T.tolist()
            pixels = {"kind": "im2col", "lower": lower, "upper": upper, "steps": steps}
            pixels["box"] = rest[2 * rank - 1 : 2 * rank + 1]
        start = self._start(address)
        if start not in buffers:
            buffers[start] = simulator.buffer(self.view(start))
        described = {
            "element_bytes": 1 << kind,
            "extents": rest[:rank],
            "strides": rest[rank : 2 * rank - 1],
            "box": rest[2 * rank - 1 : 3 * rank - 1],
            **pixels,
        }
        return simulator.tensor_map(buffers[start] + (address - start), described)

    def _start(self, address: int) -> int:
        for start, (_, _, size) in self.memory.items():
            if start <= address < start + size:
                return start
        if address in self.pinned:
            return address
        raise AssertionError(f"{address:#x} is no memory of a device")

    # --- memory

    def view(self, start: int) -> np.ndarray:
        """The bytes of memory of a device."""
        size = self.memory[start][2] if start in self.memory else len(self.pinned[start])
        return np.frombuffer((ctypes.c_char * size).from_address(start), np.uint8)

    def allocate(self, place: int, size: int) -> int:
        assert size > 0
        device = self.current or 0
        used = sum(each for where, _, each in self.memory.values() if where == device)
        if used + size > self.room:
            return OUT_OF_MEMORY
        block = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(block) // 256) * 256
        ctypes.memset(address, 0xA5, size)
        self.memory[address] = device, block, size
        _put(place, address)
        return 0

    def free(self, address: int) -> None:
        del self.memory[address]

    def allocate_host(self, place: int, size: int, flags: int) -> None:
        assert flags & 1
        block = ctypes.create_string_buffer(size)
        self.pinned[ctypes.addressof(block)] = block
        _put(place, ctypes.addressof(block))

    def mapped_address(self, place: int, address: int, flags: int) -> None:
        assert flags == 0
        assert address in self.pinned
        _put(place, address)

    def free_host(self, address: int) -> None:
        del self.pinned[address]

    def copy_in(self, address: int, host: int, size: int, stream: int) -> None:
        self._start(address)
        data = ctypes.string_at(host, size)
        self._work(stream, lambda: ctypes.memmove(address, data, size))

    def copy_out(self, host: int, address: int, size: int, stream: int) -> None:
        self._start(address)
        self._work(stream, lambda: ctypes.memmove(host, address, size))

    def allocate_on_stream(self, place: int, size: int, stream: int) -> int:
        return self.allocate(place, size)

    def free_on_stream(self, address: int, stream: int) -> None:
        self._work(stream, lambda: self.free(address))

    # --- streams

    def create_stream(self, place: int, flags: int) -> None:
        assert flags == 1
        stream = next(self._numbers)
        self.streams.add(stream)
        _put(place, stream)

    def destroy_stream(self, stream: int) -> None:
        assert not self._pending.get(stream)
        self.streams.remove(stream)

    def wait(self, stream: int | None) -> None:
        for item in self._pending.pop(stream or 0, []):
            item()

    def _work(self, stream: int | None, item: Callable[[], Any]) -> None:
        assert not stream or stream in self.streams
        if stream in self.recording:
            self.recording[stream].append(item)
            return
        self._pending.setdefault(stream or 0, []).append(item)

    # --- graphs

    def is_capturing(self, stream: int | None, place: int) -> None:
        _put(place, int(stream in self.recording), ctypes.c_int)

    def begin_capture(self, stream: int, mode: int) -> None:
        assert stream not in self.recording
        self.recording[stream] = []

    def end_capture(self, stream: int, place: int) -> None:
        graph = next(self._numbers)
        self.graphs[graph] = dict(enumerate(self.recording.pop(stream)))
        _put(place, graph)

    def create_graph(self, place: int, flags: int) -> None:
        assert flags == 0
        graph = next(self._numbers)
        self.graphs[graph] = {}
        _put(place, graph)

    def add_node(self, place: int, graph: int, after: int, count: int, parameters: int) -> None:
        nodes = self.graphs[graph]
        assert count == min(len(nodes), 1)
        if count:
            assert ctypes.c_uint64.from_address(after).value == list(nodes)[-1], "a chain"
        node = next(self._numbers)
        nodes[node] = self._node(parameters)
        _put(place, node)

    def _node(self, parameters: int) -> Callable[[], None]:
        def three(offset: int) -> tuple[int, ...]:
            return tuple((ctypes.c_uint32 * 3).from_address(parameters + offset))

        def word(offset: int, kind: Any = ctypes.c_uint64) -> int:
            return int(kind.from_address(parameters + offset).value)

        if self.archs[0].startswith("gfx"):  # hipKernelNodeParams
            assert word(16) == 0
            return self._kernel(word(24), three(32), three(0), word(56, ctypes.c_uint32), word(48))
        assert word(48) == 0
        return self._kernel(word(0), three(8), three(20), word(32, ctypes.c_uint32), word(40))

    def instantiate(self, place: int, graph: int, flags: int) -> None:
        assert flags == 0
        executable = next(self._numbers)
        self.executables[executable] = dict(self.graphs[graph])
        _put(place, executable)

    def update_node(self, executable: int, node: int, parameters: int) -> None:
        assert any(node in nodes for nodes in self.graphs.values()), "its graph is alive"
        assert node in self.executables[executable]
        self.executables[executable][node] = self._node(parameters)

    def replay(self, executable: int, stream: int | None) -> None:
        for item in self.executables[executable].values():
            self._work(stream, item)

    def destroy_executable(self, executable: int) -> None:
        del self.executables[executable]

    def destroy_graph(self, graph: int) -> None:
        del self.graphs[graph]

    # --- for tests

    def upload(self, array: np.ndarray) -> int:
        """The address of an array's copy on the current device."""
        place = ctypes.c_uint64()
        assert self.allocate(ctypes.addressof(place), array.nbytes) == 0
        self.view(place.value)[:] = np.frombuffer(array.tobytes(), np.uint8)
        return place.value

    def download(self, address: int, like: np.ndarray) -> np.ndarray:
        """What an address on a device holds."""
        data = self.view(address).tobytes()[: like.nbytes]
        return np.frombuffer(data, like.dtype).reshape(like.shape)


def _put(place: int, value: int, kind: Any = ctypes.c_uint64) -> None:
    kind.from_address(place).value = value


@functools.cache
def _built(source: str, soname: str) -> bytes:
    """A shared library from C: each test loads a copy, which has handlers of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-xc", "-", "-o", soname]
        subprocess.run(command, cwd=folder, check=True, input=source.encode())
        return (Path(folder) / soname).read_bytes()


class DriverLibrary:
    """A driver that this process finds by its name, with a stand-in behind it.

    Args:
        target: ``nvgpu`` or ``amdgpu``.
        folder: where it is built.
        private: nothing finds it by its name.

    Attributes:
        stand_in: what is called; set by each test.
    """

    def __init__(self, target: str, folder: Path, private: bool = False) -> None:
        functions, soname = DRIVERS[target]
        if private:
            soname = f"private-{soname}"
        self.stand_in: StandIn | None = None
        handlers = f"handlers_{target}"
        lines = [f"void *{handlers}[{len(functions)}];"]
        for number, (name, (parameters, _)) in enumerate(functions.items()):
            types = [_C_TYPES[each] for each in parameters]
            taken = ", ".join(f"{each} a{k}" for k, each in enumerate(types)) or "void"
            given = ", ".join(f"a{k}" for k in range(len(types)))
            lines.append(
                f"int {name}({taken}) {{ return ((int (*)({', '.join(types) or 'void'}))"
                f"{handlers}[{number}])({given}); }}"
            )
        (folder / soname).write_bytes(_built("\n".join(lines), soname))
        #: The library, for ctypes.
        self.code = ctypes.CDLL(
            str(folder / soname), ctypes.RTLD_LOCAL if private else ctypes.RTLD_GLOBAL
        )
        table = (ctypes.c_void_p * len(functions)).in_dll(self.code, handlers)
        self._handlers = []
        for number, (parameters, method) in enumerate(functions.values()):
            types = [_PYTHON_TYPES[each] for each in parameters]
            handler = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._handler(method))
            self._handlers.append(handler)
            table[number] = ctypes.cast(handler, ctypes.c_void_p)

    def _handler(self, method: str) -> Callable[..., int]:
        def handle(*arguments: Any) -> int:
            assert self.stand_in is not None
            try:
                return self.stand_in.call(method, *arguments)
            except BaseException as error:
                self.errors.append(error)
                return 999

        return handle

    #: What went wrong in the stand-in itself: C cannot be told.
    errors: list[BaseException] = []  # noqa: RUF012 (one driver per process)


def for_stand_in(artifact: Artifact, form: str, **more: Any) -> Artifact:
    """An artifact built with ``simulate`` as one with code that the stand-in runs.

    Args:
        artifact: for one architecture.
        form: what the target calls its code.
        more: keys of the manifest.
    """
    blobs = {
        name.removesuffix("ll") + form if name.endswith(".ll") else name: data
        for name, data in artifact.blobs.items()
    }
    return Artifact({**artifact.manifest, **more}, blobs)
