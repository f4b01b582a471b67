"""Where a call is under ``tf.distribute``: each replica of a strategy has other variables."""

from __future__ import annotations

from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import ops

#: Of each thread. Its default graph has its strategies, also while operations are run eagerly.
_graphs = ops._default_graph_stack


def is_distributed() -> bool:
    """Whether a strategy of ``tf.distribute`` is in scope, or runs the call."""
    # ``ops.get_default_graph`` would make a graph in each new thread, in 50 us.
    graph = _graphs.stack[-1] if _graphs.stack else _graphs._global_default_graph
    return graph is not None and bool(graph._distribution_strategy_stack)


def replica() -> tuple[Any, ...] | None:
    """A key of the replica, for calls whose replicas have variables of their own.

    None outside of strategies. It is what ``tf.function`` traces anew for: the strategy, whether it
    is one of its replicas that calls, and the device of that.
    """
    if not is_distributed():
        return None
    mode = ops.get_default_graph()._distribution_strategy_stack[-1]
    return mode.strategy, mode.replica_context is None, context.context().device_name
