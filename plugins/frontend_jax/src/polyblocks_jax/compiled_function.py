"""A compiled function: what the decorator returns."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from polyblocks.errors import InputError
from polyblocks.frontends.function_report import FunctionReport
from polyblocks.options import CompileOptions
from polyblocks_jax.compiler import Site
from polyblocks_jax.donation import Donation
from polyblocks_jax.parts import FRONTEND
from polyblocks_jax.trace import traced

#: What JAX takes as a leaf of an argument.
_LEAVES = (jax.Array, jax.Ref, np.ndarray, np.generic, bool, int, float, complex)


class CompiledFunction:
    """A function that is traced and compiled when it meets arguments of a new kind.

    ``jax.jit`` does the rest: it tells kinds of arguments apart, and dispatches the calls.

    Attributes:
        polyblocks_original: the function that was compiled.
    """

    #: That of the function, as ``__name__`` and others are.
    __qualname__: str

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        options: CompileOptions,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Iterable[str] | None = None,
    ) -> None:
        if not callable(function):
            raise InputError(f"polyblocks_jit_jax takes a function, not {type(function).__name__}")
        if isinstance(function, type):
            raise InputError(
                f"polyblocks_jit_jax takes a function, not the class {function.__name__}; compile "
                "one of its methods, or a function of its parameters"
            )
        functools.update_wrapper(self, function, updated=())
        self.polyblocks_original = function
        name = getattr(function, "__name__", type(function).__name__)
        self._site = Site(name, options, FunctionReport(name, options.target, "JAX", FRONTEND))
        self._donation = Donation.of(function, donate_argnums, donate_argnames)
        self._jitted = jax.jit(
            traced(function, self._site, self._donation),
            static_argnums=options.static_argnums or None,
            static_argnames=options.static_argnames or None,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
        )
        #: For arguments that hold functions: the functions and where they are -> the rest jitted.
        self._with_functions: dict[Any, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._with_functions:
            return self._call_with_functions(args, kwargs)
        try:
            return self._jitted(*args, **kwargs)
        except (TypeError, ValueError):
            if not self._holds_functions(args, kwargs):
                raise
        return self._call_with_functions(args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        """Pickled by its name, as functions are."""
        return self.__qualname__

    def polyblocks_report(self) -> FunctionReport:
        """What became of this function so far."""
        return self._site.report

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """``lower`` of ``jax.jit``: the computation that XLA gets, which calls our programs."""
        return self._jitted.lower(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """``trace`` of ``jax.jit``: the jaxpr, whose only equation of ours calls this function."""
        return self._jitted.trace(*args, **kwargs)

    def clear_cache(self) -> None:
        """Forget all variants, as ``clear_cache`` of ``jax.jit``."""
        self._jitted.clear_cache()  # type: ignore[attr-defined] # not in JAX's stubs
        self._with_functions.clear()

    def _holds_functions(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the arguments hold functions as leaves, as modules of Equinox do.

        Raises:
            InputError: they hold something else that is no array.
        """
        numbers, names = self._static(len(args))
        static = {str(n): args[n] for n in sorted(numbers)}
        static |= {f"'{name}'": kwargs[name] for name in sorted(names & kwargs.keys())}
        for name, value in static.items():
            try:
                hash(value)
            except TypeError:
                raise InputError(
                    f"{self._site.name}: argument {name} is static, so it must be hashable, which "
                    f"{type(value).__name__} is not; pass a tuple, or a frozen dataclass"
                ) from None
        dynamic = {n: value for n, value in enumerate(args) if n not in numbers}
        named = {name: value for name, value in kwargs.items() if name not in names}
        functions = False
        for path, leaf in jax.tree_util.tree_leaves_with_path((dynamic, named)):
            if isinstance(leaf, _LEAVES) or hasattr(leaf, "__jax_array__"):
                if getattr(getattr(leaf, "dtype", None), "kind", "") in tuple("OSUMm"):
                    raise InputError(self._wrong(path, f"an array of dtype {leaf.dtype}"))
            elif callable(leaf):
                functions = True
            else:
                raise InputError(self._wrong(path, f"a value of type {type(leaf).__name__}"))
        return functions

    def _static(self, count: int) -> tuple[set[int], set[str]]:
        """Which of ``count`` positional arguments are static, and names of static arguments.

        As for ``jax.jit``, each follows from the other unless both options are given.
        """
        options = self._site.options
        numbers = {n % count for n in options.static_argnums if -count <= n < count}
        names = set(options.static_argnames)
        try:
            known = list(inspect.signature(self.polyblocks_original).parameters)
        except (TypeError, ValueError):
            known = []
        if not options.static_argnames:
            names = {known[n] for n in options.static_argnums if -len(known) <= n < len(known)}
        elif not options.static_argnums:
            numbers = {n for n, name in enumerate(known[:count]) if name in names}
        return numbers, names

    def _wrong(self, path: Any, what: str) -> str:
        (_, (which, *rest)) = path[0], path[1:]
        name = f"argument {which.key}" if path[0].idx == 0 else f"argument '{which.key}'"
        return (
            f"{self._site.name}: {name}{jax.tree_util.keystr(tuple(rest))} is {what}; expected "
            "arrays, numbers, and containers of them; make it static with static_argnames"
        )

    def _call_with_functions(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        numbers, names = self._static(len(args))
        paths, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
        leaves = [leaf for _, leaf in paths]
        fixed = tuple(
            (i, leaf)
            for i, ((_, which, *_), leaf) in enumerate(paths)
            if getattr(which, "idx", None) in numbers
            or getattr(which, "key", None) in names
            or not (isinstance(leaf, _LEAVES) or hasattr(leaf, "__jax_array__"))
        )
        # 1, 1.0 and True are equal, but what is computed with them is not.
        key = tree, fixed, tuple(type(leaf) for _, leaf in fixed)
        places = {i for i, _ in fixed}
        passed = [i for i in range(len(leaves)) if i not in places]
        jitted = self._with_functions.get(key)
        if jitted is None:
            given_up = set(self._donation.among([path for path, _ in paths]))
            donated = [number for number, i in enumerate(passed) if i in given_up]
            donation = Donation(frozenset(donated), frozenset())
            inserting = _Inserting(self.polyblocks_original, tree, fixed)
            jitted = jax.jit(
                traced(inserting, self._site, donation), donate_argnums=tuple(donated) or None
            )
            self._with_functions[key] = jitted
        return jitted(*(leaves[i] for i in passed))


class _Inserting:
    """A function of the leaves that are arrays, others being given."""

    def __init__(self, function: Callable[..., Any], tree: Any, fixed: tuple[Any, ...]) -> None:
        self._function = function
        self._tree = tree
        self._fixed = fixed

    def __call__(self, *arrays: Any) -> Any:
        leaves = list(arrays)
        for index, leaf in self._fixed:  # in ascending order
            leaves.insert(index, leaf)
        args, kwargs = jax.tree.unflatten(self._tree, leaves)
        return self._function(*args, **kwargs)
