"""Memory that shows wrong accesses: a page that cannot be touched behind it, or in front of it."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

_PROT_NONE = 0
#: A page is at least this large; also the alignment of a buffer at the start of one.
PAGE = mmap.PAGESIZE


class Guarded:
    """Buffers between guard pages, filled with garbage; freed together by :meth:`close`.

    Args:
        at_end: buffers end at a guard page (reading past the end is a crash); otherwise they begin
            behind one.
        fill: the byte that all of them hold at first.
    """

    def __init__(self, at_end: bool, fill: int) -> None:
        self.at_end = at_end
        self.fill = fill
        self._maps: list[mmap.mmap] = []

    def allocate(self, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """A buffer of ``nbytes``; at the end of a page its alignment is that of its size."""
        pages = -(-max(nbytes, 1) // PAGE)
        memory = mmap.mmap(-1, (pages + 2) * PAGE)
        self._maps.append(memory)
        array = np.frombuffer(memory, np.uint8)
        base = array.ctypes.data
        for guard in (base, base + (pages + 1) * PAGE):
            _protect(guard)
        begin = (pages + 1) * PAGE - nbytes if self.at_end else PAGE
        body = array[begin : begin + nbytes]
        body[:] = self.fill
        return body


def _protect(address: int) -> None:
    """Take all rights from one page; where there is no ``mprotect``, nothing happens."""
    function = getattr(ctypes.CDLL(None), "mprotect", None)
    if function is not None:
        function(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), ctypes.c_int(_PROT_NONE))
