"""The pool of workspaces for programs that are called without Python.

See :mod:`polyblocks.codegen.workspace_pool`; this links it and holds its state.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from typing import Any

from polyblocks.codegen import workspace_pool
from polyblocks.runtime.buffers import default_idle_bytes
from polyblocks.runtime.native import native_code


class State(ctypes.Structure):
    """The pool's state; only the pool writes to it, but for ``limit``."""

    _fields_ = (
        ("lock", ctypes.c_int32),
        ("next", ctypes.c_int32),
        ("idle", ctypes.c_int64),
        ("limit", ctypes.c_int64),
        ("flags", ctypes.c_int32),
        ("advice", ctypes.c_int32),
        ("blocks", ctypes.c_void_p * workspace_pool.SLOTS),
        ("sizes", ctypes.c_int64 * workspace_pool.SLOTS),
    )


def make(limit: int) -> tuple[State, Any]:
    """A pool of its own: its state, and the library with its functions."""
    state = State(
        limit=limit,
        flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        advice=getattr(mmap, "MADV_HUGEPAGE", -1),
    )
    libc = ctypes.CDLL(None)
    imports = {
        name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0
        for name in workspace_pool.IMPORTS
    }
    imports[workspace_pool.STATE] = ctypes.addressof(state)
    exports = (workspace_pool.ACQUIRE, workspace_pool.RELEASE)
    return state, native_code.link(workspace_pool.pool_text(), exports, imports)


@functools.cache
def _pool() -> tuple[State, Any]:
    return make(default_idle_bytes())


def functions() -> tuple[int, int]:
    """The addresses of the process's pool's functions, which take and give back blocks."""
    _, library = _pool()
    return library[workspace_pool.ACQUIRE], library[workspace_pool.RELEASE]


def idle_bytes() -> int:
    """Bytes of the process's pool that wait to be used again."""
    return int(_pool()[0].idle)
