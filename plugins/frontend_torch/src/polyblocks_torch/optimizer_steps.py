"""Optimizers' steps as one graph.

``Optimizer.step`` asks Dynamo for a graph break before and after its work, so that Inductor sees
the updates of parameters in a graph that is none of training. Here updates stay in whichever graph
they are in, so the two breaks are left out: a function that calls ``step`` compiles whole, also
together with the forward and backward pass before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.functions import SkipFunctionVariable
from torch.optim import optimizer

_whole: ContextVar[bool] = ContextVar("polyblocks_whole_steps", default=False)

_call_function = SkipFunctionVariable.call_function


@contextmanager
def whole_steps() -> Iterator[None]:
    """What Dynamo traces inside has no graph breaks around an optimizer's step."""
    token = _whole.set(True)
    try:
        yield
    finally:
        _whole.reset(token)


def _without_breaks(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
    if (
        self.value is torch._dynamo.graph_break
        and _whole.get()
        and tx.f_code.co_filename == optimizer.__file__
    ):
        return ConstantVariable.create(None)
    return _call_function(self, tx, args, kwargs)


SkipFunctionVariable.call_function = _without_breaks  # type: ignore[method-assign]
