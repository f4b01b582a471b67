"""Reads memory of this process at what may be no address, to find out how objects are laid out."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys


class MemoryProbe:
    """Reads words; the system says where there is no memory.

    As a context: what it reads goes through a pipe, which is closed afterwards.
    """

    def __enter__(self) -> MemoryProbe:
        self._receiver, self._sender = os.pipe()
        self._write = ctypes.CDLL(None, use_errno=True).write
        self._write.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
        self._write.restype = ctypes.c_ssize_t
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._receiver)
        os.close(self._sender)

    def contents(self, address: int, nbytes: int) -> bytes:
        """The bytes from an address on; fewer, or none, where the memory ends before.

        Args:
            address: a multiple of 8, or there is nothing.
            nbytes: less than a page.
        """
        if address % 8 or not 0 < address < 1 << 63:
            return b""
        # The system copies all of a piece or nothing, and memory ends with a page.
        first = min(nbytes, -address % mmap.PAGESIZE or mmap.PAGESIZE)
        found = self._piece(address, first)
        if len(found) == first < nbytes:
            found += self._piece(address + first, nbytes - first)
        return found

    def _piece(self, address: int, nbytes: int) -> bytes:
        written = self._write(self._sender, address, nbytes)
        return os.read(self._receiver, written) if written > 0 else b""

    def word(self, address: int) -> int | None:
        """The word at an address; None where no memory is, or no word."""
        found = self.contents(address, 8)
        return int.from_bytes(found, sys.byteorder) if len(found) == 8 else None

    def words(self, address: int, nbytes: int) -> list[tuple[int, int]]:
        """Offsets and values of the words that are not 0; none behind the end of the memory."""
        found = self.contents(address, nbytes)
        words = [
            (offset, int.from_bytes(found[offset : offset + 8], sys.byteorder))
            for offset in range(0, len(found) - 7, 8)
        ]
        return [(offset, word) for offset, word in words if word]
