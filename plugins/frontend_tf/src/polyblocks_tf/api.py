"""The decorators: ``polyblocks_jit_tf`` and ``polymage_jit_tf``."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

from polyblocks.errors import InputError
from polyblocks.options import CompileOptions, check_execution_backend, one_of_both
from polyblocks.registry.honoured_options import checked_options
from polyblocks_tf.compiler import FRONTEND
from polyblocks_tf.function import CompiledFunction
from polyblocks_tf.models.compiled_layer import CompiledKerasLayer, is_keras_layer
from polyblocks_tf.models.compiled_model import CompiledModel, is_keras_model
from polyblocks_tf.tracing.loaded import is_loaded

EXECUTION_BACKENDS = ("std", "xla", "polyblocks")


def polyblocks_jit_tf(
    function: Any = None,
    *,
    input_signature: Sequence[Any] | None = None,
    compile_options: Mapping[str, Any] | None = None,
) -> Any:
    """Compile a Python function, a ``tf.function`` or a Keras model with PolyBlocks.

    Works as ``@polyblocks_jit_tf``, ``@polyblocks_jit_tf(compile_options={...})`` and at the call
    site, ``polyblocks_jit_tf(compile_options={...})(function)``. Arguments are NumPy arrays or
    tensors, in structures of lists, tuples and dictionaries; results are tensors. Variables that
    the function uses are read and assigned in place. The function's report is
    ``function.polyblocks_report()``.

    Args:
        function: what to compile; None when used with parentheses.
        input_signature: a ``tf.TensorSpec`` per argument, as in ``tf.function``: arguments are
            converted to these dtypes, and others are refused. Without it each new shape or dtype
            is compiled once. A None in a shape is compiled once per size.
        compile_options: see :class:`polyblocks.options.CompileOptions`.

    Raises:
        OptionError: an unknown option or a wrong value.
        TargetError: the target is unknown or not installed; says what to install.
        InputError: ``function`` cannot be compiled: a class, or nothing that can be called.
    """
    if isinstance(function, Mapping):
        # @polyblocks_jit_tf({'target': 'cpu'})
        if compile_options is not None:
            raise InputError("pass the options once: polyblocks_jit_tf(compile_options={...})")
        return polyblocks_jit_tf(input_signature=input_signature, compile_options=function)
    options = checked_options(compile_options, FRONTEND)
    _check_signature(input_signature)
    if function is None:
        return functools.partial(_compile, options=options, input_signature=input_signature)
    return _compile(function, options, input_signature)


def polymage_jit_tf(
    function: Any = None,
    *,
    execution_backend: str = "polyblocks",
    input_signature: Sequence[Any] | None = None,
    compile_options: Mapping[str, Any] | None = None,
    runtime_args: Mapping[str, Any] | None = None,
) -> Any:
    """The same, with a choice of who executes, for comparison.

    Args:
        function: what to run; None when used with parentheses.
        execution_backend: ``std`` (a plain ``tf.function``), ``xla`` or ``polyblocks``.
        input_signature: see :func:`polyblocks_jit_tf`.
        compile_options: options for ``polyblocks``; checked for the others too.
        runtime_args: another name of ``compile_options``.

    Raises:
        OptionError: an unknown backend or option, or options given under both names.
    """
    check_execution_backend(execution_backend, EXECUTION_BACKENDS)
    given = one_of_both(compile_options, runtime_args)
    if execution_backend == "polyblocks":
        return polyblocks_jit_tf(function, input_signature=input_signature, compile_options=given)
    CompileOptions.from_dict(given)
    _check_signature(input_signature)

    def wrap(f: Any) -> Any:
        plain = f.python_function if isinstance(f, Function) else f
        xla = True if execution_backend == "xla" else None
        return tf.function(plain, input_signature=input_signature, jit_compile=xla)

    return wrap if function is None else wrap(function)


def _check_signature(input_signature: Any) -> None:
    if input_signature is None:
        return
    if not isinstance(input_signature, (list, tuple)):
        raise InputError(
            f"input_signature must be a list of tf.TensorSpec, not {type(input_signature).__name__}"
        )
    for spec in tf.nest.flatten(list(input_signature)):
        if not isinstance(spec, tf.TensorSpec):
            raise InputError(
                f"input_signature must hold tf.TensorSpec, not {type(spec).__name__}: "
                "write tf.TensorSpec(shape, dtype)"
            )


def _compile(
    function: Any, options: CompileOptions, input_signature: Sequence[Any] | None = None
) -> CompiledFunction:
    if isinstance(function, type) or not callable(function):
        what = "a class" if isinstance(function, type) else type(function).__name__
        raise InputError(
            f"polyblocks_jit_tf takes a function, a tf.function or a model, not {what}"
        )
    if isinstance(function, CompiledFunction):
        function = function.polyblocks_original
    if isinstance(function, Function):
        signature = input_signature if input_signature is not None else function.input_signature
        autograph = bool(getattr(function, "_autograph", True))
        traced = function if is_loaded(function) else function.python_function
        return CompiledFunction(function, traced, options, signature, autograph)
    made: type[CompiledFunction] = CompiledFunction
    if is_keras_layer(function):
        made = CompiledModel if is_keras_model(function) else CompiledKerasLayer
    return made(function, function, options, input_signature, True)
