"""The pool of workspaces for programs that are called without Python.

See :mod:`polyblocks.codegen.workspace_pool`; this links it and holds its state.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from typing import NamedTuple

from polyblocks.codegen import workspace_pool
from polyblocks.isolation import forks
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
        *((name, ctypes.c_void_p) for name in workspace_pool.POSIX),
    )


class Pool(NamedTuple):
    """A pool and its functions.

    Attributes:
        state: its state, whose address its functions take first.
        acquire, release: addresses of them, see :mod:`polyblocks.codegen.workspace_pool`.
    """

    state: State
    acquire: int
    release: int


def make(limit: int) -> Pool:
    """A pool of its own.

    Args:
        limit: bytes that may be idle.

    Raises:
        OSError: the system allows no generated code, or LLVM is not installed.
    """
    libc = ctypes.CDLL(None)
    state = State(
        limit=limit,
        flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        advice=getattr(mmap, "MADV_HUGEPAGE", -1),
        **{
            name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
            for name in workspace_pool.POSIX
        },
    )
    names = workspace_pool.ACQUIRE, workspace_pool.RELEASE
    functions = native_code.place(workspace_pool.pool_text(), *names)
    if functions is None:
        raise OSError("this process can have no machine code")
    return Pool(state, functions[names[0]], functions[names[1]])


@functools.cache
def pool() -> Pool:
    """The process's pool."""
    return make(default_idle_bytes())


@forks.in_child
def _after_fork() -> None:
    """Free the lock, which a thread that is not here may have held.

    That thread was changing the list of idle blocks. They stay mapped, and the child begins anew.
    """
    if pool.cache_info().currsize and (state := pool().state).lock:
        ctypes.memset(ctypes.addressof(state.blocks), 0, ctypes.sizeof(state.blocks))
        state.idle = state.next = state.lock = 0


def idle_bytes() -> int:
    """Bytes of the process's pool that wait to be used again."""
    return int(pool().state.idle)
