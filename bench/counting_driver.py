"""A driver that does nothing but count: what is left of a GPU call is what the host spends.

It is a shared library of empty C functions with the names and parameters of the CUDA driver's. The
bindings beside it call them as ``cuda.bindings.driver`` calls those of the real one, and return
the same tuples.
"""

from __future__ import annotations

import ctypes
import enum
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

_C_TYPES = {"o": "void *", "p": "void *", "i": "int", "u": "unsigned", "q": "unsigned long long"}
_CTYPES = {
    "o": ctypes.c_void_p, "p": ctypes.c_void_p, "i": ctypes.c_int, "u": ctypes.c_uint,
    "q": ctypes.c_uint64,
}  # fmt: skip

#: Function -> its parameters: results, pointers and handles, int, unsigned, 64 bits.
FUNCTIONS = {
    "cuDeviceGetCount": "o",
    "cuDeviceGet": "oi",
    "cuDevicePrimaryCtxRetain": "oi",
    "cuCtxGetCurrent": "o",
    "cuCtxSetCurrent": "p",
    "cuCtxGetDevice": "o",
    "cuCtxSynchronize": "",
    "cuModuleUnload": "p",
    "cuModuleGetFunction": "opp",
    "cuFuncSetAttribute": "pii",
    "cuLaunchKernel": "puuuuuuuppp",
    "cuMemAlloc": "oq",
    "cuMemFree": "q",
    "cuMemcpyHtoDAsync": "qpqp",
    "cuMemcpyDtoHAsync": "pqqp",
    "cuStreamCreate": "ou",
    "cuStreamDestroy": "p",
    "cuStreamSynchronize": "p",
    "cuStreamWaitEvent": "ppu",
    "cuStreamIsCapturing": "po",
    "cuStreamBeginCapture": "pi",
    "cuStreamEndCapture": "po",
    "cuEventCreate": "ou",
    "cuEventRecord": "pp",
    "cuEventQuery": "p",
    "cuEventDestroy": "p",
    "cuGraphCreate": "ou",
    "cuGraphAddKernelNode": "oppqp",
    "cuGraphInstantiate": "opq",
    "cuGraphInstantiateWithFlags": "opq",
    "cuGraphExecKernelNodeSetParams": "ppp",
    "cuGraphLaunch": "pp",
    "cuGraphExecDestroy": "p",
    "cuGraphDestroy": "p",
}
#: Results that are no new handle.
_RESULTS = {
    "cuDeviceGetCount": "*(int *)a0 = 1",
    "cuDeviceGet": "*(int *)a0 = 0",
    "cuCtxGetCurrent": "*(void **)a0 = context",
    "cuCtxSetCurrent": "context = a0",
    "cuCtxGetDevice": "*(int *)a0 = 0",
    "cuStreamIsCapturing": "*(int *)a1 = 0",
}


class Status(enum.IntEnum):
    """The statuses that the bindings know."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_NOT_READY = 600


class _Constants:
    """Constants of which only the name matters."""

    def __getattr__(self, name: str) -> int:
        return 1


class CountingDriver:
    """The library, and bindings of it.

    Args:
        folder: where it is built, with gcc.

    Attributes:
        library: for ctypes.
    """

    CUresult = Status
    CUjit_option = CUfunction_attribute = CUstream_flags = CUevent_flags = _Constants()
    CUdevice_attribute = CUstreamCaptureMode = _Constants()

    def __init__(self, folder: Path) -> None:
        lines = [
            f"static unsigned long long next = 4096; unsigned long long counts[{len(FUNCTIONS)}];",
            "static __thread void *context;",
        ]
        for number, (name, kinds) in enumerate(FUNCTIONS.items()):
            taken = ", ".join(f"{_C_TYPES[kind]} a{k}" for k, kind in enumerate(kinds)) or "void"
            body = _RESULTS.get(name)
            if body is None:
                made = [k for k, kind in enumerate(kinds) if kind == "o"]
                body = "; ".join(f"*(unsigned long long *)a{k} = next += 256" for k in made)
            lines.append(f"int {name}({taken}) {{ ++counts[{number}]; {body}; return 0; }}")
        source, built = folder / "counting.c", folder / "libcounting.so"
        source.write_text("\n".join(lines))
        command = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(built), str(source)]
        subprocess.run(command, check=True)
        self.library = ctypes.CDLL(str(built))
        self._counts = (ctypes.c_uint64 * len(FUNCTIONS)).in_dll(self.library, "counts")
        for name, kinds in FUNCTIONS.items():
            setattr(self, name, self._binding(name, kinds))

    @staticmethod
    def CUcontext(handle: int) -> int:
        """As the bindings' type."""
        return handle

    CUmodule = CUfunction = CUcontext

    @staticmethod
    def cuGetErrorString(status: int) -> tuple[int, bytes]:
        """No function fails."""
        return 0, b"no error"

    def cuModuleLoadDataEx(self, *arguments: Any) -> tuple[int, int]:
        """Code is not looked at."""
        return 0, 4096

    def count(self, name: str) -> int:
        """How often a function was called."""
        return int(self._counts[list(FUNCTIONS).index(name)])

    def _binding(self, name: str, kinds: str) -> Callable[..., tuple[Any, ...]]:
        function = getattr(self.library, name)
        function.argtypes = [_CTYPES[kind] for kind in kinds]
        place = kinds.find("o")

        def without_result(*arguments: Any) -> tuple[Any, ...]:
            return (function(*arguments),)

        def with_result(*arguments: Any) -> tuple[Any, ...]:
            result = ctypes.c_uint64()
            address = ctypes.byref(result)
            return function(*arguments[:place], address, *arguments[place:]), result.value

        chosen = without_result if place < 0 else with_result
        chosen.__name__ = name
        return chosen
