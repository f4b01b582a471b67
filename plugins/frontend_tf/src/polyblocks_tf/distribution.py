"""Where a call is under ``tf.distribute``: each replica of a strategy has other variables."""

from __future__ import annotations

from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import ops

#: As ``ops.get_default_graph``, in half the time. A thread's graph has its strategies, also while
#: operations are run eagerly.
_default_graph = ops._default_graph_stack.get_default


def is_distributed() -> bool:
    """Whether a strategy of ``tf.distribute`` is in scope, or runs the call."""
    return bool(_default_graph()._distribution_strategy_stack)


def replica() -> tuple[Any, ...] | None:
    """What tells the replicas of a call apart whose variables are not the same ones.

    None outside of strategies. It is what ``tf.function`` traces anew for: the strategy, whether it
    is one of its replicas that calls, and the device of that.
    """
    stack = _default_graph()._distribution_strategy_stack
    if not stack:
        return None
    mode = stack[-1]
    return mode.strategy, mode.replica_context is None, context.context().device_name
