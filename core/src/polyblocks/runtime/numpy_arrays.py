"""The ArrayInterface of NumPy: host arrays for ``polyblocks.load``, the CLI and tests."""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks.errors import InputError
from polyblocks.program import DTYPES, ArraySpec
from polyblocks.runtime import buffers
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.native.reader import NativeReader
from polyblocks.runtime.source import Source

#: Results of at least this size (bytes) come from the pool of reused buffers.
POOLED_BYTES = 1 << 20
#: Where an array has the address of its elements (``PyArrayObject_fields.data``).
_DATA = 16


class NumpyArrays(ArrayInterface):
    """NumPy arrays. ``bfloat16`` needs the package ``ml_dtypes``."""

    def is_array(self, value: Any) -> bool:
        """Whether ``value`` is a NumPy array."""
        return isinstance(value, np.ndarray)

    def describe(self, array: Any) -> ArraySpec:
        """Shape, dtype and strides of an array; see the base class."""
        if isinstance(array, np.ma.MaskedArray):
            raise InputError("programs know no masks; pass .filled() or .data of the masked array")
        dtype = array.dtype
        if dtype.name not in DTYPES:
            raise InputError(
                f"unsupported dtype {dtype.name}: expected one of {', '.join(DTYPES)}; "
                "use .astype()"
            )
        if not dtype.isnative:
            raise InputError(
                f"the array's bytes are swapped ({dtype.str}); use .astype(np.{dtype.name})"
            )
        steps = []
        for extent, stride in zip(array.shape, array.strides, strict=True):
            step, rest = divmod(stride, dtype.itemsize)
            if extent > 1 and (rest or step < 0):
                raise InputError(
                    f"strides of {array.strides} bytes are not multiples of the element or run "
                    "backwards; use np.ascontiguousarray()"
                )
            steps.append(max(step, 0))
        if not array.flags.aligned:
            raise InputError("the array is not aligned to its elements; use .copy()")
        return ArraySpec(array.shape, dtype.name, tuple(steps))

    def pointer(self, array: Any) -> int:
        """The address of the first element."""
        return int(array.ctypes.data)

    def device(self, array: Any) -> Device:
        """The host."""
        del array
        return HOST

    def is_writable(self, array: Any) -> bool:
        """Whether the array's ``writeable`` flag is set."""
        return bool(array.flags.writeable)

    def empty(self, spec: ArraySpec, device: Device) -> np.ndarray[Any, Any]:
        """A new host array; large ones are on pooled memory."""
        self._expect_host(device)
        dtype = _dtype(spec.dtype)
        if spec.numel == 0:
            return np.empty(spec.shape, dtype)
        nbytes = spec.nbytes
        memory: Any = (
            buffers.outputs.acquire(nbytes)
            if nbytes >= POOLED_BYTES
            else np.empty(-(-nbytes // 16), np.complex128)  # aligned for every dtype
        )
        if buffers.POISONED and isinstance(memory, np.ndarray):
            buffers.poison(memory.ctypes.data, nbytes)
        strides = tuple(step * dtype.itemsize for step in spec.strides)
        return np.ndarray(spec.shape, dtype, buffer=memory, strides=strides)

    def allocation(self, spec: ArraySpec) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """``np.empty`` itself where that makes the same."""
        if buffers.POISONED or spec.nbytes >= POOLED_BYTES or not spec.is_contiguous:
            return super().allocation(spec)
        return np.empty, (spec.shape, _dtype(spec.dtype))

    def native_reader(self) -> NativeReader:
        """Reads the fields of arrays of exactly NumPy's own class."""
        return _reader()

    def check_expressions(
        self, source: Source, array: str, spec: ArraySpec, written: bool
    ) -> tuple[list[str], str]:
        """Compares attributes, and reads the address from where NumPy's interface for C has it."""
        kind = _dtype(spec.dtype)
        strides = tuple(step * kind.itemsize for step in spec.strides)
        conditions = [
            f"type({array}) is {source.name('ndarray', np.ndarray)}",
            f"{array}.dtype is {source.name('dtype', kind)}",
            f"{array}.shape == {spec.shape}",
        ]
        if spec.numel:
            conditions.append(f"{array}.strides == {strides}")
        if written:
            conditions.append(f"{array}.flags.writeable")
        if not _has_address_inside():
            return conditions, f"{array}.ctypes.data"
        word = source.name("word", ctypes.c_void_p.from_address)
        return conditions, f"({word}(id({array}) + {_DATA}).value or 0)"

    def transfer(self, array: Any, device: Device) -> Any:
        """The array itself; it is on the host."""
        self._expect_host(device)
        return array

    def _expect_host(self, device: Device) -> None:
        if device != HOST:
            raise InputError(f"NumPy arrays are on the host, not on device {tuple(device)}")


@functools.cache
def _has_address_inside() -> bool:
    """Whether this Python's objects are where their ``id`` says, and start with 16 bytes."""
    probe = np.empty(1)
    return (
        sys.implementation.name == "cpython"
        and object.__basicsize__ == _DATA
        and ctypes.c_void_p.from_address(id(probe) + _DATA).value == probe.ctypes.data
    )


@functools.cache
def _reader() -> NativeReader:
    from polyblocks.codegen import numpy_reader

    return NativeReader(
        text=numpy_reader.TEXT,
        types=(np.ndarray,),
        dtype=_dtype_object,
        structs={"NUMPY": numpy_reader.STATE},
        state=(ctypes.c_void_p * len(numpy_reader.STATE))(id(np.ndarray)),
        strides_in_bytes=True,
        layout=lambda: numpy_reader.LAYOUT,
    )


def _dtype_object(name: str) -> int | None:
    """The address of NumPy's only object of a dtype; None if the name is unknown."""
    try:
        return id(_dtype(name))
    except InputError:
        return None


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        try:
            extra = importlib.import_module("ml_dtypes")
        except ImportError:
            raise InputError(f"NumPy by itself has no {name}; pip install ml_dtypes") from None
        return np.dtype(getattr(extra, name))
