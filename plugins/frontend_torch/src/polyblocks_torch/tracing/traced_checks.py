"""Checks of data in Python code, as Dynamo traces them: each becomes a check of the graph.

Dynamo takes an ``assert`` on a tensor into the graph, but forgets that it raises an AssertionError;
``torch._assert`` on a tensor it cannot trace, and where a graph may break, ``_check_tensor_all``
breaks it. Functions of :mod:`polyblocks_torch.tracing.traced_functions` stand for PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo import symbolic_convert
from torch._dynamo.exc import Unsupported
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

from polyblocks_torch.importing.checks import described
from polyblocks_torch.tracing.traced_functions import instead_of

_normalized_assert = symbolic_convert._detect_and_normalize_assert_statement
_called = TorchInGraphFunctionVariable.call_function

#: Eager mode's message of a check without one.
_NO_MESSAGE = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please "
    "report an enhancement request to PyTorch.)"
)


def install(is_active: Callable[[], bool]) -> None:
    """Let Dynamo trace checks as said above, whenever ``is_active`` says so."""

    def normalized_assert(self: Any, truth_fn: Any, push: bool) -> bool:
        found = _normalized_assert(self, truth_fn, push)
        if found and is_active():
            message = self.pop().as_python_constant()
            self.push(VariableTracker.build(self, described(message, AssertionError)))
        return found

    def called(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        traced = instead_of(self.value, kwargs) if is_active() else None
        if traced is not None:
            return VariableTracker.build(tx, traced).call_function(tx, args, kwargs)
        if is_active() and self.value in _READERS and not kwargs:
            given = _READERS[self.value](*args)
            if given is not None:
                holds, message = given
                check = VariableTracker.build(tx, torch._assert_async)
                return check.call_function(tx, [holds(tx), VariableTracker.build(tx, message)], {})
        return _called(self, tx, args, kwargs)

    symbolic_convert._detect_and_normalize_assert_statement = normalized_assert
    TorchInGraphFunctionVariable.call_function = called  # type: ignore[method-assign]


#: From the arguments of a function to what makes the condition, and the message; None where the
#: function is traced as ever.
_Given = tuple[Callable[[Any], Any], str] | None


def _assert(condition: Any, message: Any) -> _Given:
    if not condition.is_tensor() or not message.is_python_constant():
        return None
    text = str(message.as_python_constant())
    return lambda tx: condition, described(text, AssertionError)


def _check_tensor_all_with(kind: Any, condition: Any, message: Any = None) -> _Given:
    return _all_of(kind.as_python_constant(), condition, message)


def _check_tensor_all(condition: Any, message: Any = None) -> _Given:
    return _all_of(RuntimeError, condition, message)


def _all_of(kind: type[Exception], condition: Any, message: Any) -> _Given:
    if not condition.is_tensor() or condition.dtype is not torch.bool:
        return None
    text = _NO_MESSAGE
    if message is not None and not message.is_constant_none():
        try:
            text = str(message.get_function()())
        except (AttributeError, NotImplementedError, Unsupported):
            return None
    return lambda tx: condition.call_method(tx, "all", [], {}), described(text, kind)


_READERS: dict[Any, Callable[..., _Given]] = {
    torch._assert: _assert,
    torch._check_tensor_all: _check_tensor_all,
    torch._check_tensor_all_with: _check_tensor_all_with,
}
