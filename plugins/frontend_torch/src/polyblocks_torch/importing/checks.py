"""Checks of data: the program fails, with a message, where a truth value of it is false.

In a graph a check is ``aten._assert_async.msg``, an operation without a result. Decompositions add
checks that eager mode's kernels make, and what Python asserts of numbers of the program becomes one
(:mod:`polyblocks_torch.arguments.number_arguments`). In the program a check is a ``cf.assert``.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, fx

from polyblocks.errors import ExecutionError

aten = torch.ops.aten

#: ``(holds, message)``: one truth value, whatever its type.
CHECK = aten._assert_async.msg
# PyTorch knows that this one has an effect, and forgets these.
fx.node.has_side_effect(aten._assert_async.default)
fx.node.has_side_effect(aten._linalg_check_errors.default)

#: Checks of numbers, which are known where a graph is captured, or are made checks of data.
STATIC_CHECKS = (
    aten._assert_scalar.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
)


def require(holds: Tensor, message: str, kind: type[Exception] = RuntimeError) -> None:
    """Add a check to what is recorded.

    Args:
        holds: booleans of any shape; the program fails unless all are true.
        message: what eager mode says.
        kind: what eager mode raises.
    """
    if holds.numel():
        CHECK(holds.all() if holds.dim() else holds, described(message, kind))


def described(message: str, kind: type[Exception]) -> str:
    """A message that says what is raised, too."""
    return message if kind is RuntimeError else f"{kind.__name__}: {message}"


def message_of(value: Tensor) -> str:
    """PyTorch's message of a check without one."""
    kind = "complex " if value.is_complex() else ""
    return f"Expected Tensor with single nonzero value, but got {kind}zero"


def overflow_message(dtype: torch.dtype) -> str:
    """PyTorch's message of an integer that a type does not hold."""
    name = "int" if dtype is torch.int32 else f"{str(dtype).removeprefix('torch.')}_t"
    return f"value cannot be converted to type {name} without overflow"


def fail(like: Tensor, message: str, kind: type[Exception] = RuntimeError) -> None:
    """Add a check that never holds: of what eager mode refuses, and tracing does not.

    Args:
        like: a tensor of the device.
    """
    require(torch.zeros((), dtype=torch.bool, device=like.device), message, kind)


def has_checks(graph: fx.Graph) -> bool:
    """Whether a graph does something besides giving its results."""
    return bool(graph.find_nodes(op="call_function", target=CHECK, sort=False))


#: Prefix of a message -> the exception that is raised.
_NAMED: dict[str, Any] = {
    kind.__name__: kind
    for kind in (AssertionError, IndexError, TypeError, ValueError, torch.linalg.LinAlgError)
}


def failure(message: str) -> ExecutionError:
    """The error of a failed check: also of the type that its message names, or is about."""
    name, separator, text = message.partition(": ")
    if separator and name in _NAMED:
        return _error_type(_NAMED[name])(text)
    return (_error_type(IndexError) if "index" in message.lower() else ExecutionError)(message)


@functools.cache
def _error_type(kind: Any) -> type[ExecutionError]:
    return type("CheckFailed", (ExecutionError, kind), {"__doc__": "A check of a program failed."})
