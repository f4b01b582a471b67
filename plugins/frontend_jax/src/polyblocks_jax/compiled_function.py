"""A compiled function: what the decorator returns."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from sys import modules
from typing import Any

import jax

from polyblocks.errors import InputError
from polyblocks.frontends.function_report import FunctionReport
from polyblocks.options import CompileOptions
from polyblocks_jax.arguments import Arguments, Static
from polyblocks_jax.compat import with_misses, without_cache
from polyblocks_jax.compiler import Site
from polyblocks_jax.jaxprs.parts import FRONTEND
from polyblocks_jax.trace import traced
from polyblocks_jax.transforms.donation import Donation
from polyblocks_jax.transforms.experimental import SPARSE_MODULE, add_sparse_rule

#: Exceptions of ``jax.jit`` where an argument is no array. It traces a module of Flax, which has a
#: ``dtype``, as if it were one, and then attributes are missing.
_WRONG_ARGUMENTS = (TypeError, ValueError, AttributeError)


class CompiledFunction:
    """A function that is traced and compiled when it meets arguments of a new kind.

    ``jax.jit`` does the rest: it tells kinds of arguments apart, and dispatches the calls.

    Attributes:
        polyblocks_original: the function that was compiled.
    """

    # A call goes to what is stored in the slot, without a frame of Python's in between.
    __slots__ = ("__call__", "__dict__", "__weakref__")

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
        self._arguments = Arguments(name, function, options)
        self._donation = Donation.of(function, donate_argnums, donate_argnames)
        self._traced = traced(function, self._site, self._donation)
        self._jitted = jax.jit(
            self._traced,
            static_argnums=options.static_argnums or None,
            static_argnames=options.static_argnames or None,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
        )
        self.__call__ = with_misses(self._jitted, self._call_anew)
        if options.static_argnums or options.static_argnames:
            self.__call__ = self._with_static(self.__call__)
        self._meets_functions = False
        #: For arguments that are functions: which are static then -> the function jitted.
        self._with_functions: dict[Static, Any] = {}

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        """Pickled by its name, as functions are."""
        return self.__qualname__

    def polyblocks_report(self) -> FunctionReport:
        """The report of this function's variants and fallbacks so far."""
        return self._site.report

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """``lower`` of ``jax.jit``: the computation that XLA gets, which calls our programs.

        Arguments that are functions are static: ``f.lower(function, x).compile()`` is called
        without them.
        """
        return self._staged("lower", args, kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """``trace`` of ``jax.jit``: the jaxpr, whose only equation of ours calls this function.

        Arguments that are functions are static.
        """
        return self._staged("trace", args, kwargs)

    def clear_cache(self) -> None:
        """Forget all variants, as ``clear_cache`` of ``jax.jit``."""
        for jitted in (self._jitted, *self._with_functions.values()):
            jitted.clear_cache()
        self._with_functions.clear()

    def _call_anew(
        self, inner: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call that JAX's cache does not know; see :func:`polyblocks_jax.compat.with_misses`."""
        if SPARSE_MODULE in modules:
            add_sparse_rule()
        if not self._meets_functions:
            try:
                return inner(*args, **kwargs)
            except _WRONG_ARGUMENTS:
                if not self._arguments.hold_functions(args, kwargs):
                    raise
            self._meets_functions = True
        jitted, given, named = self._fixed(args, kwargs)
        try:
            if jitted is self._jitted:
                return inner(*given, **named)
            return without_cache(jitted(*given, **named))
        except _WRONG_ARGUMENTS:
            self._arguments.hold_functions(args, kwargs)
            raise

    def _with_static(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """``call``, and an error that says which static argument cannot be hashed.

        JAX hashes them before it calls anything of ours.
        """

        def hashed(*args: Any, **kwargs: Any) -> Any:
            try:
                return call(*args, **kwargs) if kwargs else call(*args)
            except ValueError:
                self._arguments.hold_functions(args, kwargs)
                raise

        return hashed

    def _staged(self, stage: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return getattr(self._jitted, stage)(*args, **kwargs)
        except _WRONG_ARGUMENTS:
            if not self._arguments.hold_functions(args, kwargs):
                raise
        jitted, args, kwargs = self._fixed(args, kwargs)
        return getattr(jitted, stage)(*args, **kwargs)

    def _fixed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The function to call where arguments hold functions, and its arguments."""
        static, args, kwargs = self._arguments.fixed(args, kwargs)
        if static is None:
            return self._jitted, args, kwargs
        jitted = self._with_functions.get(static)
        if jitted is None:
            numbers, names = self._donation.without_static(static.numbers, static.names)
            jitted = jax.jit(
                self._traced,
                static_argnums=static.numbers,
                static_argnames=static.names,
                donate_argnums=numbers or None,
                donate_argnames=names or None,
            )
            self._with_functions[static] = jitted
        return jitted, args, kwargs
