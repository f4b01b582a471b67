"""Memory for results and workspaces that is used again instead of being mapped again.

Writing to a fresh page costs about five times what the writing itself does, since the system
finds, clears and maps the page first. So memory that a framework frees comes back here and is
handed out again as it is, never cleared.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from polyblocks.isolation import forks
from polyblocks.runtime import pages

#: Whether memory is filled with :data:`PATTERN` before programs get it, so that what they leave
#: unwritten shows. For tests.
POISONED = os.environ.get("POLYBLOCKS_POISON", "") not in ("", "0")
#: Bytes that make NaN of every floating-point type and -1 of signed integers.
PATTERN = 0xFF

#: Exported types kept at once; one is made per distinct size.
_MAX_TYPES = 1024


def poison(address: int, nbytes: int) -> None:
    """Fill memory with :data:`PATTERN`."""
    ctypes.memset(address, PATTERN, nbytes)


class Buffer:
    """The type of what :meth:`BufferPool.acquire` returns, for annotations.

    It exports the buffer protocol (writable, ``nbytes`` bytes). A reference to it, or to a buffer
    taken from it, keeps the memory; it goes back to its pool with the last reference.

    Attributes:
        address: where the memory starts, aligned to a page.
    """

    address: int


class BufferPool:
    """Memory blocks by size; a block returns when the object that was handed out dies.

    Sizes are rounded up to eight steps per power of two, so at most 12.5 % more than asked for is
    mapped. Idle blocks are bounded: beyond ``max_idle_bytes`` those idle for longest are
    unmapped. Threads and forks are safe.

    Args:
        max_idle_bytes: default ``POLYBLOCKS_BUFFER_POOL_BYTES``, else 1 GiB or an eighth of the
            memory, whichever is less.
        poisoned: whether buffers are filled with a pattern when they are handed out; default
            ``POLYBLOCKS_POISON``.
    """

    def __init__(self, max_idle_bytes: int | None = None, poisoned: bool | None = None) -> None:
        self.max_idle_bytes = default_idle_bytes() if max_idle_bytes is None else max_idle_bytes
        self.poisoned = POISONED if poisoned is None else poisoned
        self._lock = forks.lock()
        #: Blocks that came back and are not sorted in yet. An object may die anywhere, also
        #: inside of our own methods (garbage collection), so this needs no lock.
        self._returned: deque[int] = deque()
        self._mapped: dict[int, tuple[int, int, int]] = {}  # address -> size, base, length
        self._idle: defaultdict[int, deque[int]] = defaultdict(
            deque
        )  # size -> addresses, longest idle first
        self._idle_since: dict[int, int] = {}  # address -> size, longest idle first
        self._idle_bytes = 0
        self._types: dict[int, tuple[int, Callable[[int], Buffer]]] = {}
        _pools.add(self)

    def acquire(self, nbytes: int) -> Buffer:
        """A :class:`Buffer` of exactly ``nbytes`` bytes (at least 1) with any content.

        Raises:
            MemoryError: there is no room, also not after giving up all idle blocks.
        """
        known = self._types.get(nbytes)
        size, export = self._make_type(nbytes) if known is None else known
        with self._lock:
            excess = self._sort_in() if self._returned else None
            idle = self._idle.get(size)
            if idle:
                address = idle.pop()  # the last used, perhaps still in a cache
                del self._idle_since[address]
                self._idle_bytes -= size
            else:
                address = 0
        if excess:
            _unmap(excess)
        address = address or self._map(size)
        if self.poisoned:
            poison(address, nbytes)
        return export(address)

    @property
    def idle_bytes(self) -> int:
        """Bytes of the blocks that wait to be used again."""
        with self._lock:
            excess = self._sort_in()
            result = self._idle_bytes
        _unmap(excess)
        return result

    def trim(self) -> None:
        """Give all idle blocks back to the system."""
        with self._lock:
            excess = self._sort_in(0)
        _unmap(excess)

    def _map(self, size: int) -> int:
        try:
            address, base, length = pages.map_pages(size)
        except MemoryError:
            self.trim()
            address, base, length = pages.map_pages(size)
        self._mapped[address] = (size, base, length)
        return address

    def _sort_in(self, limit: int | None = None) -> list[tuple[int, int]]:
        """Make returned blocks idle ones; returns what must be unmapped. The lock is held."""
        limit = self.max_idle_bytes if limit is None else limit
        while self._returned:
            address = self._returned.popleft()
            size = self._mapped[address][0]
            self._idle[size].append(address)
            self._idle_since[address] = size
            self._idle_bytes += size
        excess = []
        while self._idle_bytes > limit:
            address = next(iter(self._idle_since))
            size = self._idle_since.pop(address)
            self._idle[size].popleft()
            self._idle_bytes -= size
            excess.append(self._mapped.pop(address)[1:])
        return excess

    def _after_fork(self) -> None:
        """Make a child's lists consistent: another thread may have been changing them.

        A block that is on any of them has no user in this process. One that such a thread had in
        its hands is on none, and stays mapped. Blocks that the parent hands out later are copied
        on write, so both may go on with the same ones.
        """
        idle = [address for addresses in self._idle.values() for address in addresses]
        blocks = dict.fromkeys((*self._idle_since, *idle, *self._returned))
        self._returned.clear()
        self._idle.clear()
        self._idle_since.clear()
        self._idle_bytes = 0
        self._returned.extend(address for address in blocks if address in self._mapped)

    def _make_type(self, nbytes: int) -> tuple[int, Callable[[int], Buffer]]:
        if nbytes < 1:
            raise ValueError(f"a buffer has at least one byte, not {nbytes}")
        if len(self._types) >= _MAX_TYPES:
            self._types.clear()
        exporter = _exporter(nbytes, self._give_back())
        entry = self._types[nbytes] = size_class(nbytes), exporter.from_address  # type: ignore[attr-defined]
        return entry

    def _give_back(self) -> Callable[[int], None]:
        # Runs in `__del__`: on any thread, inside any code, during the interpreter's end. It
        # never waits, and looks nothing up in a module.
        lock, returned, sort_in, unmap = self._lock, self._returned, self._sort_in, pages.unmap

        def give_back(address: int) -> None:
            returned.append(address)
            if lock.acquire(False):
                try:
                    excess = sort_in()
                finally:
                    lock.release()
                for base, length in excess:
                    unmap(base, length)

        return give_back


def _unmap(blocks: list[tuple[int, int]]) -> None:
    for base, length in blocks:
        pages.unmap(base, length)


def size_class(nbytes: int) -> int:
    """``nbytes`` rounded up to whole pages and to eight steps per power of two."""
    step = max(1 << max(nbytes.bit_length() - 4, 0), pages.PAGE)
    return -(-nbytes // step) * step


def default_idle_bytes() -> int:
    """The default bound on idle memory of a pool, in bytes."""
    requested = os.environ.get("POLYBLOCKS_BUFFER_POOL_BYTES", "")
    return int(requested) if requested.isdecimal() else min(1 << 30, pages.total_memory() // 8)


def _exporter(nbytes: int, give_back: Callable[[int], None]) -> type:
    """A ctypes array type of ``nbytes`` bytes whose objects give their memory back.

    The object is what a framework keeps a reference to, and its death is the signal. Objects of
    ctypes are made in 0.1 µs, and unlike ``mmap`` or ``weakref.finalize`` nothing is left to be
    closed at the interpreter's end.
    """
    address_of = ctypes.addressof

    def finalize(self: Any) -> None:
        give_back(address_of(self))

    members = {"__slots__": (), "__del__": finalize, "address": property(address_of)}
    return type("Buffer", (ctypes.c_char * nbytes,), members)


class Workspace:
    """Scratch memory of one call.

    Attributes:
        address: where it starts, aligned to a page.
        size: bytes, at least what was asked for.
    """

    __slots__ = ("_base", "_length", "_pool", "_unmap", "address", "size")

    def __init__(self, nbytes: int, pool: WorkspacePool) -> None:
        self._unmap = pages.unmap
        self._pool = pool
        self._base = self._length = 0
        self.address, self._base, self._length = pages.map_pages(nbytes)
        self.size = nbytes

    def release(self) -> None:
        """Let another call have it; must not be used afterwards."""
        pool = self._pool
        idle = pool._idle
        # One is kept whatever its size: mapping it again at each call would cost more.
        if not idle or (len(idle) + 1) * self.size <= pool.max_idle_bytes:
            idle.append(self)

    def __del__(self) -> None:
        if self._length:
            self._unmap(self._base, self._length)


class WorkspacePool:
    """Workspaces that calls check out and give back; as many exist as calls ran at once.

    One pool serves all programs: a workspace that is too small is replaced by a larger one, so
    that all grow to the largest in use.

    Args:
        max_idle_bytes: bound on the idle ones together; the default of :class:`BufferPool`.
        poisoned: as of :class:`BufferPool`.
    """

    def __init__(self, max_idle_bytes: int | None = None, poisoned: bool | None = None) -> None:
        self.max_idle_bytes = default_idle_bytes() if max_idle_bytes is None else max_idle_bytes
        self.poisoned = POISONED if poisoned is None else poisoned
        # Appending to and popping from a list is atomic: no lock.
        self._idle: list[Workspace] = []

    def acquire(self, nbytes: int) -> Workspace:
        """A workspace of at least ``nbytes`` bytes with any content; ``release()`` it after use.

        One that is not released is unmapped when it dies.

        Raises:
            MemoryError: there is no room.
        """
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = Workspace(max(nbytes, pages.PAGE), self)
        if workspace.size < nbytes:
            del workspace  # unmap it first
            workspace = Workspace(nbytes, self)
        if self.poisoned:
            poison(workspace.address, nbytes)
        return workspace

    @property
    def idle_bytes(self) -> int:
        """Bytes of the workspaces that wait to be used again."""
        return sum(workspace.size for workspace in self._idle)

    def trim(self) -> None:
        """Give all idle workspaces back to the system."""
        self._idle.clear()


_pools: weakref.WeakSet[BufferPool] = weakref.WeakSet()


@forks.in_child
def _after_fork() -> None:
    for pool in list(_pools):
        pool._after_fork()


#: The process's pool for results of at least 1 MiB, and the one for workspaces.
outputs = BufferPool()
workspaces = WorkspacePool()
