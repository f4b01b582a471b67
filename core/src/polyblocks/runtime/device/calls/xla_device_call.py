"""A device program as a function that XLA calls itself, through its FFI, on XLA's stream.

XLA gives the arguments, allocates the results and says on which stream; the program is put there
and nothing waits. Written against the C ABI of XLA's foreign function interface
(``xla/ffi/api/c_api.h``, version 0.x), as :mod:`polyblocks.codegen.xla_handler` is for programs of
the host. The handler takes the GIL for the few microseconds of a launch.
"""

from __future__ import annotations

import ctypes
import itertools
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyblocks.errors import InputError
from polyblocks.runtime.device.stored import StoredArrays

#: Version of the interface that this asks for, as that handler does.
_MAJOR, _MINOR = 0, 1

# Offsets of fields in bytes, on machines with 64-bit pointers.
_FRAME_EXTENSION, _FRAME_API, _FRAME_CONTEXT, _FRAME_ARGS, _FRAME_RETS = 8, 16, 24, 72, 112
_API_ERROR_CREATE, _API_STREAM_GET = 48, 80
_BUFFER_DATA = 24
_METADATA, _VERSION_MAJOR, _VERSION_MINOR = 24, 24, 28
_EXTENSION_TYPE, _IS_METADATA = 8, 1
_INTERNAL = 13

#: Errors that are kept for callers that want them as they were raised.
_KEPT_ERRORS = 8

_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _StreamGet(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    )


class _ErrorCreate(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int32),
    )


class XlaDeviceCall:
    """A program's handler for a GPU platform of XLA.

    Attributes:
        address: of the handler, a C function ``XLA_FFI_Error* (XLA_FFI_CallFrame*)``.
        count: how often XLA has run it.
        errors: the last exceptions that became errors of XLA's, the oldest first.

    Args:
        executable: the loaded program; kept alive.
        iterations: launches per call.
        constants: arrays of bytes that are put on each device once instead of being passed by XLA,
            by the numbers of the program's inputs.

    Raises:
        InputError: the program updates an argument in place.
    """

    def __init__(
        self,
        executable: Any,
        *,
        iterations: int = 1,
        constants: Mapping[int, np.ndarray[Any, Any]] | None = None,
    ) -> None:
        self._executable = executable
        self._iterations = iterations
        #: Numbers of the inputs that are constants.
        self._constant = list(constants or ())
        contents = [value.tobytes() for value in (constants or {}).values()]
        self._stored = StoredArrays(lambda: executable.driver, contents)
        self._inputs: list[bool] = []
        for row in executable.manifest["arguments"]:
            if row["updates"] is not None:
                raise InputError(f"'{row['name']}' is updated in place, which XLA does not allow")
            self._inputs.append(row["role"] == "input")
        self.count = 0
        self.errors: deque[Exception] = deque(maxlen=_KEPT_ERRORS)
        self._function = _Function(self._handle)
        self.address: int = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _handle(self, frame: int) -> int | None:
        extension = _pointer(frame + _FRAME_EXTENSION)
        if extension and _integer(extension + _EXTENSION_TYPE) == _IS_METADATA:
            metadata = _pointer(extension + _METADATA)
            ctypes.c_int32.from_address(metadata + _VERSION_MAJOR).value = _MAJOR
            ctypes.c_int32.from_address(metadata + _VERSION_MINOR).value = _MINOR
            return None
        self.count += 1
        try:
            self._launch(frame)
        except Exception as error:
            self.errors.append(error)
            return _error(frame, f"{type(error).__name__}: {error}")
        return None

    def _launch(self, frame: int) -> None:
        arguments = _pointer(frame + _FRAME_ARGS)
        results = _pointer(frame + _FRAME_RETS)
        # XLA has made its device current.
        device = self._executable.driver.current_device()
        held = dict(zip(self._constant, self._stored.addresses(device), strict=True))
        pointers = []
        inputs = itertools.count()
        for is_input in self._inputs:
            if is_input and (number := next(inputs)) in held:
                pointers.append(held[number])
                continue
            buffer = _pointer(arguments if is_input else results)
            pointers.append(_pointer(buffer + _BUFFER_DATA))
            if is_input:
                arguments += 8
            else:
                results += 8
        stream = self.stream_of(frame)
        launch = self._executable.launcher(device)
        for _ in range(self._iterations):
            launch(stream, *pointers)

    def stream_of(self, frame: int) -> int:
        """The stream of a call."""
        asked = _StreamGet(ctypes.sizeof(_StreamGet), None, _pointer(frame + _FRAME_CONTEXT), None)
        get = _Function(_pointer(_pointer(frame + _FRAME_API) + _API_STREAM_GET))
        if get(ctypes.addressof(asked)):
            raise RuntimeError("XLA tells no stream for this call")
        return asked.stream or 0


def _error(frame: int, text: str) -> int | None:
    """An error of XLA's; XLA frees it."""
    made = _ErrorCreate(ctypes.sizeof(_ErrorCreate), None, text.encode(), _INTERNAL)
    create = _Function(_pointer(_pointer(frame + _FRAME_API) + _API_ERROR_CREATE))
    address: int | None = create(ctypes.addressof(made))
    return address


def _pointer(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _integer(address: int) -> int:
    return ctypes.c_int32.from_address(address).value
