"""Arrays that come with a program: they are put on a device once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from polyblocks.isolation import forks

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver


class StoredArrays:
    """Bytes in the memory of each device where they are used. Safe among threads.

    Args:
        driver: gives the driver of the devices.
        contents: of each array.
    """

    def __init__(self, driver: Callable[[], Driver], contents: Sequence[bytes]) -> None:
        self._driver = driver
        self._contents = list(contents)
        self._lock = forks.lock()
        self._addresses: dict[int, list[int]] = {}

    def addresses(self, device: int) -> list[int]:
        """Where they are on a device, for as long as the process lives."""
        if not self._contents:
            return []
        known = self._addresses.get(device)
        if known is None:
            with self._lock:
                known = self._addresses.get(device)
                if known is None:
                    known = self._addresses[device] = self._upload(device)
        return known

    def _upload(self, device: int) -> list[int]:
        driver = self._driver()
        previous = driver.activate(device)
        stream = driver.create_stream(device)
        try:
            addresses = []
            for data in self._contents:
                addresses.append(driver.allocate(device, max(len(data), 1)))
                if data:
                    held = ctypes.c_char_p(data)
                    host = ctypes.cast(held, ctypes.c_void_p).value or 0
                    driver.copy_in(addresses[-1], host, len(data), stream)
            driver.wait(stream)
            return addresses
        finally:
            driver.destroy_stream(device, stream)
            if previous is not None:
                driver.restore(previous)
