"""Branches whose outcome is known when the function is traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from polyblocks_tf.tracing.graph import Graph, Substitutions, called_graph, replay


def known_branch(
    op: Any, inputs: list[tf.Tensor], substitutions: Substitutions
) -> Sequence[tf.Tensor] | None:
    """``If`` and ``StatelessIf``: the branch that is taken for sure."""
    condition = tf.get_static_value(inputs[0])
    if condition is None or condition.shape:
        return None
    branch = called_graph(op, "then_branch" if condition else "else_branch")
    if branch is None:
        return None
    graph = Graph(branch)
    values = dict(zip(graph.values, inputs[1:], strict=True))
    replay(graph.nodes, values, substitutions)
    return [values[value] for value in graph.outputs]
