"""``torch.bincount`` of a result of ``minlength`` elements, which the program checks.

Its result is as long as the largest value asks for, at least ``minlength``. Where nothing may be
left to Python (``strict_target``), Dynamo traces it as a sum at run-time indices into ``minlength``
elements, and a value beyond them is an error when the program runs. Elsewhere it ends the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch._dynamo.exc import unimplemented
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.tensor import TensorVariable
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

from polyblocks_torch.tracing.traced_modules import trace_method

_active: ContextVar[bool] = ContextVar("polyblocks_counts_of_length", default=False)

#: dtypes that eager mode counts.
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@contextmanager
def counts_of_length(wanted: bool) -> Iterator[None]:
    """Whether Dynamo traces ``bincount`` as said above, in the block."""
    token = _active.set(wanted)
    try:
        yield
    finally:
        _active.reset(token)


def _counted(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """The counts of a vector's values, or the sums of their weights: ``minlength`` elements.

    Summed in the order of the values: in int64 without weights, in float32 with weights of that
    type, else in float64, as in eager mode.
    """
    if x.shape[0] == 0:
        return torch.zeros(minlength, dtype=torch.int64, device=x.device)
    index = x.to(torch.int64)
    torch._assert_async(
        (index >= 0).all(), "bincount only supports 1-d non-negative integral inputs."
    )
    torch._assert_async(
        (index < minlength).all(),
        f"bincount: expected values below minlength={minlength}, got a larger one, which makes the "
        "result longer than the compiled program's; pass a larger minlength, or leave "
        "strict_target off",
    )
    if weights is None:
        parts = torch.ones_like(index)
    else:
        kept = weights.dtype in (torch.float32, torch.float64)
        # No gradient goes through it in eager mode either.
        parts = weights.detach().to(weights.dtype if kept else torch.float64)
    return torch.zeros(minlength, dtype=parts.dtype, device=x.device).index_add(0, index, parts)


def _traced(tx: Any, args: Any, kwargs: Any) -> Any:
    """A call of ``bincount`` as Dynamo traces it; None where it is traced as ever."""
    given = dict(zip(("input", "weights", "minlength"), args, strict=False)) | kwargs
    x = given.pop("input", None)
    if not _active.get() or not isinstance(x, TensorVariable):
        return None
    if x.ndim != 1 or x.dtype not in _INTEGERS:
        return None  # a mistake
    length = given.get("minlength")
    if length is None or (length.is_python_constant() and length.as_python_constant() == 0):
        unimplemented(
            gb_type="bincount without minlength",
            context="torch.bincount",
            explanation="the size of its result depends on data; pass minlength, larger than every "
            "value, which the program checks",
            hints=[],
        )
    return VariableTracker.build(tx, _counted).call_function(tx, [x], given)


_called = TorchInGraphFunctionVariable.call_function


def _function(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
    made = _traced(tx, args, kwargs) if self.value is torch.bincount else None
    return _called(self, tx, args, kwargs) if made is None else made


def _method(self: Any, tx: Any, *args: Any, **kwargs: Any) -> Any:
    return _traced(tx, (self, *args), kwargs)


TorchInGraphFunctionVariable.call_function = _function  # type: ignore[method-assign]
trace_method("bincount", _method)
