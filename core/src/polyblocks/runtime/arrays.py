"""ArrayInterface: what the runtime must know of a framework's arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from polyblocks.program import ArraySpec


class Device(NamedTuple):
    """Where an array lies, as DLPack says it.

    Attributes:
        kind: a ``DLDeviceType`` (dlpack.h): 1 is the host's memory.
        number: which device of that kind.
    """

    kind: int
    number: int


HOST = Device(1, 0)


class ArrayInterface(ABC):
    """How a framework's arrays give pointers and layouts, and how results are made.

    Stateless and safe among threads.
    """

    @abstractmethod
    def is_array(self, value: Any) -> bool:
        """Whether ``value`` is an array of this framework."""

    @abstractmethod
    def describe(self, array: Any) -> ArraySpec:
        """Shape, dtype and strides (elements) of an array.

        Raises:
            InputError: a dtype or layout that no program takes; says how to convert it.
        """

    @abstractmethod
    def pointer(self, array: Any) -> int:
        """The address of the first element, on the array's device."""

    @abstractmethod
    def device(self, array: Any) -> Device:
        """Where the array lies."""

    @abstractmethod
    def is_writable(self, array: Any) -> bool:
        """Whether a program may update the array in place."""

    @abstractmethod
    def empty(self, spec: ArraySpec, device: Device) -> Any:
        """A new array with this layout and any content, from the framework's allocator or a pool.

        Raises:
            InputError: the framework has no such dtype.
        """

    @abstractmethod
    def transfer(self, array: Any, device: Device) -> Any:
        """The array on ``device``: itself if it is there, else a copy.

        Raises:
            InputError: the framework cannot put arrays there.
        """

    def stream(self, device: Device) -> int:
        """The handle of the stream on which the caller's work on ``device`` goes; 0: none."""
        del device
        return 0
