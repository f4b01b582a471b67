"""Edits a graph: nodes are added with the values that tracing would have recorded."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten


class GraphEditor:
    """A copy of a graph of ATen operations, and what it returns.

    Attributes:
        graph: the copy; it has no output node.
        returned: what the graph returned, nodes of the copy or numbers.
        placeholders: its placeholders when it was copied, in order.
        position: placeholder -> its position among these.
        inline: constants that are part of the program, by the names of their ``get_attr`` nodes.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = fx.Graph()
        returned = self.graph.graph_copy(graph, {}, return_output_node=False)
        self.returned = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        self.placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        self.position = {node: i for i, node in enumerate(self.placeholders)}
        self.inline: dict[str, torch.Tensor] = {}

    def at_begin(self) -> Any:
        """A context in which nodes are added before all others."""
        return self.graph.inserting_before(next(iter(self.graph.nodes)))

    def replace_returned(self, old: fx.Node, new: Any) -> None:
        """Return another value where the graph returned a node."""
        self.returned = [new if r is old else r for r in self.returned]

    def constant(self, value: torch.Tensor) -> fx.Node:
        """Add a constant to the program."""
        target = f"constant{len(self.inline)}"
        self.inline[target] = value
        with self.at_begin():
            node = self.graph.get_attr(target)
        known = (n.meta.get("val") for n in self.graph.nodes)
        mode = next((v.fake_mode for v in known if isinstance(v, FakeTensor)), None)
        node.meta["val"] = value if mode is None else mode.from_tensor(value, static_shapes=True)
        return node

    def call(self, op: Any, operand: fx.Node, *args: Any, **kwargs: Any) -> fx.Node:
        """Add a call, with its value as tracing would have recorded it."""
        node = self.graph.call_function(op, (operand, *args), kwargs)
        node.meta = {k: v for k, v in operand.meta.items() if k == "stack_trace"}
        values = [a.meta["val"] if isinstance(a, fx.Node) else a for a in (operand, *args)]
        mode = getattr(values[0], "fake_mode", None)
        with mode if mode is not None else contextlib.nullcontext():
            node.meta["val"] = op(*values, **kwargs)
        return node

    def fresh(self, before: fx.Node, like: torch.Tensor) -> fx.Node:
        """A node that allocates what looks as ``like`` does."""
        with self.graph.inserting_before(before):
            node = self.graph.call_function(
                aten.empty_strided.default,
                (list(like.shape), list(like.stride())),
                {"dtype": like.dtype, "device": like.device},
            )
        node.meta = {k: v for k, v in before.meta.items() if k == "stack_trace"}
        node.meta["val"] = like
        return node
