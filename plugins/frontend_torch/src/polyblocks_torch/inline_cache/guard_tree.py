"""The objects that Dynamo's guards of a frame look at.

Guards whose answer follows from something that is cheap to compare need not be asked again as long
as that is the same: of a tensor the words of its implementation, of what cannot change its
identity. Which guards there are is read from Dynamo's tree of them; a kind that is not known here
has the guards asked at each call.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import re
import types
from collections.abc import Iterator
from inspect import CO_VARARGS, CO_VARKEYWORDS
from typing import Any, NamedTuple

import torch


class Unknown(Exception):
    """A guard may look at something that is not compared."""


class Fact(NamedTuple):
    """A condition; see ``code.FACT``.

    Attributes:
        of: a dict; an address where there is no key.
        key: of a word: None.
        value: the object that must be there; where there is no key, perhaps a number.
        differs: whether it must not.
        is_number: whether the value is the word itself.
    """

    of: Any
    key: str | None
    value: Any
    differs: bool = False
    is_number: bool = False


#: Objects of these classes do not change. A guard says the same of the same one.
_CONSTANTS = (
    *(int, float, complex, bool, str, bytes, type(None), type(...), object),
    *(torch.dtype, torch.device, torch.memory_format, torch.layout),
)
#: Objects of these classes are guarded by what they are.
_NAMED = (types.ModuleType, types.BuiltinFunctionType, types.FunctionType, type)
#: Guards of the whole frame: of the state, the modes and the keys that are compared, and of
#: :mod:`torch.autograd.forward_ad`, whose level is.
_AMBIENT = {
    *("GLOBAL_STATE", "TORCH_FUNCTION_MODE_STACK", "DEFAULT_DEVICE"),
    "DUAL_LEVEL_MATCH",
}
#: Hooks of saved tensors: nothing is saved where no gradient is asked for.
_HOOKS = "torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids =="
#: Guards of a tensor itself: of its class, keys, type, device, extents, strides, and whether it
#: requires a gradient. Marks of dynamic sizes are wishes that nothing here follows.
_OF_TENSORS = {
    *("TENSOR_MATCH", "TYPE_MATCH", "NOT_NONE", "NO_HASATTR"),
    *("NO_TENSOR_ALIASING", "DIMENSION_DYNAMIC_MARKING_GUARD"),
}
_IDENTITY = {"ID_MATCH", "TYPE_MATCH", "NOT_NONE", "CLOSURE_MATCH", "FUNCTION_MATCH"}
#: Guards of the tuple of further arguments, which is as long as the call makes it.
_OF_TUPLES = {"TYPE_MATCH", "LENGTH_CHECK", "ID_MATCH"}
#: Guards of a dict whose length and values are compared.
_OF_DICTS = {"TYPE_MATCH", "DICT_LENGTH", "DICT_CONTAINS"}
_DISTINCT = "NO_TENSOR_ALIASING"

_ACCESS = re.compile(r"(?P<kind>\w+)(?:\((?P<key>.*)\))?", re.DOTALL)
_FRAME_KEY = re.compile(r"key='(\w+)'")
#: Bytes of an object's head; in a cell its contents, in a dict its length follows.
_HEAD = 16


class GuardTree:
    """The objects that the guards of one call look at.

    Attributes:
        facts: what must stay so, beside the arguments.
        distinct: whether the guards ask that no tensor is passed twice.

    Args:
        root: Dynamo's ``RootGuardManager``.
        function: the function whose frame is guarded.
        arguments: of a call without keyword arguments for which the guards hold.

    Raises:
        Unknown: see there.
    """

    def __init__(self, root: Any, function: types.FunctionType, arguments: tuple[Any, ...]) -> None:
        self.facts: list[Fact] = []
        self.distinct = False
        self._globals = function.__globals__
        self._places = dict(_places(function, arguments))
        if root.get_epilogue_lambda_guards():
            raise Unknown("guards that are evaluated last")
        for leaf in root.get_leaf_guards():
            if _kind(leaf) not in _AMBIENT and not _is_about_hooks(leaf):
                raise Unknown(_kind(leaf))
        for kind, key, child in _children(root):
            if kind == "GlobalsGuardAccessor":
                self._look_at_globals(child)
            elif kind == "FrameLocalsGuardAccessor":
                self._look_at_local(child, key)
            else:
                raise Unknown(kind)

    def _look_at_local(self, manager: Any, key: str) -> None:
        match = _FRAME_KEY.search(key)
        place = self._places.get(match[1]) if match else None
        if place is None:
            raise Unknown(f"a variable {key}")
        kind, value = place
        if kind == "names":
            return  # always empty
        if kind == "more":
            if not _leaves(manager) <= _OF_TUPLES:
                raise Unknown("a tuple of arguments")
            for accessor, item, child in _children(manager):
                if accessor != "TupleGetItemGuardAccessor":
                    raise Unknown(accessor)
                self._look_at_argument(child, value[int(item)])
        elif kind == "cell":
            inner = value.cell_contents
            self.facts.append(Fact(_word(id(value) + _HEAD, id(inner)), None, inner))
            self._look_at_object(manager, inner)
        else:
            self._look_at_argument(manager, value)

    def _look_at_argument(self, manager: Any, value: Any) -> None:
        if not isinstance(value, torch.Tensor):
            self._look_at_object(manager, value)
            return
        leaves = _leaves(manager)
        if not leaves <= _OF_TENSORS or any(True for _ in _children(manager)):
            raise Unknown("guards of a tensor")
        self.distinct |= _DISTINCT in leaves

    def _look_at_globals(self, manager: Any) -> None:
        if _leaves(manager):
            raise Unknown("guards of all global variables")
        for kind, key, child in _children(manager):
            if kind != "DictGetItemGuardAccessor":
                raise Unknown(kind)
            self._look_at_item(child, self._globals, key.strip("'"))

    def _look_at_item(self, manager: Any, of: dict[str, Any], key: str) -> None:
        if key not in of:
            raise Unknown(key)
        self.facts.append(Fact(of, key, of[key]))
        self._look_at_object(manager, of[key])

    def _look_at_object(self, manager: Any, value: Any) -> None:
        """An object that is known to be the same one."""
        if type(value) in _CONSTANTS:
            return
        if value is vars(builtins) and not _leaves(manager):
            for kind, key, child in _children(manager):
                if kind != "DictGetItemGuardAccessor":
                    raise Unknown(kind)
                self._look_at_item(child, value, key.strip("'"))
            return
        if type(value) is functools.partial:
            self._look_at_partial(manager, value)
            return
        if not isinstance(value, _NAMED) or not _leaves(manager) <= _IDENTITY:
            raise Unknown(type(value).__name__)
        for kind, key, child in _children(manager):
            if type(value) is types.ModuleType and kind == "GetAttrGuardAccessor":
                self._look_at_item(child, vars(value), key)
            elif type(value) is types.FunctionType and kind == "CodeGuardAccessor":
                self._look_at_code(child, value)
            else:
                raise Unknown(kind)

    def _look_at_partial(self, manager: Any, value: functools.partial[Any]) -> None:
        if not _leaves(manager) <= _IDENTITY:
            raise Unknown("guards of a partial function")
        for kind, key, child in _children(manager):
            if kind != "GetAttrGuardAccessor" or key not in ("func", "args", "keywords"):
                raise Unknown(kind)
            part = getattr(value, key)
            self.facts.append(Fact(_word_in(value, part), None, part))
            if key == "func":
                self._look_at_object(child, part)
            elif key == "args":
                if not _leaves(child) <= _OF_TUPLES or not all(map(is_constant, part)):
                    raise Unknown("arguments of a partial function")
            else:
                self._look_at_keywords(child, part)

    def _look_at_keywords(self, manager: Any, keywords: dict[str, Any]) -> None:
        if not _leaves(manager) <= _OF_DICTS:
            raise Unknown("guards of keywords")
        self.facts.append(
            Fact(_word(id(keywords) + _HEAD, len(keywords)), None, len(keywords), is_number=True)
        )
        for kind, key, child in _children(manager):
            if kind != "DictGetItemGuardAccessor":
                raise Unknown(kind)
            self._look_at_item(child, keywords, key.strip("'"))

    def _look_at_code(self, manager: Any, function: types.FunctionType) -> None:
        if not _leaves(manager) <= _IDENTITY or any(True for _ in _children(manager)):
            raise Unknown("guards of code")
        code = function.__code__
        self.facts.append(Fact(_word_in(function, code), None, code))


def is_constant(value: Any) -> bool:
    """Whether an object never changes."""
    return type(value) in _CONSTANTS or isinstance(value, _NAMED)


def _places(
    function: types.FunctionType, arguments: tuple[Any, ...]
) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Variables of a frame, and what they hold: an argument, several, names, or a cell."""
    code = function.__code__
    count = code.co_argcount
    others = iter(code.co_varnames[count + code.co_kwonlyargcount :])
    for name, value in zip(code.co_varnames[:count], arguments, strict=False):
        yield name, ("argument", value)
    if code.co_flags & CO_VARARGS:
        yield next(others), ("more", arguments[count:])
    if code.co_flags & CO_VARKEYWORDS:
        yield next(others), ("names", None)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, ("cell", cell)


def _children(manager: Any) -> Iterator[tuple[str, str, Any]]:
    """Kind and key of each access, and the manager of what it gives."""
    if type(manager).__name__ not in ("GuardManager", "RootGuardManager"):
        raise Unknown(type(manager).__name__)
    for accessor, child in zip(manager.get_accessors(), manager.get_child_managers(), strict=True):
        match = _ACCESS.fullmatch(accessor.repr())
        if match is None:
            raise Unknown(accessor.repr())
        yield match["kind"], match["key"] or "", child


def _kind(leaf: Any) -> str:
    return type(leaf).__name__


def _leaves(manager: Any) -> set[str]:
    return {_kind(leaf) for leaf in manager.get_leaf_guards()}


def _is_about_hooks(leaf: Any) -> bool:
    parts = leaf.verbose_code_parts()
    return _kind(leaf) == "LAMBDA_GUARD" and all(part.startswith(_HOOKS) for part in parts)


def _word_in(value: Any, held: Any) -> int:
    """The address of the only word of an object that points to another one."""
    places = range(id(value) + _HEAD, id(value) + type(value).__basicsize__, 8)
    found = [address for address in places if _there(address) == id(held)]
    if len(found) != 1:
        raise Unknown("where an object has another one")
    return found[0]


def _word(address: int, expected: int) -> int:
    if _there(address) != expected:
        raise Unknown("where an object has something")
    return address


def _there(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value
