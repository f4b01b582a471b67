"""Looks whether arrays have stayed where they were, in one call of machine code for all."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polyblocks.codegen import array_guards, native_call
from polyblocks.runtime.native.tables import words

if TYPE_CHECKING:
    from polyblocks.runtime.native.guards import Guards

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
# Functions of these kinds keep Python's lock.
_GUARD = ctypes.PYFUNCTYPE(ctypes.c_int32, _POINTER, _NUMBER, _POINTER)
_UNMOVED = ctypes.PYFUNCTYPE(ctypes.c_int32, *(_POINTER,) * 4, _NUMBER)

_Bound: Any = words("Bound", native_call.BOUND)
_numbers = itertools.count(1)


class Reading(_Bound):
    """Where arrays were when they were last read; see ``native_call.BOUND``.

    Machine code finds one as the object of Python that it is, so it changes no more once others can
    see it.

    Attributes:
        values: addresses of the arrays.
        memory: what keeps their memory alive.

    Args:
        values: see there.
        memory: see there.
    """

    def __init__(self, values: Sequence[int], memory: Sequence[Any]) -> None:
        super().__init__()
        self.number = next(_numbers)
        self.values = list(values)
        self.memory = list(memory)
        self._table = (ctypes.c_int64 * len(self.values))(*self.values)
        self.addresses = ctypes.addressof(self._table)
        self._held: Any = None

    def stays(self) -> bool:
        """Whether the arrays are still there, and lie as they did; False if that is not known."""
        if not self.watched:
            return False
        if self.guard and not _GUARD(self.guard)(self.groups, self.group_count, self.group_rows):
            return False
        if self.unmoved:
            places = self.state, self.arrays, self.rows, self.array_addresses
            return bool(_UNMOVED(self.unmoved)(*places, self.array_count))
        return True


class Watcher:
    """Watches arrays; see :meth:`polyblocks.runtime.native.reader.NativeReader.watcher`.

    Args:
        unmoved: address of the reader's ``native_call.UNMOVED``.
        state: memory of the reader's state; None: null.
        guards: of such arrays; None: there are none.
        arrays: the arrays.
        rows: what is expected of each, as ``NativeReader.row`` gives it.
        ranks: of each.
    """

    def __init__(
        self,
        unmoved: int,
        state: Any,
        guards: Guards | None,
        arrays: Sequence[Any],
        rows: Sequence[tuple[Any, list[Any]]],
        ranks: Sequence[int],
    ) -> None:
        self._unmoved = unmoved
        self._state = 0 if state is None else ctypes.addressof(state)
        self._guards = guards
        self._arrays = tuple(arrays)
        self._objects = (ctypes.c_void_p * len(arrays))(*map(id, arrays))
        self._values = [row[0] for row in rows]
        self._rows = (ctypes.c_int64 * (len(native_call.ROW) * len(rows)))(
            *(value for row in rows for value in row[0])
        )
        self._ranks = tuple(ranks)
        self._held = rows, state

    def watch(self, reading: Reading) -> None:
        """Complete a reading that no other can see yet.

        Arrays that are not where it says, or that have no guard, are asked for each time.
        """
        guards, state, count = self._guards, self._state, len(self._arrays)
        objects, rows = ctypes.addressof(self._objects), ctypes.addressof(self._rows)
        groups: dict[tuple[int, ...], list[int]] = {}
        others: list[int] = []
        for k in range(count):
            places = state, objects + 8 * k, rows + 8 * len(native_call.ROW) * k
            address = reading.addresses + 8 * k
            found = (
                None
                if guards is None
                else guards.words_of(self._ranks[k], self._unmoved, *places, address)
            )
            if guards is None or found is None:
                others.append(k)
                continue
            own = array_guards.row_words(guards.layout) - 1
            key = (self._ranks[k], *found[own:])
            groups.setdefault(key, []).extend((id(self._arrays[k]), *found[:own]))
        held: list[Any] = [self]
        if guards is not None and groups:
            held += _fill(reading, guards, groups)
        if others:
            held += self._ask(reading, others)
        reading._held = held
        reading.watched = 1

    def _ask(self, reading: Reading, others: Sequence[int]) -> list[Any]:
        """Have the reader asked about some of the arrays; returns what must be kept alive."""
        objects = (ctypes.c_void_p * len(others))(*(id(self._arrays[k]) for k in others))
        rows = (ctypes.c_int64 * (len(native_call.ROW) * len(others)))(
            *(value for k in others for value in self._values[k])
        )
        addresses = (ctypes.c_int64 * len(others))(*(reading.values[k] for k in others))
        reading.unmoved, reading.state = self._unmoved, self._state
        reading.arrays, reading.rows = ctypes.addressof(objects), ctypes.addressof(rows)
        reading.array_addresses = ctypes.addressof(addresses)
        reading.array_count = len(others)
        return [objects, rows, addresses]


def _fill(reading: Reading, guards: Guards, groups: dict[tuple[int, ...], list[int]]) -> list[Any]:
    """Have arrays guarded; returns what must be kept alive."""
    width, of_group = array_guards.row_words(guards.layout), array_guards.group_words(guards.layout)
    described: list[int] = []
    for (rank, *shared), rows in groups.items():
        row = [len(rows) // width, rank, *shared]
        described += row + [0] * (of_group - len(row))
    table = (ctypes.c_uint64 * len(described))(*described)
    every = [word for rows in groups.values() for word in rows]
    lines = (ctypes.c_uint64 * len(every))(*every)
    reading.guard, reading.groups = guards.guard, ctypes.addressof(table)
    reading.group_count, reading.group_rows = len(groups), ctypes.addressof(lines)
    return [table, lines]
