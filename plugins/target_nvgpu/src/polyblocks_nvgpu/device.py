"""The NVIDIA GPU of this machine, as its driver describes it.

The driver's library is asked directly, so that describing needs no package. Nothing is allocated
and no context is made; facts that change (clocks now, free memory) are left out, since the
description is part of the cache key.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from dataclasses import dataclass
from typing import Any

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"

#: ``CUdevice_attribute`` of the driver's API.
ATTRIBUTES = {
    "clock_khz": 13,
    "multiprocessors": 16,
    "memory_khz": 36,
    "bus_bits": 37,
    "l2": 38,
    "threads": 39,
    "major": 75,
    "minor": 76,
    "shared": 81,
    "registers": 82,
    "shared_per_block_optin": 97,
    "blocks": 106,
    "shared_reserved": 111,
}


@dataclass(frozen=True)
class Device:
    """One device; what the driver does not say is 0.

    Attributes:
        index: among the devices that this process may see.
        name: the product's.
        major, minor: the compute capability.
        multiprocessors: enabled ones.
        clock_khz, memory_khz: the highest clocks.
        bus_bits: width of the memory's bus.
        l2: bytes of the L2 cache.
        threads, blocks, registers, shared, shared_reserved, shared_per_block_optin: as in
            :class:`polyblocks.target.Multiprocessor`.
    """

    index: int
    name: str
    major: int
    minor: int
    multiprocessors: int
    clock_khz: int = 0
    memory_khz: int = 0
    bus_bits: int = 0
    l2: int = 0
    threads: int = 0
    blocks: int = 0
    registers: int = 0
    shared: int = 0
    shared_reserved: int = 0
    shared_per_block_optin: int = 0

    @property
    def bandwidth(self) -> float:
        """Bytes per second of the memory, which moves data on both edges of its clock."""
        return 2.0 * self.memory_khz * 1e3 * self.bus_bits / 8


class NoDeviceError(Exception):
    """There is no device, or no driver; the message says which."""


def present() -> Device:
    """The device of the current context, else the first that this process may see.

    Raises:
        NoDeviceError: none can be used.
    """
    library = driver()
    index = ctypes.c_int()
    if library.cuCtxGetDevice(ctypes.byref(index)) == 0:
        return query(library, index.value)
    return query(library, 0)


def driver() -> Any:
    """The driver's library, ready to be asked.

    Raises:
        NoDeviceError: it cannot be loaded, or says that there is no device.
    """
    try:
        library = load(LIBRARY)
    except OSError:
        raise NoDeviceError(f"no driver is installed ({LIBRARY} is not found)") from None
    status = library.cuInit(0)
    count = ctypes.c_int()
    if status == 0:
        status = library.cuDeviceGetCount(ctypes.byref(count))
    if status != 0:
        raise NoDeviceError(f"the driver finds no device ({_name_of(library, status)})")
    if count.value == 0:
        raise NoDeviceError("the driver finds no device")
    return library


def query(library: Any, index: int) -> Device:
    """The driver's description of the device at ``index``."""
    device = ctypes.c_int()
    _check(library, library.cuDeviceGet(ctypes.byref(device), index), "cuDeviceGet")
    text = ctypes.create_string_buffer(256)
    _check(library, library.cuDeviceGetName(text, len(text), device), "cuDeviceGetName")
    facts = {}
    for name, number in ATTRIBUTES.items():
        value = ctypes.c_int()
        # An older driver does not know all of them.
        status = library.cuDeviceGetAttribute(ctypes.byref(value), number, device)
        facts[name] = value.value if status == 0 else 0
    return Device(index=index, name=text.value.decode(errors="replace"), **facts)


@functools.cache
def load(name: str) -> Any:
    """The shared library called ``name``."""
    return ctypes.CDLL(name)


def _check(library: Any, status: int, function: str) -> None:
    if status != 0:
        raise NoDeviceError(f"{function} of the driver failed ({_name_of(library, status)})")


def _name_of(library: Any, status: int) -> str:
    text = ctypes.c_char_p()
    if library.cuGetErrorName(status, ctypes.byref(text)) == 0 and text.value:
        return text.value.decode()
    return f"error {status}"
