"""An entry that is a Python function, as a C function for callers without Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

#: Bytes of the text of an exception that crosses.
_TEXT_BYTES = 16384


class NativeEntry:
    """``int32 (*)(const uint64_t *pointers, int32 threads)`` around an entry.

    An exception cannot cross; its text is put into a buffer, and the status is ``failed``. The
    text is that of the last one.

    Attributes:
        function: the C function, of ctypes.
        text: the address of the buffer, which ends with a null byte.
        failed: the status of a call that raised; larger than that of any check.

    Args:
        entry: see :class:`polyblocks.runtime.executable.Executable`.
        arguments: how many pointers it takes.
        checks: how many run-time checks the program has.
    """

    def __init__(self, entry: Callable[[bytes, int], int], arguments: int, checks: int) -> None:
        size = 8 * arguments
        memory = ctypes.create_string_buffer(_TEXT_BYTES)
        self._memory = memory
        self.text = ctypes.addressof(memory)
        self.failed = failed = checks + 1

        def call(pointers: int, threads: int) -> int:
            try:
                return entry(ctypes.string_at(pointers, size) if size else b"", threads)
            except Exception as error:
                said = f"{type(error).__name__}: {error}".encode()[: _TEXT_BYTES - 1]
                memory.value = said
                return failed

        self.function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)(call)
