"""Call stores at indices by the name that torch-mlir has for them.

The rewritten ``index_put`` counts every index from the front, as decomposed graphs mean it by
``_unsafe_index_put``.
"""

from __future__ import annotations

import torch

aten = torch.ops.aten


def name_index_puts(graph: torch.fx.Graph) -> None:
    """Make ``index_put`` of each ``_unsafe_index_put``, in place."""
    for node in graph.find_nodes(op="call_function", target=aten._unsafe_index_put.default):
        node.target = aten.index_put.default
