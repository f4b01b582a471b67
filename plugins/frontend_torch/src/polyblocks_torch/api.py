"""The decorators: ``polyblocks_jit_torch`` and ``polymage_jit_torch``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any

import torch
from torch._dynamo.eval_frame import OptimizedModule

from polyblocks.errors import InputError
from polyblocks.options import CompileOptions, check_execution_backend, one_of_both
from polyblocks.registry.honoured_options import checked_options
from polyblocks_torch.backend import compile_frame
from polyblocks_torch.partitioning.plan import FRONTEND
from polyblocks_torch.report import FunctionReport
from polyblocks_torch.tracing import dynamo
from polyblocks_torch.tracing.module_methods import Methods

EXECUTION_BACKENDS = ("std", "inductor", "polyblocks")


def polyblocks_jit_torch(
    function: Any = None, *, compile_options: Mapping[str, Any] | None = None
) -> Any:
    """Compile a function, method, module or module class with PolyBlocks.

    Works as ``@polyblocks_jit_torch``, ``@polyblocks_jit_torch(compile_options={...})`` and at the
    call site, ``polyblocks_jit_torch(compile_options={...})(function)``. A module comes back as a
    module (PyTorch's ``OptimizedModule``) that shares its parameters. The function's report is
    ``function.polyblocks_report()``. Random draws come from PyTorch's generator and give the
    numbers of eager mode; they are listed in the report and are no fallback.

    Args:
        function: what to compile; None when used with parentheses.
        compile_options: see :class:`polyblocks.options.CompileOptions`.

    Raises:
        OptionError: an unknown option or a wrong value.
        TargetError: the target is unknown or not installed; says what to install.
        InputError: ``function`` cannot be called.
    """
    if isinstance(function, Mapping):
        # @polyblocks_jit_torch({'target': 'cpu'})
        if compile_options is not None:
            raise InputError("pass the options once: polyblocks_jit_torch(compile_options={...})")
        return polyblocks_jit_torch(compile_options=function)
    options = checked_options(compile_options, FRONTEND)
    if function is None:
        return functools.partial(_compile, options=options)
    return _compile(function, options)


def polymage_jit_torch(
    function: Any = None,
    *,
    execution_backend: str = "polyblocks",
    compile_options: Mapping[str, Any] | None = None,
    runtime_args: Mapping[str, Any] | None = None,
) -> Any:
    """The same, with a choice of who executes, for comparison.

    Args:
        function: what to run; None when used with parentheses.
        execution_backend: ``std`` (PyTorch as it is), ``inductor`` or ``polyblocks``.
        compile_options: options for ``polyblocks``; checked for the others too.
        runtime_args: another name of ``compile_options``.

    Raises:
        OptionError: an unknown backend or option, or options given under both names.
    """
    check_execution_backend(execution_backend, EXECUTION_BACKENDS)
    given = one_of_both(compile_options, runtime_args)
    if execution_backend == "polyblocks":
        return polyblocks_jit_torch(function, compile_options=given)
    CompileOptions.from_dict(given)
    wrap: Callable[[Any], Any] = lambda f: f  # noqa: E731
    if execution_backend == "inductor":
        wrap = torch.compile
    return wrap if function is None else wrap(function)


@torch.compiler.disable
def _compile(function: Any, options: CompileOptions) -> Any:
    if not callable(function):
        raise InputError(
            f"polyblocks_jit_torch takes a function or module, not {type(function).__name__}"
        )
    name = getattr(function, "__name__", type(function).__name__)
    report = FunctionReport(name, options.target)
    backend = functools.partial(compile_frame, options=options, report=report)
    functools.update_wrapper(backend, compile_frame)
    compile_ = lambda f: dynamo.optimize(  # noqa: E731
        backend, strict=options.strict_target, report=report
    )(f)
    wrapped = compile_(function)

    if isinstance(wrapped, OptimizedModule):
        methods = Methods(function, compile_, report, options.strict_target)
        # Dynamo makes the object; a plain setattr on it goes to the module inside.
        object.__setattr__(wrapped, "__class__", CompiledModule)
        object.__setattr__(wrapped, "_polyblocks", (options, report, methods))
    elif isinstance(wrapped, type):
        wrapped.polyblocks_report = staticmethod(lambda: report)  # type: ignore[attr-defined]
    else:
        wrapped.polyblocks_report = lambda: report
    return wrapped


class CompiledModule(OptimizedModule):
    """A compiled ``nn.Module``; shares parameters, buffers and attributes with the original.

    A copy, also one through pickle, is compiled on its own with the same options.
    """

    _polyblocks: tuple[CompileOptions, FunctionReport, Methods]

    def polyblocks_report(self) -> FunctionReport:
        """The report of this module's variants and fallbacks so far."""
        return self._polyblocks[1]

    @property
    def polyblocks_original(self) -> Any:
        """The module that was compiled."""
        return self._orig_mod

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if isinstance(value, MethodType) and value.__self__ is self._orig_mod:
            return self._polyblocks[2].bound(value)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return _compile, (self._orig_mod, self._polyblocks[0])
