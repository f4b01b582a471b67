"""A stand-in's functions as the vendors' Python bindings show them, for the drivers of targets."""

from __future__ import annotations

import ctypes
import enum
import inspect
import types
from collections.abc import Callable
from typing import Any

from tests.support.stand_in_driver import DRIVERS, NAMES, DriverLibrary, StandIn


class _Constants:
    """Constants of which only the name matters."""

    def __getattr__(self, name: str) -> int:
        known = {
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": 75,
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": 76,
            "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": 8,
        }
        return known.get(name, 1)


class Bindings:
    """``cuda.bindings.driver`` or ``hip.hip`` over a stand-in; results come as tuples."""

    CUjit_option = CUfunction_attribute = CUstream_flags = CUevent_flags = _Constants()
    CUdevice_attribute = CUstreamCaptureMode = hipStreamCaptureMode = _Constants()
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE = 2, 1
    hipStreamNonBlocking, hipEventDisableTiming = 1, 2

    def __init__(self, target: str, library: DriverLibrary) -> None:
        self._driver = library
        prefix = "CUDA_ERROR" if target == "nvgpu" else "hipError"
        names = {f"{prefix}_{name}": number for number, name in NAMES.items()}
        if target == "amdgpu":
            names = {
                "hipError" + name.title().replace("_", ""): number for number, name in NAMES.items()
            }
        self.CUresult = self.hipError_t = enum.IntEnum("Status", names)
        for name, (_, method) in DRIVERS[target][0].items():
            setattr(self, name.removesuffix("_v2"), self._binding(name, method))

    @staticmethod
    def CUcontext(handle: int) -> int:
        return handle

    CUmodule = CUfunction = CUcontext

    def cuDeviceGetName(self, size: int, device: int) -> tuple[int, bytes]:
        return 0, f"Chip {device}\0".encode()

    def cuModuleLoadDataEx(
        self, image: bytes, count: int, options: Any, values: Any
    ) -> tuple[int, int]:
        return self.hipModuleLoadData(image)

    def hipModuleLoadData(self, image: bytes) -> tuple[int, int]:
        held, place = ctypes.create_string_buffer(image), ctypes.c_uint64()
        assert self._driver.stand_in is not None
        status = self._driver.stand_in.call(
            "load_module", ctypes.addressof(place), ctypes.addressof(held)
        )
        return status, place.value

    def cuModuleGetFunction(self, module: int, name: bytes) -> tuple[Any, int]:
        held, place = ctypes.create_string_buffer(name), ctypes.c_uint64()
        assert self._driver.stand_in is not None
        status = self._driver.stand_in.call(
            "find_function", ctypes.addressof(place), module, ctypes.addressof(held)
        )
        return self._status(status), place.value

    hipModuleGetFunction = cuModuleGetFunction

    def cuGetErrorString(self, status: int) -> tuple[int, bytes]:
        return 0, NAMES[status].replace("_", " ").lower().encode()

    def hipGetErrorString(self, status: int) -> str:
        return NAMES[status].replace("_", " ").lower()

    def hipGetDeviceProperties(self, device: int) -> tuple[int, Any]:
        assert self._driver.stand_in is not None
        arch = self._driver.stand_in.archs[device]
        return 0, types.SimpleNamespace(name=b"Chip", gcnArchName=arch.encode())

    def cuGraphInstantiate(self, graph: int, flags: int) -> tuple[Any, ...]:
        made: tuple[Any, ...] = self.cuGraphInstantiateWithFlags(graph, flags)
        return made

    def _status(self, status: int) -> Any:
        return self.CUresult(status) if status in NAMES else status

    def _binding(self, name: str, method: str) -> Callable[..., Any]:
        own = getattr(type(self), name.removesuffix("_v2"), None)
        if own is not None:
            return types.MethodType(own, self)
        function = getattr(self._driver.code, name)
        parameters, _ = (DRIVERS["nvgpu"][0] | DRIVERS["amdgpu"][0])[name]
        kinds = {"p": ctypes.c_void_p, "i": ctypes.c_int, "u": ctypes.c_uint, "q": ctypes.c_uint64}
        function.argtypes = [kinds[each] for each in parameters]
        taken = list(inspect.signature(getattr(StandIn, method)).parameters)[1:]
        place = taken.index("place") if "place" in taken else -1

        def call(*arguments: Any) -> tuple[Any, ...]:
            if place < 0:
                return (self._status(function(*arguments)),)
            result = ctypes.c_uint64()
            address = ctypes.addressof(result)
            status = function(*arguments[:place], address, *arguments[place:])
            return self._status(status), result.value

        call.__name__ = name.removesuffix("_v2")
        return call
