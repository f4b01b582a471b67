"""Memory for what a program computes once of its constant arguments."""

from __future__ import annotations

from polyblocks.isolation import forks
from polyblocks.runtime import buffers

_lock = forks.lock()
_total = 0


class Kept:
    """Memory that a preparation has filled; it goes back to its pool with the last reference.

    Attributes:
        address: where it starts, aligned to a page.
        nbytes: how much it is.
    """

    __slots__ = ("_memory", "address", "nbytes")

    def __init__(self, nbytes: int) -> None:
        # Weights that change often are prepared often: from the pool of memory that is mapped.
        self._memory = buffers.outputs.acquire(nbytes)
        self.address = self._memory.address
        self.nbytes = nbytes
        _count(nbytes)

    def __del__(self) -> None:
        # None of its attributes is there if there was no room.
        if hasattr(self, "nbytes"):
            _count(-self.nbytes)


def _count(nbytes: int) -> None:
    global _total
    with _lock:
        _total += nbytes


def kept_bytes() -> int:
    """Bytes that this process keeps at the moment."""
    return _total
