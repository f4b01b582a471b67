"""Count dimensions from the front.

torch-mlir crashes (SIGSEGV) on scatters whose negative dimension is one in which index and operand
differ in extent.
"""

from __future__ import annotations

import torch

_PACKETS = frozenset(
    "gather scatter scatter_add scatter_reduce index_select index_add index_copy".split()
)


def count_dims_from_front(graph: torch.fx.Graph) -> None:
    """Make the second argument of gathers and scatters non-negative, in place."""
    for node in graph.nodes:
        packet = getattr(node.target, "overloadpacket", None)
        if node.op != "call_function" or getattr(packet, "__name__", "") not in _PACKETS:
            continue
        dim = node.args[1]
        rank = node.args[0].meta["val"].dim()
        if isinstance(dim, int) and dim < 0 < rank:
            node.update_arg(1, dim + rank)
