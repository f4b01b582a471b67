"""The call of a loaded program in machine code: the tables of one program.

See :mod:`polyblocks.codegen.native_call` for the code.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

from polyblocks.codegen import native_call
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
) -> NativeCall | None:
    """Make the machine code's table for a program.

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

    Returns:
        None if there can be no such code: the entry is no C function, the frontend has no reader,
        or the process may have no machine code.
    """
    reader = interface.native_reader()
    entry = executable.entry
    inputs = len(signature.inputs) + len(signature.weights)
    bound = () if weights is None else tuple(weights.arrays)
    if reader is None or not is_c_function(entry) or inputs + len(signature.fresh) > _MAX_ARRAYS:
        return None
    first = len(signature.inputs)
    updates_bound = any(number >= first for number in signature.written)
    if (
        weights is not None
        and not weights.is_watchable
        and not (updates_bound and all(type(array) in reader.types for array in bound))
    ):
        return None
    rows = _rows(reader, signature)
    slots = _slots(signature, fixed, is_held=weights is not None and not updates_bound)
    functions = reader.functions if rows is not None and slots is not None else None
    if rows is None or slots is None or functions is None:
        return None
    table = _Table()
    makers = [interface.allocation(slot.spec) for slot in signature.fresh if slot.spec is not None]
    number = {"input": 0, "fresh": inputs}
    results = [number[kind] + k for kind, k in signature.results]
    tells = type(interface).updating is not ArrayInterface.updating
    updating = interface.updating if signature.written and tells else None
    values: dict[str, Any] = {
        "slow": id(slow),
        "failed": id(failed),
        "state": 0 if reader.state is None else ctypes.addressof(reader.state),
        "rows": rows[0],
        "passed": len(signature.inputs),
        "inputs": inputs,
        "bound": _array([id(array) for array in bound]),
        "bound_written": int(updates_bound),
        "reading": 0 if weights is None else weights.place,
        "fresh": len(signature.fresh),
        "makers": _array([id(each) for maker in makers for each in maker]),
        "slots": _array([each for slot in slots[0] for each in slot]),
        "slot_count": len(slots[0]),
        "pointer_count": len(signature.slots),
        "results": _array(results),
        "result_count": len(results),
        "order": _array(list(range(inputs))),
        "written": len(signature.written),
        "updated": _array(list(signature.written)),
        "updating": 0 if updating is None else id(updating),
        "entry": ctypes.cast(entry, ctypes.c_void_p).value,  # type: ignore[arg-type]
        "iterations": num_iters,
        "threads": num_threads or 0,
        "thread_limits": threads.limits,
        "workspace_bytes": slots[1],
        "poison": int(buffers.POISONED),
        "none": id(None),
        **python_functions(),
    }
    if slots[1]:
        from polyblocks.runtime.native import native_workspaces

        try:
            pool = native_workspaces.pool()
        except OSError:
            return None
        values["pool"] = ctypes.addressof(pool.state)
        values["acquire"], values["release"] = pool.acquire, pool.release
    for name, value in values.items():
        setattr(table, name, ctypes.addressof(value) if isinstance(value, ctypes.Array) else value)
    table.kept = (
        weights,
        updating,
        values,
        makers,
        slow,
        failed,
        rows,
        reader,
        executable,
        entry,
        bound,
        alive,
    )
    return NativeCall(reader.types, functions[native_call.CALL], table) if is_sound(table) else None


def is_c_function(entry: Any) -> bool:
    """Whether an entry can be called without Python."""
    return isinstance(entry, ctypes._CFuncPtr)  # type: ignore[attr-defined]


def _array(values: list[int]) -> Any:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def _rows(reader: NativeReader, signature: Signature) -> tuple[Any, list[Any]] | None:
    found = []
    alive = []
    made = len(signature.inputs) + len(signature.weights)
    for k, slot in enumerate((*signature.inputs, *signature.weights, *signature.fresh)):
        # Where a result lies is the framework's business.
        alignment = slot.alignment if k < made else 1
        written = k in signature.written
        row = None if slot.spec is None else reader.row(slot.spec, alignment, written)
        if row is None:
            return None
        found.append(_Row(*row[0]))
        alive.append(row[1])
    return (_Row * max(len(found), 1))(*found), alive


def _slots(
    signature: Signature, fixed: Mapping[tuple[str, int], int], *, is_held: bool
) -> tuple[list[tuple[int, int, int]], int] | None:
    """Rows of the entry's arguments, and the bytes of all workspaces; None: not all are known.

    Args:
        signature: of the program.
        fixed: see :func:`native`.
        is_held: whether the addresses of bound inputs are where they were last read.
    """
    from polyblocks.runtime.buffers import size_class

    found: list[tuple[int, int, int]] = []
    offset = 0
    passed, inputs = len(signature.inputs), len(signature.inputs) + len(signature.weights)
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
