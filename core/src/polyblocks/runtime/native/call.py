"""The call of a loaded program in machine code: the tables of one program.

See :mod:`polyblocks.codegen.native_call` for the code.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.codegen import native_call
from polyblocks.program import ArraySpec
from polyblocks.runtime import buffers, threads
from polyblocks.runtime.arrays import ArrayInterface
from polyblocks.runtime.bound_weights import BoundWeights
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.native.reader import NativeReader
from polyblocks.runtime.native.tables import words
from polyblocks.runtime.slots import Signature

_PAGE = 4096
#: More arrays than this would not be for the stack.
_MAX_ARRAYS = 16384


_Row: Any = words("Row", native_call.ROW)
_Table: Any = words("Table", native_call.TABLE)


class NativeCall:
    """The call of one program with the arrays of one framework.

    Attributes:
        types: exact types of the first array for which it is.
        function: address of the code.
        table: what is passed to it as ``self``; keeps all that it needs alive.
    """

    def __init__(self, types: tuple[type, ...], function: int, table: Any) -> None:
        self.types = types
        self.function = function
        self.table = table


@dataclass(frozen=True)
class Entry:
    """The code that a call runs, once its arrays are read.

    Attributes:
        address: of a C function ``int32 (void **pointers, int32 threads)``.
        slots: of the pointers, see :func:`slots_of`.
        rows: of each input and result that is made, see :data:`native_call.ROW`.
        makers: a function and its arguments for each result that is made.
        threads: of each call; 0: as many as the framework is set to.
        workspace_bytes: of the process's pool.
        stream: a function and its arguments that give the current stream.
        instead: ``instead(pointers, status, iterations)`` makes up for a run that returned this.
        alive: is kept as long as the code may run.
    """

    address: int
    slots: list[tuple[int, int, int]]
    rows: Any
    makers: list[tuple[Callable[..., Any], tuple[Any, ...]]]
    threads: int = 0
    workspace_bytes: int = 0
    stream: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
    instead: Callable[[int, int, int], None] | None = None
    alive: Any = None


def native(
    executable: Executable,
    interface: ArrayInterface,
    signature: Signature,
    slow: Callable[..., Any],
    failed: Callable[[int], Any],
    *,
    num_threads: int | None,
    num_iters: int,
    fixed: Mapping[tuple[str, int], int],
    weights: BoundWeights | None,
    alive: Any,
    in_tuple: bool = False,
) -> NativeCall | None:
    """Make the machine code's table for a program of the host.

    Args:
        executable: the loaded program.
        interface: of the arrays.
        signature: of the program.
        slow: is called for all that the code does not take.
        failed: raises for the status of a failed run.
        num_threads: of each call, see :mod:`polyblocks.runtime.threads`.
        num_iters: run the program this many times per call.
        fixed: ``(kind, number)`` of :attr:`Signature.sources` -> address, of what the caller does
            not pass.
        weights: what is bound to the last inputs.
        alive: is kept as long as the code may run.
        in_tuple: whether a single result, or none, comes in a tuple like several.

    Returns:
        None if there can be no such code: the entry is no C function, the frontend has no reader,
        or the process may have no machine code.
    """
    reader = interface.native_reader()
    c_function = executable.entry
    if reader is None or not is_c_function(c_function):
        return None
    rows = rows_of(reader, signature)
    slots = slots_of(signature, fixed)
    if rows is None or slots is None:
        return None
    entry = Entry(
        address=address_of(c_function),
        slots=slots[0],
        rows=rows,
        makers=[
            interface.allocation(slot.spec) for slot in signature.fresh if slot.spec is not None
        ],
        threads=num_threads or 0,
        workspace_bytes=slots[1],
        alive=(executable, c_function, alive),
    )
    return native_call_of(
        *(entry, reader, interface, signature, slow, failed),
        num_iters=num_iters,
        weights=weights,
        in_tuple=in_tuple,
    )


def native_call_of(
    entry: Entry,
    reader: NativeReader,
    interface: ArrayInterface,
    signature: Signature,
    slow: Callable[..., Any],
    failed: Callable[[int], Any],
    *,
    num_iters: int,
    weights: BoundWeights | None,
    in_tuple: bool = False,
) -> NativeCall | None:
    """Make the machine code's table for an entry; see :func:`native` for the other arguments.

    Args:
        entry: what is run.
        reader: of the arrays.
        interface: its ``updating`` is called before arrays are written.

    Returns:
        None: see there.
    """
    inputs = len(signature.inputs) + len(signature.weights)
    bound = () if weights is None else tuple(weights.arrays)
    if inputs + len(entry.makers) > _MAX_ARRAYS:
        return None
    if weights is not None and not weights.is_watchable:
        own = all(type(array) in reader.types for array in bound)
        if not (own and updates_bound(signature)):
            return None
    functions = reader.functions
    if functions is None:
        return None
    overrides = type(interface).updating is not ArrayInterface.updating
    updating = interface.updating if signature.written and overrides else None
    values: dict[str, Any] = {
        "slow": id(slow),
        "failed": id(failed),
        "state": 0 if reader.state is None else ctypes.addressof(reader.state),
        "updating": 0 if updating is None else id(updating),
        "iterations": num_iters,
        "in_tuple": int(in_tuple),
        "thread_limits": threads.limits,
        "poison": int(buffers.POISONED),
        "none": id(None),
        **_array_values(signature, weights, bound),
        **_entry_values(entry),
        **python_functions(),
    }
    if entry.workspace_bytes:
        pool = _pool_values()
        if pool is None:
            return None
        values |= pool
    table = _Table()
    for name, value in values.items():
        setattr(table, name, ctypes.addressof(value) if isinstance(value, ctypes.Array) else value)
    table.kept = entry, weights, updating, values, slow, failed, reader, bound
    return NativeCall(reader.types, functions[native_call.CALL], table) if is_sound(table) else None


def _array_values(
    signature: Signature, weights: BoundWeights | None, bound: tuple[Any, ...]
) -> dict[str, Any]:
    """Fields of the table about inputs and results."""
    inputs = len(signature.inputs) + len(signature.weights)
    first = {"input": 0, "fresh": inputs}
    results = [first[kind] + k for kind, k in signature.results]
    return {
        "passed": len(signature.inputs),
        "inputs": inputs,
        "bound": _array([id(array) for array in bound]),
        "bound_written": int(updates_bound(signature)),
        "reading": 0 if weights is None else weights.place,
        "results": _array(results),
        "result_count": len(results),
        "order": _array(list(range(inputs))),
        "written": len(signature.written),
        "updated": _array(list(signature.written)),
    }


def _entry_values(entry: Entry) -> dict[str, Any]:
    """Fields of the table about the code that is run."""
    slots = _in_order(entry.slots)
    pointer_count = sum(count for _, _, count in entry.slots)
    return {
        "rows": entry.rows[0],
        "fresh": len(entry.makers),
        "makers": _array([id(each) for maker in entry.makers for each in maker]),
        "slots": _array([each for slot in slots for each in slot]),
        "slot_count": len(slots),
        "changing_count": sum(slot[0] not in native_call.LASTING for slot in slots),
        "pointer_count": pointer_count,
        "pointers": _array([0] * pointer_count),
        "stream": 0 if entry.stream is None else _array([id(each) for each in entry.stream]),
        "instead": 0 if entry.instead is None else id(entry.instead),
        "entry": entry.address,
        "threads": entry.threads,
        "workspace_bytes": entry.workspace_bytes,
    }


def _in_order(slots: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Slots with the place of their first argument, those that change with each call first."""
    places = itertools.accumulate((count for _, _, count in slots), initial=0)
    placed = [(*slot, place) for slot, place in zip(slots, places, strict=False)]
    return sorted(placed, key=lambda slot: slot[0] in native_call.LASTING)


def _pool_values() -> dict[str, Any] | None:
    """Fields of the table about the process's workspaces; None if it may have no machine code."""
    from polyblocks.runtime.native import native_workspaces

    try:
        pool = native_workspaces.pool()
    except OSError:
        return None
    return {
        "pool": ctypes.addressof(pool.state),
        "acquire": pool.acquire,
        "release": pool.release,
    }


def is_c_function(entry: Any) -> bool:
    """Whether an entry can be called without Python."""
    return isinstance(entry, ctypes._CFuncPtr)  # type: ignore[attr-defined]


def _array(values: list[int]) -> Any:
    """Words in memory."""
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def rows_of(
    reader: NativeReader, signature: Signature, *more: ArraySpec
) -> tuple[Any, list[Any]] | None:
    """Rows of each input, and of each result that is made.

    Args:
        reader: of the arrays.
        signature: of the program.
        more: of arrays that are made behind the results.

    Returns:
        An array of rows, and what they point to; None: the reader does not know a dtype.
    """
    found = []
    alive = []
    inputs = (*signature.inputs, *signature.weights)
    specs = [slot.spec for slot in (*inputs, *signature.fresh)]
    for k, spec in enumerate((*specs, *more)):
        # Where a result lies is the framework's business.
        alignment = inputs[k].alignment if k < len(inputs) else 1
        written = k in signature.written
        row = None if spec is None else reader.row(spec, alignment, written)
        if row is None:
            return None
        found.append(_Row(*row[0]))
        alive.append(row[1])
    return (_Row * max(len(found), 1))(*found), alive


def updates_bound(signature: Signature) -> bool:
    """Whether a program updates inputs that are bound."""
    return any(number >= len(signature.inputs) for number in signature.written)


def slots_of(
    signature: Signature, fixed: Mapping[tuple[str, int], int]
) -> tuple[list[tuple[int, int, int]], int] | None:
    """Slots of the entry's arguments, and the bytes of all workspaces.

    Args:
        signature: of the program.
        fixed: see :func:`native`.

    Returns:
        Kind, value and count of arguments that follow each other, see
        :mod:`polyblocks.codegen.native_call`. None: not all are known.
    """
    from polyblocks.runtime.buffers import size_class

    found: list[tuple[int, int, int]] = []
    offset = 0
    passed, inputs = len(signature.inputs), len(signature.inputs) + len(signature.weights)
    # Where they were last read.
    is_held = not updates_bound(signature)
    for slot, (kind, k) in zip(signature.slots, signature.sources, strict=True):
        if (kind, k) in fixed:
            found.append((native_call.FIXED, fixed[kind, k], 1))
        elif kind == "input" and is_held and k >= passed:
            last = found[-1] if found else (native_call.FIXED, 0, 1)
            if last[0] == native_call.HELD and sum(last[1:]) == k - passed:
                found[-1] = (native_call.HELD, last[1], last[2] + 1)
            else:
                found.append((native_call.HELD, k - passed, 1))
        elif kind == "input":
            found.append((native_call.ARRAY, k, 1))
        elif kind == "fresh":
            found.append((native_call.ARRAY, inputs + k, 1))
        elif kind == "workspace":
            found.append((native_call.WORKSPACE, offset, 1))
            offset += max(_PAGE, -(-slot.workspace // _PAGE) * _PAGE)
        elif kind == "status":
            found.append((native_call.STATUS, 0, 1))
        else:
            return None
    return found, size_class(offset) if offset else 0


@functools.cache
def python_functions() -> dict[str, int]:
    """Addresses of the functions in a table."""
    found = {}
    for name in native_call.TABLE:
        if name.startswith("Py"):
            found[name] = address_of(getattr(ctypes.pythonapi, name))
    return found | {"memset": address_of(ctypes.CDLL(None).memset)}


def address_of(function: Any) -> int:
    """Of a C function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def is_sound(table: Any) -> bool:
    """Whether this Python's objects look as the code takes for granted."""
    if sys.implementation.name != "cpython" or object.__basicsize__ != native_call.SELF_OFFSET:
        return False  # without a global lock, objects start otherwise
    word = ctypes.c_void_p.from_address(id(table) + native_call.SELF_OFFSET).value
    return word == ctypes.addressof(table)
