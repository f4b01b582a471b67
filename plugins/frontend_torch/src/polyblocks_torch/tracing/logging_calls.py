"""Calls that only say something: they end no graph, and are made when the graph has run.

So are ``print``, ``warnings.warn`` and the methods of loggers, in the order of the program, where
they are given constants (strings, numbers, shapes) and tensors, which the graph copies.
Dynamo has this for functions, but drops their keyword arguments, and all calls of inlined
functions; not for loggers. Arguments that may change before the graph has run end it, and so does a
tensor with gradients: how it is written names the function that made it.
"""

from __future__ import annotations

import functools
import inspect
import logging
import warnings
from typing import Any

import torch
from torch._C._dynamo.eval_frame import _FrameAction as FrameAction
from torch._C._dynamo.eval_frame import _FrameExecStrategy as FrameExecStrategy
from torch._C._dynamo.eval_frame import set_code_exec_strategy
from torch._dynamo.exc import unimplemented
from torch._dynamo.source import AttrSource, GlobalSource
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.misc import DebuggingVariable, LoggingLoggerVariable
from torch._dynamo.variables.tensor import TensorVariable

from polyblocks_torch.tracing.traced_modules import is_tracing

#: Functions that are registered with Dynamo.
FUNCTIONS = frozenset({print, warnings.warn})

#: Methods of loggers that give nothing back. The last is Hugging Face's.
_METHODS = frozenset(
    {"debug", "info", "warning", "warn", "error", "critical", "log", "warning_once"}
)

_theirs_function = DebuggingVariable.call_function
_theirs_method = LoggingLoggerVariable.call_method


def _function(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
    if not is_tracing():
        return _theirs_function(self, tx, args, kwargs)
    return _later(tx, self, args, kwargs)


def _method(self: Any, tx: Any, name: str, args: Any, kwargs: Any) -> Any:
    if not is_tracing() or name not in _METHODS or self.source is None:
        return _theirs_method(self, tx, name, args, kwargs)
    called = DebuggingVariable(getattr(self.value, name), source=AttrSource(self.source, name))
    return _later(tx, called, args, kwargs)


def _stays(value: Any) -> bool:
    """Whether a constant is the same when the graph has run: a list may have grown."""
    if isinstance(value, tuple):
        return all(map(_stays, value))
    kinds = (bool, int, float, complex, str, bytes, torch.dtype, torch.device)
    return value is None or isinstance(value, kinds)


def _is_constant(value: Any) -> bool:
    return bool(value.is_python_constant() and _stays(value.as_python_constant()))


def _is_copied(value: Any) -> bool:
    """Whether a tensor's copy is written as the tensor is: one of a graph of gradients names it."""
    return isinstance(value, TensorVariable) and not value.requires_grad


def _bound(value: Any) -> Any:
    """A keyword's value as it is now.

    Raises:
        _Changes: it is no constant.
    """
    if isinstance(value, ConstDictVariable):
        items = value.items.items()
        return {key.vt.as_python_constant(): _bound(item.realize()) for key, item in items}
    if not _is_constant(value):
        raise _Changes
    return value.as_python_constant()


class _Changes(Exception):
    """An argument of a call may change before the call can be made."""


def _later(tx: Any, called: Any, args: Any, kwargs: Any) -> Any:
    args = [value.realize() for value in args]
    try:
        keywords = {name: _bound(value.realize()) for name, value in kwargs.items()}
        if not all(_is_constant(value) or _is_copied(value) for value in args):
            raise _Changes
    except _Changes:
        unimplemented(
            gb_type=f"call of {_name(called.value)} with what may change",
            context=f"{called.value}",
            explanation="it is made when the graph has run, where constants and tensors without "
            "gradients alone are the same",
            hints=["Pass constants or detached tensors, or call it outside of the function."],
        )
    given = [value if _is_constant(value) else _copy(tx, value) for value in args]
    if keywords:
        # Dynamo's calls have none. A partial is no frame of Python's, which loggers count.
        function = functools.partial(called.value, **keywords)
        name = tx.output.install_global("__polyblocks_says", function)
        called = DebuggingVariable(function, source=GlobalSource(name))
    _leave(called.value)
    # Of the frame that is compiled: calls of inlined ones would be lost.
    tx.output.root_tx.debug_locals.append((called, given))
    return ConstantVariable.create(None)


def _leave(function: Any) -> None:
    """Let Dynamo not look at what the compiled code calls, nor at what that calls."""
    inner = inspect.unwrap(getattr(function, "func", function))
    code = getattr(inner, "__code__", None)
    if code is not None:
        set_code_exec_strategy(code, FrameExecStrategy(FrameAction.SKIP, FrameAction.SKIP))


def _copy(tx: Any, value: Any) -> Any:
    """A tensor as it is now: the graph may update it."""
    return value.call_method(tx, "clone", [], {})


def _name(function: Any) -> str:
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", str(function))
    return f"Logger.{name}" if isinstance(owner, logging.Logger) else name


DebuggingVariable.call_function = _function  # type: ignore[method-assign]
LoggingLoggerVariable.call_method = _method  # type: ignore[method-assign]
