"""Record loops whose number of iterations depends on data, with the graphs of what they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch._higher_order_ops.while_loop import while_loop_op

from polyblocks_torch.graphs import graph_module
from polyblocks_torch.recording.recorder import Recorder, like


@while_loop_op.py_impl(Recorder)
def _record_loop(
    recorder: Recorder,
    condition: Callable[..., Tensor],
    body: Callable[..., tuple[Tensor, ...]],
    carried: Sequence[Tensor],
    others: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """A node whose first operands are the graphs of its condition and of its body."""
    functions = {"condition": condition, "body": body}
    graphs = [
        recorder.attribute(f"while_loop_{name}", _graph_of(recorder, function, (*carried, *others)))
        for name, function in functions.items()
    ]
    operands = [tuple(recorder.node_of(value) for value in some) for some in (carried, others)]
    results = tuple(like(recorder.mode, value) for value in carried)
    recorder.append(while_loop_op, (*graphs, *operands), results)
    return results


def _graph_of(
    recorder: Recorder, function: Callable[..., Any], operands: Sequence[Tensor]
) -> fx.GraphModule:
    graph, attributes = fx.Graph(), dict[str, Any]()
    inner = Recorder(graph, recorder.mode, recorder.table, attributes)
    values = [like(recorder.mode, value) for value in operands]
    for number, value in enumerate(values):
        node = graph.placeholder(f"arg{number}")
        node.meta["val"] = value
        inner.track(value, node)
    with inner:
        found = function(*values)
    # A condition gives a number, a body several.
    if isinstance(found, torch.Tensor):
        graph.output(inner.node_of(found)).meta["val"] = found
    else:
        output = graph.output(tuple(inner.node_of(result) for result in found))
        output.meta["val"] = tuple(found)
    return graph_module(attributes, graph)
