"""Memory of a device that is used again: workspaces, copies of host arrays, results.

Allocating is expensive, and freeing waits for the device. Blocks come back here instead and are
handed out again for the same stream, where whatever still uses them runs first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from polyblocks.isolation import forks

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver

#: Bytes of idle blocks that a device keeps, by default.
IDLE_BYTES = 1 << 30

#: The least size of a block, and the least step between sizes, in bytes.
_STEP = 512


class DevicePool:
    """The blocks of one device. Safe among threads.

    Args:
        driver: allocates and frees.
        device: its number.
        max_idle_bytes: beyond it those idle for longest are freed. One block is kept in any case.
    """

    def __init__(self, driver: Driver, device: int, max_idle_bytes: int = IDLE_BYTES) -> None:
        self._driver = driver
        self._device = device
        self._max_idle_bytes = max_idle_bytes
        # Reentrant: a result may die, and come back, in the middle of our own code.
        self._lock = forks.rlock()
        #: Address -> its size and stream, those idle for longest first.
        self._idle: OrderedDict[int, tuple[int, int]] = OrderedDict()
        #: Size and stream -> addresses.
        self._places: dict[tuple[int, int], list[int]] = {}
        self.idle_bytes = 0

    def acquire(self, nbytes: int, stream: int) -> int:
        """The address of at least ``nbytes`` bytes with any content, for use on one stream.

        Raises:
            MemoryError: there is no room, also not after freeing all idle blocks.
        """
        size = size_class(nbytes)
        with self._lock:
            addresses = self._places.get((size, stream))
            if addresses:
                address = addresses.pop()
                del self._idle[address]
                self.idle_bytes -= size
                return address
        try:
            return self._driver.allocate(self._device, size)
        except MemoryError:
            self.trim()
            return self._driver.allocate(self._device, size)

    def release(self, address: int, nbytes: int, stream: int) -> None:
        """Give a block back; what still uses it must be on ``stream`` already.

        Args:
            address: what :meth:`acquire` returned.
            nbytes: what it was asked for.
            stream: on which it was used.
        """
        size = size_class(nbytes)
        with self._lock:
            self._idle[address] = size, stream
            self._places.setdefault((size, stream), []).append(address)
            self.idle_bytes += size
            if self.idle_bytes > self._max_idle_bytes:
                self._free(self._max_idle_bytes, keep=1)

    def trim(self) -> None:
        """Free all idle blocks."""
        with self._lock:
            self._free(0, keep=0)

    def _free(self, limit: int, keep: int) -> None:
        while self.idle_bytes > limit and len(self._idle) > keep:
            address, place = self._idle.popitem(last=False)
            addresses = self._places[place]
            addresses.remove(address)
            if not addresses:
                del self._places[place]
            self.idle_bytes -= place[0]
            self._driver.free(self._device, address)


def size_class(nbytes: int) -> int:
    """``nbytes`` rounded up to eight steps per power of two, at least 512 bytes each."""
    step = max(1 << max(nbytes.bit_length() - 4, 0), _STEP)
    return max(-(-nbytes // step), 1) * step


_pools: dict[tuple[int, int], tuple[Driver, DevicePool]] = {}
_pools_lock = forks.lock()


def pool_of(driver: Driver, device: int) -> DevicePool:
    """The process's pool of a device."""
    key = (id(driver), device)
    with _pools_lock:
        if key not in _pools:
            _pools[key] = driver, DevicePool(driver, device)
        return _pools[key][1]


def trim() -> None:
    """Free all idle blocks of all devices."""
    with _pools_lock:
        pools = [pool for _, pool in _pools.values()]
    for pool in pools:
        pool.trim()
