"""Memory of ours, on a device or the host, that a framework takes over through DLPack."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from polyblocks.program import DTYPES, ArraySpec
from polyblocks.runtime.arrays import HOST, Device
from polyblocks.runtime.device.memory import pool_of

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver

# dlpack.h, version 0.8. The type codes.
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6

_NAME = b"dltensor"
_USED = b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class ExportedMemory:
    """An array on a device for any framework that knows DLPack.

    The memory goes back to the device's pool when the last of this object and the framework's
    array dies. It is then used again on the stream that it was made for.

    Attributes:
        address: where it begins.
        spec: shape, dtype, strides.
        device: where it is.
        stream: on which it is written; what takes it over waits for that stream's work.
    """

    def __init__(self, driver: Driver, device: Device, spec: ArraySpec, stream: int) -> None:
        self.spec = spec
        self.device = device
        self.stream = stream
        self._driver = driver
        self._pool = pool_of(driver, device.number)
        self._bytes = max(spec.nbytes, 1)
        self.address: int = 0
        self.address = self._pool.acquire(self._bytes, stream)

    def __del__(self) -> None:
        if self.address:
            self._pool.release(self.address, self._bytes, self.stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.kind, self.device.number

    def wait(self) -> None:
        """Wait until it is written, for what takes it over and reads it on a stream of its own."""
        self._driver.wait(self.stream)

    def __dlpack__(self, *, stream: int | None = None, **rest: Any) -> Any:
        """The capsule; its stream waits for ours. ``stream``: the consumer's, as DLPack counts."""
        del rest  # versions of the protocol that we do not speak: the consumer takes the old one
        # -1: the consumer does not want to wait.
        consumer = self._driver.default_stream if stream is None else stream
        if consumer not in (-1, self.stream):
            self._driver.order(self.stream, consumer)
        return _capsule(self)


class ExportedArray:
    """An array on the host for any framework that knows DLPack, of any dtype that programs take.

    Attributes:
        address: where it begins.
        spec: shape, dtype, strides.
        device: the host.

    Args:
        memory: a NumPy array, kept alive by this object and the framework's array.
        offset: bytes from where that begins.
        spec: see above.
    """

    device = HOST

    def __init__(self, memory: Any, offset: int, spec: ArraySpec) -> None:
        self.address: int = memory.ctypes.data + offset
        self.spec = spec
        self._memory = memory

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.kind, self.device.number

    def __dlpack__(self, *, stream: int | None = None, **rest: Any) -> Any:
        del stream, rest
        return _capsule(self)


def dlpack_type(dtype: str) -> tuple[int, int]:
    """Type code and bits of a dtype in DLPack."""
    bits = 8 * DTYPES[dtype][1]
    if dtype == "bool":
        return _BOOL, 8
    codes = {"bfloat": _BFLOAT, "float": _FLOAT, "complex": _COMPLEX, "uint": _UINT, "int": _INT}
    return codes[dtype.rstrip("0123456789")], bits


def dtype_of(code: int, bits: int) -> str | None:
    """The inverse of :func:`dlpack_type`; None for a type that no program takes."""
    return next((name for name in DTYPES if dlpack_type(name) == (code, bits)), None)


#: Address of a tensor that was handed out -> what keeps it alive.
_alive: dict[int, Any] = {}


def _delete(address: int) -> None:
    _alive.pop(address, None)


def _finalize(capsule: int) -> None:
    # A capsule that no consumer has taken.
    if _api.PyCapsule_IsValid(ctypes.c_void_p(capsule), _NAME):
        _delete(_api.PyCapsule_GetPointer(ctypes.c_void_p(capsule), _NAME))


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Finalizer = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_deleter = _Deleter(_delete)
_finalizer = _Finalizer(_finalize)

_api = ctypes.PyDLL(None)
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_api.PyCapsule_IsValid.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = (ctypes.c_void_p, ctypes.c_char_p)


def _capsule(memory: ExportedMemory | ExportedArray) -> Any:
    spec = memory.spec
    rank = len(spec.shape)
    shape = (ctypes.c_int64 * max(rank, 1))(*spec.shape)
    strides = (ctypes.c_int64 * max(rank, 1))(*spec.strides)
    code, bits = dlpack_type(spec.dtype)
    managed = _Managed()
    tensor = managed.tensor
    tensor.data = memory.address
    tensor.device_type, tensor.device_id = memory.device
    tensor.ndim = rank
    tensor.code, tensor.bits, tensor.lanes = code, bits, 1
    tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = ctypes.cast(_deleter, ctypes.c_void_p)
    address = ctypes.addressof(managed)
    _alive[address] = managed, shape, strides, memory
    return _api.PyCapsule_New(address, _NAME, ctypes.cast(_finalizer, ctypes.c_void_p))


def tensor_in(capsule: Any) -> tuple[int, Device, ArraySpec | None]:
    """Address, device and layout of the tensor in a capsule that stays alive.

    The layout is None if its dtype is none that programs take, or its strides run backwards.
    """
    pointer = _api.PyCapsule_GetPointer(ctypes.c_void_p(id(capsule)), _NAME)
    tensor = _Managed.from_address(pointer).tensor
    device = Device(tensor.device_type, tensor.device_id)
    address = (tensor.data or 0) + tensor.byte_offset
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    dtype = dtype_of(tensor.code, tensor.bits) if tensor.lanes == 1 else None
    if dtype is None:
        return address, device, None
    if not tensor.strides:
        return address, device, ArraySpec.contiguous(shape, dtype)
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
    if any(stride < 0 for stride in strides):
        return address, device, None
    return address, device, ArraySpec(shape, dtype, strides)
