"""Anonymous memory straight from the operating system, on huge pages where it offers them."""

from __future__ import annotations

import ctypes
import mmap
import os

PAGE = mmap.PAGESIZE
#: Size and alignment of a huge page where ordinary pages have 4 KiB.
HUGE_PAGE = 2 << 20

_libc = ctypes.CDLL(None, use_errno=True)
_mmap = _libc.mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
)
_madvise = _libc.madvise
_madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
#: ``unmap(base, length)``: give memory back. A plain C function, usable until the very end of the
#: interpreter.
unmap = _libc.munmap
unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

_MAP_FAILED = ctypes.c_void_p(-1).value
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def map_pages(nbytes: int) -> tuple[int, int, int]:
    """Map at least ``nbytes`` bytes, untouched: no page exists before it is written.

    Returns:
        ``(address, base, length)``: the memory starts at ``address``, aligned to a page, or to a
        huge page from the size of one on; ``unmap(base, length)`` gives it back.

    Raises:
        MemoryError: there is no such room.
    """
    huge = nbytes >= HUGE_PAGE
    # The slack for the alignment is address space only: it is never touched.
    length = -(-nbytes // PAGE) * PAGE + (HUGE_PAGE if huge else 0)
    base = _mmap(None, length, mmap.PROT_READ | mmap.PROT_WRITE, _FLAGS, -1, 0)
    if base == _MAP_FAILED:
        raise MemoryError(f"no room for {nbytes} bytes: {os.strerror(ctypes.get_errno())}")
    if not huge:
        return base, base, length
    address = -(-base // HUGE_PAGE) * HUGE_PAGE
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # Only a requested: what the system answers does not matter.
        _madvise(address, nbytes, mmap.MADV_HUGEPAGE)
    return address, base, length


def total_memory() -> int:
    """Bytes of memory that this process can count on: the machine's, or its group's limit."""
    from polyblocks.runtime import cgroup

    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(machine, cgroup.memory_limit() or machine)
