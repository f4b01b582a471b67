"""Bytes with a shadow: what was written, what is still under way."""

from __future__ import annotations

import numpy as np

from polyblocks.simt.types import WORDS, Array

#: States of a byte.
UNWRITTEN, WRITTEN, PENDING = 0, 1, 2
#: A word whose bytes are all written, by its size.
_ALL_WRITTEN = {size: int.from_bytes(bytes([WRITTEN]) * size, "little") for size in WORDS}


class Memory:
    """A growing array of bytes.

    Attributes:
        name: ``global``, ``shared`` or ``private``.
        data, state: the bytes and their states, uint8, of equal length.
    """

    def __init__(self, name: str, size: int = 0) -> None:
        self.name = name
        # Words of eight bytes are read through views.
        self.data = np.zeros(-(-size // 8) * 8, np.uint8)
        self.state = np.zeros_like(self.data)
        self._views: dict[tuple[bool, int], Array] = {}

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.data.size

    def grow(self, size: int) -> None:
        """Make room for ``size`` bytes; what is there stays."""
        if size <= self.data.size:
            return
        capacity = -(-max(size, 2 * self.data.size) // 8) * 8
        for name in ("data", "state"):
            bigger = np.zeros(capacity, np.uint8)
            old = getattr(self, name)
            bigger[: old.size] = old
            setattr(self, name, bigger)
        self._views.clear()

    def _view(self, state: bool, size: int) -> Array:
        view = self._views.get((state, size))
        if view is None:
            view = (self.state if state else self.data).view(WORDS[size])
            self._views[(state, size)] = view
        return view

    def load(self, offsets: Array, size: int) -> tuple[Array, Array | None]:
        """Words at byte offsets, and the states of their bytes where one is not written.

        Returns:
            (words, None) if all were written, else (words, worst state per word: UNWRITTEN before
            PENDING before WRITTEN, as uint8).
        """
        if self._aligned(offsets, size):
            index = offsets // size if size > 1 else offsets
            words, states = self._view(False, size)[index], self._view(True, size)[index]
        else:
            spread = offsets[..., None] + np.arange(size)
            words = self.data[spread].view(WORDS[size])[..., 0]
            states = self.state[spread].view(WORDS[size])[..., 0]
        if (states == _ALL_WRITTEN[size]).all():
            return words, None
        parts = np.ascontiguousarray(states).view(np.uint8).reshape(*states.shape, size)
        worst = np.where((parts == PENDING).any(-1), PENDING, parts.min(-1))
        return words, np.where((parts == UNWRITTEN).any(-1), UNWRITTEN, worst)

    def store(self, offsets: Array, words: Array) -> Array | None:
        """Write words at byte offsets; where one hits bytes under way, which."""
        size = words.dtype.itemsize
        if self._aligned(offsets, size):
            index = offsets // size if size > 1 else offsets
            states = self._view(True, size)
            before = states[index]
            self._view(False, size)[index] = words
            states[index] = _ALL_WRITTEN[size]
        else:
            spread = offsets[..., None] + np.arange(size)
            before = self.state[spread].view(WORDS[size])[..., 0]
            parts = np.ascontiguousarray(words).view(np.uint8).reshape(*words.shape, size)
            self.data[spread] = parts
            self.state[spread] = WRITTEN
        pending = before & before.dtype.type(_ALL_WRITTEN[size] * PENDING)
        return pending != 0 if pending.any() else None

    def mark(self, offsets: Array, state: int) -> None:
        """Set the state of single bytes."""
        self.state[offsets] = state

    @staticmethod
    def _aligned(offsets: Array, size: int) -> bool:
        return size == 1 or not (offsets & (size - 1)).any()
