"""Common code of drivers over a vendor's Python bindings.

The functions of such bindings return a tuple: a status, which is 0 for success, then the results.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.errors import ExecutionError
from polyblocks.runtime.device.launches.native_driver import NativeDriver
from polyblocks.runtime.device.tensor_map import TensorMap


class BindingsDriver(ABC):
    """Calls, errors, and what is made of several calls; see :class:`Driver` for the methods.

    A subclass gives the primitives. A process that was forked after the driver was used cannot go
    on with it; its errors say so.

    Attributes:
        native: see Driver.
    """

    native: NativeDriver | None = None

    def __init__(self) -> None:
        self._pid = os.getpid()

    @abstractmethod
    def describe_status(self, status: Any) -> str:
        """Name and meaning of a status."""

    @abstractmethod
    def is_no_memory(self, status: Any) -> bool:
        """Whether a status says that there is no room."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """The result of a function of the driver; a tuple if there are several, None if none.

        Raises:
            MemoryError: there is no room.
            ExecutionError: the driver reports another error.
        """
        status, *results = function(*args)
        if status:
            raise self.failure(function.__name__, status)
        return results[0] if len(results) == 1 else tuple(results) or None

    def failure(self, function: str, status: Any) -> Exception:
        """The error for a status of a function."""
        text = f"{function} failed: {self.describe_status(status)}"
        if os.getpid() != self._pid:
            text += (
                "; this process was forked after the device was used, which drivers do not "
                "support: start processes with the method 'spawn'"
            )
        return MemoryError(text) if self.is_no_memory(status) else ExecutionError(text)

    def encode_map(self, device: int, described: TensorMap) -> Sequence[int]:
        """See Driver."""
        del device
        raise ExecutionError(f"this vendor's driver makes no tensor maps: {described}")

    # --- the primitives of what follows ----------------------------------------------------------

    @abstractmethod
    def activate(self, device: int) -> int | None:
        """See Driver."""

    @abstractmethod
    def restore(self, previous: int) -> None:
        """See Driver."""

    @abstractmethod
    def synchronize(self, device: int | None = None) -> None:
        """See Driver."""

    @abstractmethod
    def allocate(self, device: int, nbytes: int) -> int:
        """See Driver."""

    @abstractmethod
    def free(self, device: int, address: int) -> None:
        """See Driver."""

    @abstractmethod
    def copy_in(self, address: int, host: int, nbytes: int, stream: int) -> None:
        """See Driver."""

    @abstractmethod
    def copy_out(self, host: int, address: int, nbytes: int, stream: int) -> None:
        """See Driver."""

    @abstractmethod
    def wait(self, stream: int) -> None:
        """See Driver."""

    @abstractmethod
    def create_stream(self, device: int) -> int:
        """See Driver."""

    @abstractmethod
    def destroy_stream(self, device: int, stream: int) -> None:
        """See Driver."""

    @abstractmethod
    def record(self, stream: int, timed: bool = False) -> int:
        """See Driver."""

    @abstractmethod
    def destroy_event(self, event: int) -> None:
        """See Driver."""

    @abstractmethod
    def wait_event(self, stream: int, event: int) -> None:
        """Let a stream wait for an event."""

    @abstractmethod
    def begin_capture(self, stream: int) -> None:
        """Record what this thread puts on a stream."""

    @abstractmethod
    def end_capture(self, stream: int) -> int:
        """The graph of what was recorded, ready to run."""

    def order(self, first: int, then: int) -> None:
        """See Driver."""
        event = self.record(first)
        try:
            self.wait_event(then, event)
        finally:
            self.destroy_event(event)  # lives on until it is passed

    def capture(self, device: int, record: Callable[[int], None]) -> int:
        """See Driver."""
        stream = self.create_stream(device)
        try:
            self.begin_capture(stream)
            try:
                record(stream)
            except BaseException:
                # A broken recording raises the error that broke it.
                with contextlib.suppress(ExecutionError):
                    self.destroy_graph(self.end_capture(stream))
                raise
            return self.end_capture(stream)
        finally:
            self.destroy_stream(device, stream)

    @abstractmethod
    def destroy_graph(self, graph: int) -> None:
        """See Driver."""


class HostWord:
    """A StatusWord in page-locked memory of the host that the device can write to.

    Args:
        host: its address on the host.
        device: its address on the device.
        free: gives it up.
    """

    def __init__(self, host: int, device: int, free: Callable[[], None]) -> None:
        self.address = device
        self.host = host
        self._word = ctypes.c_int32.from_address(host)
        self._word.value = 0
        self._free: Callable[[], None] | None = free

    def publish(self, stream: int) -> None:
        """Nothing to do: kernels write where the host reads."""

    @property
    def value(self) -> int:
        """Its value now."""
        return self._word.value

    @value.setter
    def value(self, value: int) -> None:
        self._word.value = value

    def close(self) -> None:
        """Free it."""
        free, self._free = self._free, None
        if free is not None:
            # Who reads it later finds no failure.
            self._word = ctypes.c_int32(0)
            free()


class DeviceWord:
    """A StatusWord in a device's own memory, with a copy of it in page-locked memory of the host.

    For devices whose atomic operations do not reach the host's memory.

    Attributes:
        host: nothing is seen without :meth:`publish`.

    Args:
        driver: of the device.
        device: its number.
        host: the address of 4 bytes of page-locked memory.
        free: gives those up.
    """

    host = 0

    def __init__(
        self, driver: BindingsDriver, device: int, host: int, free: Callable[[], None]
    ) -> None:
        self.address = driver.allocate(device, 4)
        self._driver, self._device, self._host = driver, device, host
        self._word = ctypes.c_int32.from_address(host)
        self._free: Callable[[], None] | None = free
        self._clear()

    def publish(self, stream: int) -> None:
        """Copy it to the host behind what is on the stream."""
        self._driver.copy_out(self._host, self.address, 4, stream)

    @property
    def value(self) -> int:
        """The value that the last copy brought."""
        return self._word.value

    @value.setter
    def value(self, value: int) -> None:
        assert value == 0, "only kernels report failures"
        if self._word.value:
            # Copies that are under way would bring the old failure again.
            self._driver.synchronize(self._device)
            self._clear()

    def close(self) -> None:
        """Free it."""
        free, self._free = self._free, None
        if free is not None:
            # Who reads it later finds no failure.
            self._word = ctypes.c_int32(0)
            self._driver.free(self._device, self.address)
            free()

    def _clear(self) -> None:
        self._word.value = 0
        driver, device = self._driver, self._device
        previous = driver.activate(device)
        stream = driver.create_stream(device)
        try:
            driver.copy_in(self.address, self._host, 4, stream)
            driver.wait(stream)
        finally:
            driver.destroy_stream(device, stream)
            if previous is not None:
                driver.restore(previous)
