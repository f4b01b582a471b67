"""Loaded programs as functions of Python's builtin kind, which go on to machine code.

The function that a caller gets looks at the type of the first array and goes on to the code for
that framework's arrays, if there is any yet; else to a Python function, which chooses the
framework. Code for a framework is made at the second call that works: a process that calls a
program once needs none.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from typing import Any

from polyblocks.codegen import native_dispatch as code
from polyblocks.runtime.native import native_code
from polyblocks.runtime.native.builtin import builtin
from polyblocks.runtime.native.call import NativeCall, is_sound, python_functions
from polyblocks.runtime.native.tables import words

#: Exact types that one function tells apart.
_MAX_TARGETS = 16

_Table: Any = words("Table", code.DISPATCH_TABLE)


class LoadedProgram(_Table):
    """A function's table, which Python shows as the object that the function is a method of."""

    def __reduce__(self) -> Any:
        raise TypeError("a loaded program cannot be pickled; load its file in the other process")


def dispatched(
    plain: Callable[..., Any], choose: Callable[..., Callable[..., Any]]
) -> Callable[..., Any]:
    """A function that calls, for each class of its first array, what was chosen for that.

    Args:
        plain: gives the function its name and its text.
        choose: the function of Python for arrays, which is asked once for each class of the first
            one. It may have the attributes ``native_call`` and ``generated_call``, see
            :func:`polyblocks.runtime.launch.bind`, and ``several_places``: its ``native_call`` is
            asked after each call that comes to it, since arrays of other devices need other code.
    """
    known = _Known()
    table: Callable[[], Any] = _no_table

    @functools.wraps(plain)
    def call(*arrays: Any) -> Any:
        kind = type(arrays[0]) if arrays else _NoArray
        choice = known.get(id(kind))
        if choice is None:
            choice = known.add(kind, choose(*arrays))
        result = choice.call(*arrays)
        if choice.left > 0 and arrays:
            choice.left -= 1
            if not choice.left:
                choice.left = int(getattr(choice.call, "several_places", False))
                choice.call = _improved(choice.call, kind, table()) or choice.call
        return result

    made = _dispatcher(call)
    if made is None:
        return call
    function, own_table = made
    # Weakly: what the table keeps alive must not keep the table alive.
    table = weakref.ref(own_table)
    return function


class _NoArray:
    """Stands for the class of the first array of calls without arrays."""


class _Choice:
    """The function for the arrays of a class.

    Attributes:
        call: the function.
        left: calls that work, after which machine code is made, or Python for this program.
        kind: refers to the class, weakly.
    """

    __slots__ = ("call", "kind", "left")

    def __init__(self, call: Callable[..., Any], kind: weakref.ref[type]) -> None:
        self.call = call
        self.left = 2
        self.kind = kind


class _Known(dict[int, _Choice]):
    """The choice for each class, by its ``id``, as long as there is the class."""

    def add(self, kind: type, call: Callable[..., Any]) -> _Choice:
        """Have a function called for the arrays of a class."""
        number, own = id(kind), weakref.ref(self)

        def forget(_: Any) -> None:
            known = own()
            if known is not None:
                known.pop(number, None)

        choice = self[number] = _Choice(call, weakref.ref(kind, forget))
        return choice


def _improved(chosen: Callable[..., Any], kind: type, table: Any) -> Callable[..., Any] | None:
    """The function that Python calls from now on; None: machine code, or the one that there is.

    Args:
        chosen: what it has called so far.
        kind: class of the first array.
        table: of the function in machine code, which gets a target; None without such code.
    """
    make = getattr(chosen, "native_call", None)
    if table is not None and make is not None:
        # Arrays that this code does not take may be for the next: Python's own function is asked.
        slow = table.kept[0] if getattr(chosen, "several_places", False) else chosen
        if _add(table, kind, make(slow)):
            return None
    make = getattr(chosen, "generated_call", None)
    return None if make is None else make(chosen)


def _no_table() -> None:
    return None


def _dispatcher(slow: Callable[..., Any]) -> tuple[Callable[..., Any], Any] | None:
    """A function of machine code, and its table, which it keeps alive.

    Args:
        slow: is called where the table has no target, with the same arguments.

    Returns:
        None where there can be none in this process.
    """
    functions = native_code.place(code.dispatch_text(), code.DISPATCH)
    table = LoadedProgram()
    if functions is None or not is_sound(table):
        return None
    targets = (ctypes.c_void_p * (3 * _MAX_TARGETS))()
    table.slow = id(slow)
    table.targets = ctypes.addressof(targets)
    table.PyObject_Vectorcall = python_functions()["PyObject_Vectorcall"]
    name = getattr(slow, "__name__", "call")
    table.kept = [slow, targets]
    function = functions[code.DISPATCH]
    return builtin(name, function, table, slow.__doc__ or "", slow.__module__), table


def _add(table: Any, kind: type, call: NativeCall | None) -> bool:
    """From the next time on, go on to a call for arrays of a class and of those read alike.

    Returns:
        Whether that is so.
    """
    if call is None or kind not in call.types:
        return False
    targets = (ctypes.c_void_p * (3 * _MAX_TARGETS)).from_address(table.targets)
    table.kept.append(call)
    for each in call.types:
        count = table.count or 0
        known = targets[: 3 * count : 3]
        place = known.index(id(each)) if id(each) in known else count
        if place < _MAX_TARGETS:
            targets[3 * place : 3 * place + 3] = [id(each), call.function, id(call.table)]
            table.count = max(count, place + 1)
    return id(kind) in targets[: 3 * (table.count or 0) : 3]
