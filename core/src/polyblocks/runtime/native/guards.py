"""Guards of arrays in machine code, linked for one layout of arrays."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from polyblocks.codegen import array_guards
from polyblocks.codegen.array_layout import ArrayLayout
from polyblocks.runtime.native import native_code

#: A function of this kind keeps Python's lock.
_SNAPSHOT = ctypes.PYFUNCTYPE(
    ctypes.c_int32, *(ctypes.c_void_p,) * 5, ctypes.c_int64, ctypes.c_void_p
)


class Guards(NamedTuple):
    """Functions of :mod:`polyblocks.codegen.array_guards`.

    Attributes:
        layout: of the arrays.
        guard: address of the guard.
        snapshot: address of what takes snapshots.
    """

    layout: ArrayLayout
    guard: int
    snapshot: int

    def words_of(self, rank: int, unmoved: int, *places: int) -> tuple[int, ...] | None:
        """The words of one array, of :meth:`ArrayLayout.words`.

        Args:
            rank: of the array.
            unmoved: the function that says whether it lies as it should.
            places: addresses of its other arguments.

        Returns:
            None where it does not, or where arrays of this rank have no such words.
        """
        if rank >= len(self.layout.of_rank):
            return None
        found = (ctypes.c_uint64 * len(self.layout.words(rank)))()
        good = _SNAPSHOT(self.snapshot)(unmoved, *places, rank, ctypes.addressof(found))
        return tuple(found) if good else None


def guards(layout: ArrayLayout) -> Guards | None:
    """The functions; None where this process can have no machine code."""
    names = array_guards.GUARD, array_guards.SNAPSHOT
    functions = native_code.place(array_guards.guard_text(layout), *names)
    return None if functions is None else Guards(layout, *(functions[name] for name in names))
