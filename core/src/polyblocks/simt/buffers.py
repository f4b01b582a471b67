"""Device buffers of the simulator and how arrays get into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks.errors import InputError
from polyblocks.simt.address_space import Region
from polyblocks.simt.memory import WRITTEN, Memory
from polyblocks.simt.types import Array


@dataclass(frozen=True)
class Address:
    """A place in a buffer, as a kernel argument. Made by ``buffer + bytes``."""

    buffer: Buffer
    offset: int

    @property
    def value(self) -> int:
        """The virtual address."""
        return self.buffer.region.base + self.offset


class Buffer:
    """Some bytes of simulated device memory. Made by `Simulator.buffer`.

    Attributes:
        region: where it lies.
        nbytes: its size.
    """

    def __init__(self, memory: Memory, region: Region) -> None:
        self._memory, self.region = memory, region
        self.nbytes = region.size

    def __add__(self, offset: int) -> Address:
        return Address(self, offset)

    @property
    def _bytes(self) -> slice:
        return slice(self.region.offset, self.region.offset + self.nbytes)

    def read(self, dtype: Any = np.uint8, shape: tuple[int, ...] | None = None) -> Array:
        """A copy of the contents, row-major."""
        flat = self._memory.data[self._bytes].copy().view(dtype)
        return flat if shape is None else flat[: int(np.prod(shape))].reshape(shape)

    def written(self) -> Array:
        """Which bytes were written, bool."""
        found: Array = self._memory.state[self._bytes] == WRITTEN
        return found

    def put(self, array: Array) -> None:
        """Copy an array in with its strides; the bytes between its elements stay unwritten."""
        view(self._memory.data, self.region.offset, array)[...] = array
        marks = view(self._memory.state, self.region.offset, array, np.uint8, array.dtype.itemsize)
        marks[...] = WRITTEN

    def get(self, array: Array) -> None:
        """Copy the contents out into an array with its strides."""
        array[...] = view(self._memory.data, self.region.offset, array)


def view(raw: Array, offset: int, like: Array, dtype: Any = None, parts: int = 0) -> Array:
    """Bytes seen with an array's shape and strides, and a last axis of ``parts`` if given."""
    shape, strides = like.shape, like.strides
    if parts:
        shape, strides = (*shape, parts), (*strides, 1)
    return np.ndarray(shape, dtype or like.dtype, raw.data, offset, strides)


def span(array: Array) -> int:
    """Bytes from the first element to the end of the last.

    Raises:
        InputError: a negative stride.
    """
    if array.size == 0:
        return 0
    if any(s < 0 for s in array.strides):
        raise InputError(f"expected an array without negative strides, got strides {array.strides}")
    steps = zip(array.shape, array.strides, strict=True)
    return int(array.dtype.itemsize + sum((n - 1) * s for n, s in steps))
