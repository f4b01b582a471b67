"""Whether a function looks at the types of its arguments.

``type(n)`` of what stands for a changing number is not ``int``, as Python lets nothing answer for
it (``isinstance`` and ``n.__class__`` are answered). So all numbers of such a function are
constants.
"""

from __future__ import annotations

import dis
import functools
import itertools
import sysconfig
import types
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

#: Where libraries are installed, which TensorFlow need not be in the usual place. Their functions
#: are not looked into.
_LIBRARIES = (
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    str(Path(tf.__file__).parents[1]),
    "<frozen",
)
#: Where this frontend is, whose wrappers hold functions of the user's.
_OURS = str(Path(__file__).parents[1])
#: Attributes of wrappers (functools, TensorFlow, this frontend) that hold what they wrap.
_WRAPPED = ("__wrapped__", "_python_function", "_function", "_instance")


def asks_for_types(function: Callable[..., Any]) -> bool:
    """Whether ``type`` is named in a function, or in what it reaches in the user's code.

    That are functions inside of it, and functions, methods of objects and functions of modules
    that it names or holds in its closure.
    """
    seen: set[int] = set()
    left: list[Any] = [function]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        left += _wrapped(value)
        for found in _functions_of(value):
            code = found.__code__
            if code.co_filename.startswith(_LIBRARIES):
                continue
            codes = list(_nested(code))
            if any(_names_type(part) for part in codes) and not code.co_filename.startswith(_OURS):
                return True
            left += _held(found, {name for part in codes for name in part.co_names})
    return False


def _wrapped(value: Any) -> list[Any]:
    if isinstance(value, functools.partial):
        return [value.func]
    if isinstance(value, weakref.ref):
        return [value()]
    attributes = getattr(value, "__dict__", {})
    return [attributes[name] for name in _WRAPPED if name in attributes]


def _functions_of(value: Any) -> Iterator[types.FunctionType]:
    """A function; the methods of an object's class and of its bases."""
    if isinstance(value, types.FunctionType):
        yield value
        return
    if isinstance(value, types.MethodType):
        yield from _functions_of(value.__func__)
        value = value.__self__
    kind = value if isinstance(value, type) else type(value)
    for base in kind.__mro__:
        for method in vars(base).values():
            inner = getattr(method, "__func__", getattr(method, "fget", method))
            if isinstance(inner, types.FunctionType):
                yield inner


def _held(function: types.FunctionType, names: set[str]) -> Iterator[Any]:
    """Objects that a function may call: those of its names and its closure."""
    held = [function.__globals__[name] for name in names if name in function.__globals__]
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # of a name without a value yet
            continue
    for value in held:
        if isinstance(value, types.ModuleType):
            parts = (vars(value).get(name) for name in names)
            yield from (part for part in parts if isinstance(part, types.FunctionType))
        else:
            yield value


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _names_type(code: types.CodeType) -> bool:
    # The names of attributes are among those of a code, too.
    if "type" not in code.co_names:
        return False
    steps = list(dis.get_instructions(code))
    return any(
        step.argval == "type"
        and step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        and after.argval != "self"  # type(self).__name__
        for step, after in itertools.pairwise(steps)
    )
