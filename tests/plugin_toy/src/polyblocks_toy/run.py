"""Running what `emit` made: the executable of the target `toy`."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from polyblocks.runtime.executable import Executable


class PythonExecutable(Executable):
    """An artifact's Python source, defined and ready to be called with pointers."""

    def __init__(self, artifact: Any) -> None:
        self.manifest = artifact.manifest
        scope: dict[str, Any] = {"np": np, "view": view}
        exec(artifact.blobs["code.py"].decode(), scope)
        self._main = scope[self.manifest["entry"]]

    def entry(self, pointers: bytes, num_threads: int) -> int:
        """Call it; `pointers` are those of the manifest's arguments, packed as 64-bit integers."""
        del num_threads
        addresses = struct.unpack(f"{len(pointers) // 8}Q", pointers)
        rows = self.manifest["arguments"]
        arrays = [array_at(a, row) for a, row in zip(addresses, rows, strict=True)]
        with np.errstate(all="ignore"):
            self._main(*arrays)
        return 0

    def close(self) -> None:
        """There is nothing to unload."""


def view(
    array: np.ndarray[Any, Any], offset: int, shape: list[int], strides: list[int]
) -> np.ndarray[Any, Any]:
    """The memory that `array` lies in, under another layout; offset and strides in elements."""
    memory: Any = array if array.base is None else array.base
    size = array.itemsize
    byte_strides = [s * size for s in strides]
    return np.ndarray(shape, array.dtype, memory, offset * size, byte_strides)


def array_at(address: int, row: dict[str, Any]) -> np.ndarray[Any, Any]:
    """A numpy view of the memory that one row of a manifest describes."""
    dtype = np.dtype(row["dtype"])
    shape, strides = row["shape"], [s * dtype.itemsize for s in row["strides"]]
    if 0 in shape:
        return np.empty(shape, dtype)
    span = dtype.itemsize + sum((e - 1) * s for e, s in zip(shape, strides, strict=True))
    memory = (ctypes.c_char * span).from_address(address)
    return np.ndarray(shape, dtype, memory, strides=strides)
