"""Machine code as functions of Python's builtin kind."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Any

from polyblocks.runtime.native.call import NativeCall, address_of

_FASTCALL, _KEYWORDS = 0x80, 0x02  # METH_FASTCALL, METH_KEYWORDS


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def builtin(name: str, function: int, table: Any, doc: str = "", module: str = "") -> Any:
    """A builtin function ``(*arrays)``.

    Args:
        name: its name.
        function: the address of code of the protocol ``METH_FASTCALL | METH_KEYWORDS``.
        table: the object that the function is a method of; kept alive.
        doc: its text.
        module: where it says that it comes from.
    """
    # The signature as of a Python function; all up to the dashes is no part of `__doc__`.
    text = f"{name}(*arrays)\n--\n\n{doc}".encode()
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object
    )
    make = prototype(address_of(ctypes.pythonapi.PyCFunction_NewEx))
    return make(_definition(name.encode(), function, text), table, module)


@functools.cache
def _definition(name: bytes, function: int, doc: bytes) -> int:
    """The address of a function's definition, which nothing frees.

    Python looks at it when the function is freed; the garbage collector may have cleared what the
    function keeps alive before that.
    """
    made = _MethodDef(name, function, _FASTCALL | _KEYWORDS, doc)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return ctypes.addressof(made)


class Chain:
    """Calls in machine code for several places of arrays, each of which goes on to the next.

    They are kept alive by the function that they are made for, not by this.
    """

    def __init__(self) -> None:
        self._places: set[Hashable] = set()
        self._last: Callable[[], NativeCall | None] = lambda: None

    def extended(
        self,
        place: Hashable,
        slow: Callable[..., Any],
        make: Callable[[Callable[..., Any]], NativeCall | None],
    ) -> NativeCall | None:
        """A call for arrays of one more place, in front of those that there are.

        Args:
            place: of the arrays.
            slow: is called for arrays that are in no place of these.
            make: makes the call, of what is called for all arrays that it does not take.

        Returns:
            None if there is one already, or there can be none.
        """
        if place in self._places:
            return None
        self._places.add(place)
        last = self._last()
        made = make(slow if last is None else builtin("call", last.function, last.table))
        if made is not None:
            self._last = weakref.ref(made)
        return made
