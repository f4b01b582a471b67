"""Prepared data of arrays that do not change while they are held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.runtime.kept.memory import Kept
from polyblocks.runtime.kept.preparer import Preparer


class LastingArrays:
    """One function's prepared data of arrays whose memory is not written while it is held.

    Then the same address means the same contents, as long as the array is held here. That is so of
    captured arrays that cannot change, and of those that a framework copies before it writes to
    them if they are held by others.

    Args:
        preparer: of the program.
        num_threads: tells the threads of a preparation.
    """

    def __init__(self, preparer: Preparer, num_threads: Callable[[], int]) -> None:
        self._preparer = preparer
        self._num_threads = num_threads
        self._last: tuple[tuple[int, ...], Kept, tuple[Any, ...]] | None = None

    def find(self) -> Callable[[tuple[int, ...], tuple[Any, ...]], Kept]:
        """A function of the addresses of what the preparation reads, and of what holds them."""

        def find(addresses: tuple[int, ...], arrays: tuple[Any, ...]) -> Kept:
            last = self._last
            if last is not None and last[0] == addresses:
                return last[1]
            # Not in the memory of the last one: another thread may be running with that.
            self._last = None
            kept = self._preparer(addresses, self._num_threads())
            self._last = addresses, kept, arrays
            return kept

        return find
