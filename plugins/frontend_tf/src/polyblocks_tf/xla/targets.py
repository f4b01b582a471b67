"""Targets of custom calls in TensorFlow's XLA, made known through XLA's C interface.

Nothing is compiled against TensorFlow: its library exports the function that gives the table of
XLA's foreign function interface (``xla/ffi/api/c_api.h``, version 0.x), with an entry that
registers a handler. The assumptions about the table are checked first.
"""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf


class Platform(NamedTuple):
    """A kind of devices, by the names that it has.

    Attributes:
        xla: for handlers.
        module: for modules of StableHLO in an operation.
        device: TensorFlow's type of its devices.
    """

    xla: str
    module: str
    device: str


#: ``DLDeviceType`` of GPUs -> platform.
PLATFORMS = {2: Platform("CUDA", "CUDA", "GPU"), 10: Platform("ROCM", "ROCM", "GPU")}


class Unavailable(Exception):
    """TensorFlow's XLA cannot call programs here; the text says why, in one line."""


#: Of these, one exports the function, by TensorFlow's build.
_LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")
#: ``xla::ffi::GetXlaFfiApi()``, which returns ``const XLA_FFI_Api*``.
_GET_API = "_ZN3xla3ffi12GetXlaFfiApiEv"

# ``XLA_FFI_Api``: offsets in bytes, on machines with 64-bit pointers.
_SIZE, _VERSION_SIZE, _MAJOR, _MINOR = 0, 16, 32, 36
_ERROR_GET_MESSAGE, _ERROR_DESTROY, _HANDLER_REGISTER, _STREAM_GET = 56, 64, 72, 80
#: The version whose handlers ours are, and the size of the table's description of a version.
_EXPECTED_MAJOR, _LEAST_MINOR, _EXPECTED_VERSION_SIZE = 0, 1, 24

_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _Text(ctypes.Structure):
    _fields_ = (("start", ctypes.c_char_p), ("length", ctypes.c_size_t))


class _Register(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("name", _Text),
        ("platform", _Text),
        ("instantiate", ctypes.c_void_p),
        ("prepare", ctypes.c_void_p),
        ("initialize", ctypes.c_void_p),
        ("execute", ctypes.c_void_p),
        ("traits", ctypes.c_uint32),
    )


class _Error(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
    )


def register(name: str, platform: Platform, handler: int) -> None:
    """Make a handler known, for as long as the process lives.

    Args:
        name: of the target in custom calls.
        platform: on which it is called.
        handler: address of a C function ``XLA_FFI_Error* (XLA_FFI_CallFrame*)``.

    Raises:
        Unavailable: TensorFlow's library does not have the interface, or XLA refuses the handler.
    """
    table = _table()
    asked = _Register(
        size=_Register.traits.offset + ctypes.sizeof(ctypes.c_uint32),
        name=_text(name),
        platform=_text(platform.xla),
        execute=handler,
    )
    error = _entry(table, _HANDLER_REGISTER)(ctypes.addressof(asked))
    if error:
        raise Unavailable(f"XLA does not take the program: {_message(table, error)}")


@functools.cache
def _table() -> int:
    """The address of the interface's table, which is as expected."""
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        raise Unavailable("XLA's interface is known on machines with 64-bit pointers alone")
    get = _symbol()
    get.restype = ctypes.c_void_p
    table: int | None = get()
    if not table:
        raise Unavailable(f"TensorFlow {tf.__version__} gives no interface of XLA")
    check_table(table)
    return table


def check_table(table: int) -> None:
    """Check what is read of the interface's table.

    Raises:
        Unavailable: it is of another version.
    """
    size = ctypes.c_size_t.from_address(table + _SIZE).value
    described = ctypes.c_size_t.from_address(table + _VERSION_SIZE).value
    if described != _EXPECTED_VERSION_SIZE or size <= _STREAM_GET:
        raise Unavailable(
            f"XLA's interface in TensorFlow {tf.__version__} has another layout than expected: "
            f"{size} bytes, {described} of them for the version"
        )
    major = ctypes.c_int32.from_address(table + _MAJOR).value
    minor = ctypes.c_int32.from_address(table + _MINOR).value
    if major != _EXPECTED_MAJOR or minor < _LEAST_MINOR:
        raise Unavailable(
            f"XLA's interface in TensorFlow {tf.__version__} is of version {major}.{minor}, "
            f"expected {_EXPECTED_MAJOR}.{_LEAST_MINOR} or a later {_EXPECTED_MAJOR}.x"
        )


def _symbol() -> Any:
    for name in _LIBRARIES:
        path = Path(tf.sysconfig.get_lib()) / name
        try:
            # The one that TensorFlow has loaded: another would have handlers of its own.
            library = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            return library[_GET_API]
        except (OSError, AttributeError):
            continue
    raise Unavailable(f"TensorFlow {tf.__version__} does not export XLA's interface on this system")


def _entry(table: int, offset: int) -> Any:
    return _Function(ctypes.c_uint64.from_address(table + offset).value)


def _text(text: str) -> _Text:
    encoded = text.encode()
    return _Text(encoded, len(encoded))


def _message(table: int, error: int) -> str:
    asked = _Error(ctypes.sizeof(_Error), None, error, None)
    _entry(table, _ERROR_GET_MESSAGE)(ctypes.addressof(asked))
    text = (asked.message or b"").decode(errors="replace")
    _entry(table, _ERROR_DESTROY)(ctypes.addressof(asked))  # the same fields, less the message
    return (text.splitlines() or [""])[0]
