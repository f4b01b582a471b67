"""A driver without a device: memory is the host's, kernels are Python functions, calls are kept.

Work is done in the order in which it is put on a stream, when somebody waits for the stream, or at
once (``eager``).
"""

from __future__ import annotations

import ctypes
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks.artifact import Artifact
from polyblocks.errors import ArtifactError, TargetError
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.numpy_arrays import NumpyArrays

#: Memory of devices, as DLPack numbers such things: reserved for those who have no number.
KIND = 12


class Word:
    """A status word."""

    def __init__(self, driver: FakeDriver) -> None:
        self._memory = ctypes.c_int32(0)
        self._driver = driver
        self.address = self.host = ctypes.addressof(self._memory)
        driver.words += 1

    def publish(self, stream: int) -> None:
        self._driver.counts["publish"] += 1

    @property
    def value(self) -> int:
        return self._memory.value

    @value.setter
    def value(self, value: int) -> None:
        self._memory.value = value

    def close(self) -> None:
        self._driver.words -= 1


class FakeDriver:
    """See :class:`polyblocks.runtime.device.driver.Driver`.

    Args:
        kernels: name -> function of the operands' addresses.
        archs: one per device.
        eager: run what is launched at once; else when somebody waits.
        room: bytes that a device has.

    Attributes:
        calls: names and arguments of all calls but the cheap ones, in order.
        counts: how often each method was called.
    """

    device_kinds = (KIND,)
    array_protocols = ("__fake_array_interface__",)
    default_stream = 1
    native = None

    def __init__(
        self,
        kernels: dict[str, Callable[..., None]],
        archs: tuple[str, ...] = ("v1",),
        *,
        eager: bool = True,
        room: int = 1 << 30,
        keep_calls: bool = True,
    ) -> None:
        self.kernels = kernels
        self.archs = archs
        self.eager = eager
        self.room = [room] * len(archs)
        self.calls: list[tuple[Any, ...]] = []
        self.counts: Counter[str] = Counter()
        self.memory: dict[int, tuple[int, Any]] = {}
        self.modules: dict[int, tuple[int, bytes]] = {}
        self.streams: set[int] = set()
        self.graphs: dict[int, list[Callable[[], None]]] = {}
        self.pending: dict[int, list[Callable[[], None]]] = {}
        self.recording: dict[int, list[Callable[[], None]]] = {}
        self.events: dict[int, int] = {}
        self.done: Counter[int] = Counter()
        self.put: Counter[int] = Counter()
        self.words = 0
        self._keep = keep_calls
        self._numbers = itertools.count(100)
        self._lock = threading.RLock()
        self._current = threading.local()

    def _note(self, name: str, *args: Any) -> None:
        self.counts[name] += 1
        if self._keep:
            self.calls.append((name, *args))

    def named(self, *names: str) -> list[tuple[Any, ...]]:
        """The calls of these methods."""
        return [call for call in self.calls if call[0] in names]

    # --- devices

    def device_count(self) -> int:
        return len(self.archs)

    def current_device(self) -> int:
        return getattr(self._current, "device", 0)

    def device_name(self, device: int) -> str:
        if not 0 <= device < len(self.archs):
            raise TargetError(f"there is no device {device}")
        return f"Fake {self.archs[device]}"

    def rank(self, arch: str, form: str, device: int) -> int | None:
        here = self.archs[device]
        if form == "binary":
            return 0 if arch == here else None
        return 10 - int(arch[1:]) if arch <= here else None

    def activate(self, device: int) -> int | None:
        previous = self.current_device()
        if previous == device:
            return None
        self._current.device = device
        return previous

    def restore(self, previous: int) -> None:
        self._current.device = previous

    def synchronize(self, device: int | None = None) -> None:
        self._note("synchronize", device)
        for stream in list(self.pending):
            self._drain(stream)

    # --- code

    def load_module(self, device: int, image: bytes) -> int:
        with self._lock:
            module = next(self._numbers)
            self._note("load_module", device, image)
            self.modules[module] = device, image
            return module

    def unload_module(self, device: int, module: int) -> None:
        self._note("unload_module", device)
        del self.modules[module]

    def prepare(self, device: int, module: int, launch: Any, parameters: int) -> Any:
        assert self.modules[module][0] == device
        if launch.kernel not in self.kernels:
            raise ArtifactError(f"the code has no kernel '{launch.kernel}'")
        function = self.kernels[launch.kernel]
        count = len(launch.slots)

        def run(stream: int) -> None:
            assert self.current_device() == device
            # The operands are copied when the driver is called.
            places = (ctypes.c_uint64 * count).from_address(parameters)
            operands = [ctypes.c_uint64.from_address(place).value for place in places]
            self._note("launch", launch.kernel, device, stream, launch.grid, launch.block)
            self._put(stream, lambda: function(*operands))

        return run

    # --- memory

    def allocate(self, device: int, nbytes: int) -> int:
        with self._lock:
            if nbytes > self.room[device]:
                raise MemoryError(f"device {device} has no room for {nbytes} bytes")
            self.room[device] -= nbytes
            block = ctypes.create_string_buffer(nbytes + 256)
            address = -(-ctypes.addressof(block) // 256) * 256
            ctypes.memset(address, 0xA5, nbytes)
            self.memory[address] = nbytes, block
            self._note("allocate", device, nbytes)
            return address

    def free(self, device: int, address: int) -> None:
        with self._lock:
            self._note("free", device)
            self.room[device] += self.memory.pop(address)[0]

    def status_word(self, device: int) -> Word:
        return Word(self)

    def copy_in(self, address: int, host: int, nbytes: int, stream: int) -> None:
        self._note("copy_in", nbytes, stream)
        self._put(stream, lambda: ctypes.memmove(address, host, nbytes))

    def copy_out(self, host: int, address: int, nbytes: int, stream: int) -> None:
        self._note("copy_out", nbytes, stream)
        self._put(stream, lambda: ctypes.memmove(host, address, nbytes))

    # --- streams, events, graphs

    def create_stream(self, device: int) -> int:
        with self._lock:
            stream = next(self._numbers)
            self.streams.add(stream)
            return stream

    def destroy_stream(self, device: int, stream: int) -> None:
        self.streams.remove(stream)

    def wait(self, stream: int) -> None:
        self._note("wait", stream)
        self._drain(stream)

    def order(self, first: int, then: int) -> None:
        self._note("order", first, then)

    def record(self, stream: int, timed: bool = False) -> int:
        self.counts["timed"] += timed
        event = next(self._numbers)
        self.events[event] = self.put[stream], stream
        return event

    def elapsed(self, first: int, then: int) -> float:
        """A millisecond for each piece of work in between."""
        return (self.events[then][0] - self.events[first][0]) / 1e3

    def has_passed(self, event: int) -> bool:
        count, stream = self.events[event]
        return self.done[stream] >= count

    def destroy_event(self, event: int) -> None:
        del self.events[event]

    def is_capturing(self, stream: int) -> bool:
        return stream in self.recording

    def capture(self, device: int, record: Callable[[int], None]) -> int:
        stream = next(self._numbers)
        self.recording[stream] = []
        try:
            record(stream)
        finally:
            work = self.recording.pop(stream)
        graph = next(self._numbers)
        self.graphs[graph] = work
        self._note("capture", len(work))
        return graph

    def replay(self, graph: int, stream: int) -> None:
        self._note("replay", stream)
        for work in self.graphs[graph]:
            self._put(stream, work)

    def destroy_graph(self, graph: int) -> None:
        del self.graphs[graph]

    def _put(self, stream: int, work: Callable[[], None]) -> None:
        if stream in self.recording:
            self.recording[stream].append(work)
            return
        with self._lock:
            self.put[stream] += 1
            self.pending.setdefault(stream, []).append(work)
            if self.eager:
                self._drain(stream)

    def _drain(self, stream: int) -> None:
        with self._lock:
            work = self.pending.pop(stream, [])
            for item in work:
                item()
            self.done[stream] += len(work)


def view(address: int, count: int, dtype: Any = np.float32) -> np.ndarray:
    """The memory at an address as a flat array."""
    return np.frombuffer(
        (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address), dtype
    )


class DeviceArray:
    """An array of a made-up framework on a fake device, or on the host."""

    def __init__(self, values: np.ndarray, device: Device = HOST) -> None:
        self.values = values
        self.place = device


class FakeArrays(ArrayInterface):
    """Of a framework with streams and an allocator."""

    current_stream = 7

    def __init__(self) -> None:
        self._numpy = NumpyArrays()

    def is_array(self, value: Any) -> bool:
        return isinstance(value, DeviceArray)

    def describe(self, array: Any) -> ArraySpec:
        return self._numpy.describe(array.values)

    def pointer(self, array: Any) -> int:
        return self._numpy.pointer(array.values)

    def device(self, array: Any) -> Device:
        return array.place

    def is_writable(self, array: Any) -> bool:
        return True

    def empty(self, spec: ArraySpec, device: Device) -> DeviceArray:
        return DeviceArray(self._numpy.empty(spec, HOST), device)

    def transfer(self, array: Any, device: Device) -> DeviceArray:
        return DeviceArray(array.values.copy(), device)

    def has_streams(self, device: Device) -> bool:
        return device != HOST

    def allocates(self, device: Device) -> bool:
        return True

    def stream(self, device: Device) -> int:
        return self.current_stream


def launch(kernel: str, *arguments: Any, grid=(1, 1, 1), block=(32, 1, 1), shared: int = 0) -> dict:
    """A row of a plan; an operand is the number of an argument, or a dictionary."""
    return {
        "kernel": kernel,
        "grid": list(grid),
        "block": list(block),
        "shared_bytes": shared,
        "arguments": [a if isinstance(a, dict) else {"argument": a} for a in arguments],
    }


def artifact(
    arguments: list[dict],
    launches: list[dict],
    *,
    arch: str = "v1",
    form: str = "binary",
    **more: Any,
) -> Artifact:
    """An artifact with a plan, as it comes back from a file."""
    manifest = {
        "target": "fake",
        "arch": arch,
        "name": "f",
        "entry": "main",
        "arguments": arguments,
        "launches": launches,
        "kernels": [{"name": each["kernel"]} for each in launches],
        **more,
    }
    manifest = json.loads(json.dumps(manifest))
    made = Artifact(manifest, {f"kernels.{arch}.{form}": f"code for {arch}".encode()})
    return Artifact.from_bytes(made.to_bytes())
