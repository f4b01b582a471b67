"""Weights of a loaded program: found by name, checked once, then read where they are."""

from __future__ import annotations

import ctypes
import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from polyblocks.errors import InputError
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.slots import WEIGHT_NAMES, Slot, check, signature_of

if TYPE_CHECKING:
    from polyblocks.runtime.native.watcher import Reading, Watcher

#: Names of missing weights that an error tells.
_TOLD = 5
#: Readings after which machine code looks whether arrays have moved: a process that calls once
#: needs none.
_READS = 2

Weights = Mapping[str, Any] | Sequence[Any]


class BoundWeights:
    """Arrays bound to the last inputs of a program.

    A program reads their memory, so that values that are changed in place are seen by the next
    call. An array that has got other memory, or lies otherwise in it (``tensor.data = …``), is
    checked again and read there. Constants are held, and looked at no more.

    Attributes:
        slots: what they are bound to, in the program's order.
        arrays: those that are bound.
        place: where the address of the object is that :meth:`read` has returned last.

    Args:
        function: the program's name, for messages.
        slots: the inputs that they are bound to.
        names: of each slot, see :data:`polyblocks.runtime.slots.WEIGHT_NAMES`.
        written: numbers of the slots that the program updates.
        given: arrays by name (names that the program does not have are ignored), or all of them in
            the program's order.
        interface_of: how an array is read.

    Raises:
        InputError: there are too few or too many, or one does not fit.
    """

    def __init__(
        self,
        function: str,
        slots: Sequence[Slot],
        names: Sequence[Sequence[str]],
        written: Sequence[int],
        given: Weights,
        interface_of: Callable[[Any], ArrayInterface],
    ) -> None:
        self._function = function
        self.slots = tuple(slots)
        self._written = frozenset(written)
        if isinstance(given, Mapping):
            self.arrays = self._by_name(names, given, interface_of)
        elif isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
            self.arrays = list(given)
        else:
            raise InputError(
                "weights must be a mapping of names to arrays, or a list of arrays, not "
                f"{type(given).__name__}"
            )
        if len(self.arrays) != len(slots):
            raise InputError(
                f"{function} has {len(slots)} weights, got {len(self.arrays)}; expected them in "
                f"this order: {_some([slot.name for slot in slots])}"
            )
        self._interfaces = [interface_of(array) for array in self.arrays]
        first = self._interfaces[0] if slots else None
        self.device: Device = (
            first.device(self.arrays[0])
            if first is not None and first.is_array(self.arrays[0])
            else HOST
        )
        self._reads = 0
        self._last: Any = ctypes.py_object(None)
        self.place = ctypes.addressof(self._last)
        self.read()

    def addresses(self) -> list[int]:
        """:meth:`read`, the addresses alone."""
        return list(self.read().values)

    def read(self) -> Reading:
        """Where they are now.

        Returns:
            As long as the caller holds it, there is memory, whatever other threads bind.

        Raises:
            InputError: one has got memory that does not fit, or none; or the program updates one
                that cannot be written now.
        """
        last: Reading | None = self._last.value
        if last is not None and (self.are_constants or last.stays()):
            return last
        self._check()
        memory = self._memory_of(last)
        reading = self._reading(memory)
        self._reads += 1
        if self.are_constants:
            reading.watched = 1
        elif self._reads > _READS and self._watcher is not None:
            self._watcher.watch(reading)
        self._last.value = reading
        return reading

    def _memory_of(self, last: Reading | None) -> list[Any]:
        """Objects that keep the arrays' memory alive; the earlier ones at the same addresses."""
        known = [] if last is None else last.values
        found = [] if last is None else list(last.memory)
        for k, (interface, array) in enumerate(zip(self._interfaces, self.arrays, strict=True)):
            if last is None:
                found.append(interface.memory(array))
            elif interface.pointer(array) != known[k]:
                found[k] = interface.memory(array)
            else:
                continue
            # An array may get other memory at any time; this does not.
            if not self.are_constants:
                self._check_one(k, found[k], False)
        return found

    def _reading(self, memory: Sequence[Any]) -> Reading:
        from polyblocks.runtime.native.watcher import Reading

        arrays = self.arrays if self.are_constants else memory
        values = [
            interface.pointer(each)
            for interface, each in zip(self._interfaces, arrays, strict=True)
        ]
        return Reading(values, memory)

    @property
    def is_watchable(self) -> bool:
        """Whether all always lie as they do now, or machine code can tell. It cannot where some are
        updated, which have to be looked at in another way.
        """
        return self.are_constants or self._watcher is not None

    @functools.cached_property
    def are_constants(self) -> bool:
        """Whether their memory stays as it is, whatever becomes of the arrays."""
        return (
            bool(self.arrays)
            and not self._written
            and all(
                interface.is_array(array) and interface.is_constant(array)
                for interface, array in zip(self._interfaces, self.arrays, strict=True)
            )
        )

    @functools.cached_property
    def _watcher(self) -> Watcher | None:
        if self._written or len({type(interface) for interface in self._interfaces}) != 1:
            return None
        reader = self._interfaces[0].native_reader()
        return None if reader is None else reader.watcher(self.arrays, self.slots)

    def _check(self) -> None:
        for k, array in enumerate(self.arrays):
            self._check_one(k, array, k in self._written)

    def _check_one(self, k: int, array: Any, written: bool) -> None:
        """Check a weight, or what keeps its memory alive, which may not say what is written."""
        try:
            check(self._interfaces[k], self.slots[k], array, written, self.device)
        except InputError as error:
            raise InputError(
                f"weight '{self.slots[k].name}' of {self._function}: {error}"
            ) from None

    def _by_name(
        self,
        names: Sequence[Sequence[str]],
        given: Mapping[str, Any],
        interface_of: Callable[[Any], ArrayInterface],
    ) -> list[Any]:
        without = [slot.name for slot, each in zip(self.slots, names, strict=True) if not each]
        if without:
            raise InputError(
                f"{self._function} has weights that stand nowhere by a name: {_some(without)}; "
                f"pass a list of all {len(self.slots)} in the program's order"
            )
        found, missing = [], []
        for each in names:
            there = [name for name in each if name in given]
            if not there:
                missing.append(each[0])
                continue
            for other in there[1:]:
                if not _is_same(given[there[0]], given[other], interface_of):
                    raise InputError(
                        f"'{there[0]}' and '{other}' are one weight of {self._function}, and here "
                        "they differ; compile it again with weights that are not shared"
                    )
            found.append(given[there[0]])
        if missing:
            close = difflib.get_close_matches(missing[0], map(str, given), 1)
            instead = f" (there is '{close[0]}')" if close else ""
            raise InputError(
                f"{self._function} needs weights that are not there: {_some(missing)}{instead}; "
                "pass all of them, by these names"
            )
        return found


def bind_weights(
    manifest: Mapping[str, Any],
    blobs: Mapping[str, bytes],
    given: Weights,
    interface_of: Callable[[Any], ArrayInterface],
) -> BoundWeights:
    """Bind the weights of a program.

    Args:
        manifest: of the program.
        blobs: of its artifact.
        given: see :class:`BoundWeights`.
        interface_of: how an array is read.

    Raises:
        InputError: it has none, or they do not fit.
    """
    function = manifest.get("name", "main")
    names = manifest.get(WEIGHT_NAMES)
    if not names:
        stored = any(row.get("stored") is not None for row in manifest["arguments"])
        why = (
            "its weights are stored in the file"
            if stored
            else "it has none, or was compiled by an older version"
        )
        raise InputError(f"{function} takes no weights: {why}; compile it with weights='arguments'")
    signature = signature_of(manifest, blobs)
    count = len(names)
    first = len(signature.inputs) - count
    written = [k - first for k in signature.written if k >= first]
    return BoundWeights(function, signature.inputs[first:], names, written, given, interface_of)


def _is_same(one: Any, other: Any, interface_of: Callable[[Any], ArrayInterface]) -> bool:
    """Whether two arrays of a checkpoint are one: in memory, or by their contents."""
    if one is other:
        return True
    interfaces = interface_of(one), interface_of(other)
    if not all(i.is_array(a) for i, a in zip(interfaces, (one, other), strict=True)):
        return False
    specs = interfaces[0].describe(one), interfaces[1].describe(other)
    places = interfaces[0].device(one), interfaces[1].device(other)
    if specs[0] != specs[1] or places[0] != places[1]:
        return False
    pointers = interfaces[0].pointer(one), interfaces[1].pointer(other)
    if pointers[0] == pointers[1]:
        return True
    nbytes = specs[0].nbytes
    return places[0] == HOST and (
        ctypes.string_at(pointers[0], nbytes) == ctypes.string_at(pointers[1], nbytes)
    )


def _some(names: Sequence[str]) -> str:
    """The first of them, and how many there are."""
    told = ", ".join(f"'{name}'" for name in names[:_TOLD])
    return told if len(names) <= _TOLD else f"{told} and {len(names) - _TOLD} more"
