"""Arguments of a compiled function: static ones, and functions among the others."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from polyblocks.errors import InputError
from polyblocks.options import CompileOptions

#: Types that JAX takes as leaves of an argument.
_ARRAYS = (jax.Array, jax.Ref, jax.ShapeDtypeStruct, np.ndarray, np.generic)
_NUMBERS = (bool, int, float, complex)


@jax.tree_util.register_static
@dataclass(frozen=True)
class Constant:
    """A function that replaces a leaf: part of the structure of the tree, and so of the kind."""

    value: Any


def opened(leaf: Any) -> Any:
    """The leaf of the user's tree."""
    return leaf.value if isinstance(leaf, Constant) else leaf


@dataclass(frozen=True)
class Static:
    """Which arguments are static: numbers of positional ones, and names of keyword ones."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]


class Arguments:
    """The arguments of one decorated function.

    Args:
        name: the user's function, for messages.
        function: the user's.
        options: the checked options.
    """

    def __init__(self, name: str, function: Callable[..., Any], options: CompileOptions) -> None:
        self._name = name
        self._function = function
        self._options = options

    def hold_functions(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether they hold functions: as arguments, or as leaves, as modules of Equinox do.

        Raises:
            InputError: they hold something else that is no array, or what cannot be hashed or may
                change where that is a constant of what is compiled.
        """
        numbers, names = self._static(len(args))
        static = {str(n): args[n] for n in sorted(numbers)}
        static |= {f"'{name}'": kwargs[name] for name in sorted(names & kwargs.keys())}
        for name, value in static.items():
            if not _is_hashable(value):
                raise InputError(
                    f"{self._name}: argument {name} is static, so it must be hashable, which "
                    f"{type(value).__name__} is not; pass a tuple, or a frozen dataclass"
                )
        dynamic = {n: value for n, value in enumerate(args) if n not in numbers}
        named = {name: value for name, value in kwargs.items() if name not in names}
        functions = False
        for path, leaf in jax.tree_util.tree_leaves_with_path((dynamic, named)):
            if _is_array(leaf):
                if getattr(getattr(leaf, "dtype", None), "kind", "") in tuple("OSUMm"):
                    raise InputError(self._wrong(path, f"an array of dtype {leaf.dtype}"))
            elif not callable(leaf):
                raise InputError(self._wrong(path, f"a value of type {type(leaf).__name__}"))
            elif _has_state(leaf):
                raise InputError(
                    f"{self._name}: {_place(path)} is a {type(leaf).__name__}, an object with "
                    "attributes that can be called: what is compiled would not see them change; "
                    "pass its arrays as arguments, register its class as a pytree, or make it a "
                    "frozen dataclass or a static argument if nothing of it changes"
                )
            elif not _is_hashable(leaf):
                raise InputError(
                    f"{self._name}: {_place(path)} is a function, which is a constant of what is "
                    f"compiled, so it must be hashable, which {type(leaf).__name__} is not; "
                    "pass a function or a frozen dataclass"
                )
            else:
                functions = True
        return functions

    def fixed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Static | None, tuple[Any, ...], dict[str, Any]]:
        """The same arguments with functions as constants.

        Args:
            args: positional ones.
            kwargs: the others.

        Returns:
            Which are static, among them all that are functions, or None if none is one; and the
            arguments, in which a :class:`Constant` holds each function in a tree. Static arguments
            are as they were.
        """
        numbers, names = self._static(len(args))
        functions = {n for n, value in enumerate(args) if _is_function(value)} - numbers
        named_functions = {name for name, value in kwargs.items() if _is_function(value)} - names
        numbers |= functions
        names |= named_functions
        positional = tuple(v if n in numbers else _fixed(v) for n, v in enumerate(args))
        named = {name: v if name in names else _fixed(v) for name, v in kwargs.items()}
        if not functions and not named_functions:
            return None, positional, named
        return Static(tuple(sorted(numbers)), tuple(sorted(names))), positional, named

    def _static(self, count: int) -> tuple[set[int], set[str]]:
        """Which of ``count`` positional arguments are static, and names of static arguments.

        As for ``jax.jit``, each follows from the other unless both options are given.
        """
        options = self._options
        numbers = {n % count for n in options.static_argnums if -count <= n < count}
        names = set(options.static_argnames)
        known = self._parameters
        if not options.static_argnames:
            names = {known[n] for n in options.static_argnums if -len(known) <= n < len(known)}
        elif not options.static_argnums:
            numbers = {n for n, name in enumerate(known[:count]) if name in names}
        return numbers, names

    @functools.cached_property
    def _parameters(self) -> list[str]:
        try:
            return list(inspect.signature(self._function).parameters)
        except (TypeError, ValueError):
            return []

    def _wrong(self, path: Any, what: str) -> str:
        return (
            f"{self._name}: {_place(path)} is {what}; expected arrays, numbers, and containers of "
            "them; make it static with static_argnames"
        )


def _place(path: Any) -> str:
    """``argument 1['a']``."""
    (_, (which, *rest)) = path[0], path[1:]
    name = f"argument {which.key}" if path[0].idx == 0 else f"argument '{which.key}'"
    return name + jax.tree_util.keystr(tuple(rest))


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (*_ARRAYS, *_NUMBERS)) or hasattr(leaf, "__jax_array__")


def _is_function(value: Any) -> bool:
    """Whether an argument is a function, and no tree that can be called."""
    return _is_constant(value) and jax.tree_util.treedef_is_leaf(jax.tree.structure(value))


def _is_constant(leaf: Any) -> bool:
    return callable(leaf) and not _is_array(leaf) and not _has_state(leaf)


def _has_state(value: Any) -> bool:
    """Whether what can be called is no function, and is equal to itself whatever it holds.

    Such an object (a model that is no tree, ``self`` of a compiled ``__call__``) must not become a
    constant unasked: results would be those of its former attributes.
    """
    hashed: Any = type(value).__hash__
    if hasattr(value, "__name__") or hashed is not object.__hash__:
        return False
    return bool(getattr(value, "__dict__", None) or getattr(type(value), "__slots__", None))


def _fixed(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: Constant(leaf) if _is_constant(leaf) else leaf, tree)
