"""The decorators: ``polyblocks_jit_jax`` and ``polymage_jit_jax``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax

from polyblocks.errors import InputError
from polyblocks.options import CompileOptions, check_execution_backend, one_of_both
from polyblocks.registry.honoured_options import checked_options
from polyblocks_jax.compiled_function import CompiledFunction
from polyblocks_jax.jaxprs.parts import FRONTEND

EXECUTION_BACKENDS = ("std", "xla", "polyblocks")


def polyblocks_jit_jax(
    function: Any = None,
    *,
    compile_options: Mapping[str, Any] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
) -> Any:
    """Compile a function or method with PolyBlocks.

    Works as ``@polyblocks_jit_jax``, ``@polyblocks_jit_jax(compile_options={...})`` and at the call
    site, ``polyblocks_jit_jax(compile_options={...})(function)``. It is traced as by ``jax.jit``,
    once per tree structure, shapes, dtypes, weak types and static arguments, and composes with
    JAX's transformations: ``jax.grad``, ``jax.vmap`` and others of it are compiled too. Its report
    is ``function.polyblocks_report()``.

    Args:
        function: what to compile; None when used with parentheses.
        compile_options: see :class:`polyblocks.options.CompileOptions`; ``static_argnums`` and
            ``static_argnames`` are positions and names of arguments that are compile-time
            constants, as in ``jax.jit``.
        donate_argnums: as in ``jax.jit``: arguments whose memory may be used for results.
        donate_argnames: the same, by name.

    Raises:
        OptionError: an unknown option or a wrong value.
        TargetError: the target is unknown or not installed; says what to install.
        InputError: ``function`` cannot be called.
    """
    if isinstance(function, Mapping):
        # @polyblocks_jit_jax({'target': 'cpu'})
        if compile_options is not None:
            raise InputError("pass the options once: polyblocks_jit_jax(compile_options={...})")
        function, compile_options = None, function
    options = checked_options(compile_options, FRONTEND)
    make = functools.partial(
        CompiledFunction,
        options=options,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
    )
    return make if function is None else make(function)


def polymage_jit_jax(
    function: Any = None,
    *,
    execution_backend: str = "polyblocks",
    compile_options: Mapping[str, Any] | None = None,
    runtime_args: Mapping[str, Any] | None = None,
) -> Any:
    """The same, with a choice of who executes, for comparison.

    Args:
        function: what to run; None when used with parentheses.
        execution_backend: ``std`` (JAX operation by operation), ``xla`` (``jax.jit``) or
            ``polyblocks``.
        compile_options: options for ``polyblocks``; checked for the others too.
            ``static_argnums`` and ``static_argnames`` hold for ``xla`` as well.
        runtime_args: another name of ``compile_options``.

    Raises:
        OptionError: an unknown backend or option, or options given under both names.
    """
    check_execution_backend(execution_backend, EXECUTION_BACKENDS)
    given = one_of_both(compile_options, runtime_args)
    if execution_backend == "polyblocks":
        return polyblocks_jit_jax(function, compile_options=given)
    options = CompileOptions.from_dict(given)
    wrap: Callable[[Any], Any] = lambda f: f  # noqa: E731
    if execution_backend == "xla":
        wrap = functools.partial(
            jax.jit,
            static_argnums=options.static_argnums or None,
            static_argnames=options.static_argnames or None,
        )
    return wrap if function is None else wrap(function)
