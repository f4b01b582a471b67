"""The tables that :mod:`polyblocks_tf.variables.call_text` reads, and the functions there."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.isolation import forks
from polyblocks.runtime import buffers
from polyblocks.runtime.native import native_code
from polyblocks_tf.variables import call_text
from polyblocks_tf.variables.layout import Place
from polyblocks_tf.variables.library import Library, context_address
from polyblocks_tf.variables.spares import Spare

_ADDRESS = ctypes.c_void_p

#: ``run(table, given, expected, threads) -> status``
Run = Callable[[int, bytes, int, int], int]
#: ``claim(flag) -> whether it was clear``
Claim = Callable[[int], int]


_tables: weakref.WeakSet[Table] = weakref.WeakSet()


class Row(ctypes.Structure):
    """Where the address of an argument of the program comes from."""

    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class _Read(ctypes.Structure):
    _fields_ = (
        ("tensor", _ADDRESS),
        ("mutex", _ADDRESS),
        ("flags", _ADDRESS),
        ("bytes", ctypes.c_int64),
        ("lasting", ctypes.c_int32),
        ("shape", _ADDRESS),
    )


class _Assigned(ctypes.Structure):
    _fields_ = (
        ("tensor", _ADDRESS),
        ("mutex", _ADDRESS),
        ("spare", _ADDRESS),
        ("busy", _ADDRESS),
        ("bytes", ctypes.c_int64),
        ("type", _ADDRESS),
        ("dtype", ctypes.c_int32),
    )


class _Table(ctypes.Structure):
    _fields_ = (
        ("entry", _ADDRESS),
        ("rows", _ADDRESS),
        ("read", _ADDRESS),
        ("assigned", _ADDRESS),
        ("context", _ADDRESS),
        ("count", ctypes.c_int32),
        ("read_count", ctypes.c_int32),
        ("assigned_count", ctypes.c_int32),
        ("iterations", ctypes.c_int32),
        ("poison", ctypes.c_int32),
    )


class Table:
    """The tables of one program.

    Attributes:
        address: of the first one.

    Args:
        entry: of the loaded program; kept alive.
        iterations: how often the program is run per call.
        rows: one for each of its arguments.
        read: place and size in bytes of variables that are read, the number of the address among
            those that are expected, or -1, and the address of the shape.
        assigned: place and size of variables that are assigned, and their spare buffers.
        variables: handles of all of them, kept alive.
    """

    def __init__(
        self,
        entry: Any,
        iterations: int,
        rows: Sequence[Row],
        read: Sequence[tuple[Place, int, int, int]],
        assigned: Sequence[tuple[Place, int, Spare]],
        variables: Sequence[Any],
    ) -> None:
        row_table = (Row * len(rows))(*rows)
        read_table = (_Read * len(read))(
            *(_Read(at.tensor, at.mutex, at.flags, *more) for at, *more in read)
        )
        assigned_table = (_Assigned * len(assigned))(
            *(
                _Assigned(
                    at.tensor,
                    at.mutex,
                    spare.place.tensor,
                    ctypes.addressof(spare.busy),
                    size,
                    spare.type,
                    spare.dtype.as_datatype_enum,
                )
                for at, size, spare in assigned
            )
        )
        table = _Table(
            ctypes.cast(entry, _ADDRESS).value or 0,
            ctypes.addressof(row_table),
            ctypes.addressof(read_table),
            ctypes.addressof(assigned_table),
            context_address(),
            len(rows),
            len(read),
            len(assigned),
            iterations,
            int(buffers.POISONED),
        )
        self.address = ctypes.addressof(table)
        self._held = table, row_table, read_table, assigned_table, entry, list(assigned)
        self._variables = list(variables)
        self._places = [*(place for place, *_ in read), *(place for place, *_ in assigned)]
        _tables.add(self)

    def unlock(self) -> None:
        """Free the mutexes of all its variables, in a process where no thread holds any."""
        for place in self._places:
            place.unlock()


@forks.in_child
def _unlock() -> None:
    for table in list(_tables):
        table.unlock()


@functools.cache
def functions(library: Library) -> tuple[Run, Claim]:
    """The functions, linked to TensorFlow's."""
    imports = {name: library.addresses[name] for name in call_text.IMPORTS}
    imports["memset"] = ctypes.cast(ctypes.CDLL(None).memset, _ADDRESS).value or 0
    linked = native_code.link(
        call_text.call_text(buffers.PATTERN), (call_text.CALL, call_text.CLAIM), imports
    )
    run = ctypes.CFUNCTYPE(ctypes.c_int32, _ADDRESS, ctypes.c_char_p, _ADDRESS, ctypes.c_int32)(
        linked[call_text.CALL]
    )
    claim = ctypes.CFUNCTYPE(ctypes.c_int32, _ADDRESS)(linked[call_text.CLAIM])
    run.library = linked  # type: ignore[attr-defined]
    return run, claim
