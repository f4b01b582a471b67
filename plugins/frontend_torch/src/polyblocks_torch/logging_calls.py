"""Calls that only say something: they end no graph, and are made when the graph has run.

So are ``print``, ``warnings.warn`` and the methods of loggers, in the order of the program, where
they are given constants: strings, numbers, shapes. Dynamo has this for functions, of which it drops
the keyword arguments, and all calls of functions that are inlined; not for loggers. What is given
tensors, which may change before the graph has run, ends the graph.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch._dynamo.exc import unimplemented
from torch._dynamo.source import AttrSource
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.misc import DebuggingVariable, LoggingLoggerVariable

from polyblocks_torch.traced_modules import is_tracing

#: Functions that Dynamo is told of.
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


def _later(tx: Any, called: Any, args: Any, kwargs: Any) -> Any:
    constants = all(
        value.is_python_constant() and _stays(value.as_python_constant()) for value in args
    )
    if kwargs or not constants:
        unimplemented(
            gb_type="call that says something of a tensor or a list, or with keywords",
            context=f"{called.value}",
            explanation="it is made when the graph has run, where constants alone are the same",
            hints=["Pass constants by position, or call it outside of the compiled function."],
        )
    # Of the frame that is compiled: calls of inlined ones would be lost.
    tx.output.root_tx.debug_locals.append((called, list(args)))
    return ConstantVariable.create(None)


DebuggingVariable.call_function = _function  # type: ignore[method-assign]
LoggingLoggerVariable.call_method = _method  # type: ignore[method-assign]
