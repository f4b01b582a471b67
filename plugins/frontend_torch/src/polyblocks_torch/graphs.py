"""Graphs and graph modules at the price of what is needed of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.fx._lazy_graph_module import _LazyGraphModule


def graph_module(root: torch.nn.Module | Mapping[str, Any], graph: fx.Graph) -> fx.GraphModule:
    """``fx.GraphModule(root, graph)`` that writes and compiles its ``forward`` at the first use.

    Here graphs are read and rewritten, hardly ever called, and the code of a graph costs as much
    as all else that is done with it.
    """
    source = root if isinstance(root, torch.nn.Module) else dict(root)
    return _LazyGraphModule(source, graph)


def drop_unused(graph: fx.Graph) -> None:
    """Erase, in place, what nothing uses and what has no effect but its value.

    ``fx.Graph.eliminate_dead_code`` does so too, but first checks all of the graph, and asks of
    each node in use whether it has effects.
    """
    for node in reversed(graph.nodes):
        if not node.users and not node.is_impure():
            graph.erase_node(node)
