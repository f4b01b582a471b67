"""Where a thread has its dispatch keys: modes, transforms, autocast and tracing show in these.

PyTorch reads them inline, so there is no function to call; machine code finds the variable of its
thread with the function that compilers call for that.
"""

from __future__ import annotations

import ctypes
from typing import Any

#: Two words: keys that are included and excluded, as they differ from the usual ones.
_VARIABLE = "_ZN3c104impl26raw_local_dispatch_key_setE"
_MODULE_NUMBER = 9  # RTLD_DI_TLS_MODID of <dlfcn.h>

_found: list[Any] = []


class _Index(ctypes.Structure):
    """``tls_index`` of the ELF specification of thread-local storage."""

    _fields_ = (("module", ctypes.c_ulong), ("offset", ctypes.c_ulong))


def keys_of_threads(library: ctypes.CDLL) -> dict[str, int]:
    """Fields of ``code.TABLE`` with which machine code finds the keys of its thread.

    Args:
        library: that has the variable.

    Raises:
        AttributeError, OSError, ValueError: it is not found in this way here.
    """
    process = ctypes.CDLL(None)
    locate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(("__tls_get_addr", process))
    index = _Index()
    number = ctypes.byref(index)
    # The structure begins with the number.
    if process.dlinfo(ctypes.c_void_p(library._handle), _MODULE_NUMBER, number):
        raise OSError("the number of a library is not known")
    start = locate(ctypes.addressof(index)) or 0
    here = ctypes.addressof(ctypes.c_uint64.in_dll(library, _VARIABLE))
    if not 0 <= here - start < 1 << 20:
        raise ValueError("a variable of a thread lies elsewhere")
    index.offset = here - start
    if locate(ctypes.addressof(index)) != here:
        raise ValueError("a variable of a thread lies elsewhere")
    _found[:] = [locate, index]
    address = ctypes.cast(locate, ctypes.c_void_p).value or 0
    return {"tls_get_addr": address, "keys": ctypes.addressof(index)}


def thread_keys() -> tuple[int, int]:
    """Both words of this thread."""
    locate, index = _found
    pair = (ctypes.c_uint64 * 2).from_address(locate(ctypes.addressof(index)))
    return pair[0], pair[1]
