"""Eigenvalues and singular values are asked for alone where nothing uses their vectors.

PyTorch asks for the vectors, too, while a program is recorded: its gradient could need them.
"""

from __future__ import annotations

import operator

import torch

aten = torch.ops.aten

#: By op, the flag that asks for vectors, and the number of the result that is not one of them.
_FLAGS = {aten._linalg_eigh.default: ("compute_v", 0), aten._linalg_svd.default: ("compute_uv", 1)}


def leave_out_unused_vectors(graph: torch.fx.Graph) -> None:
    """Ask for values alone, in place; the shapes of what is not used are not changed."""
    for target, (flag, number) in _FLAGS.items():
        for node in graph.find_nodes(op="call_function", target=target):
            parts = [n for n in node.users if n.target is operator.getitem]
            if len(parts) == len(node.users) and all(n.args[1] == number for n in parts):
                node.args = node.args[:2]
                node.kwargs = {**node.kwargs, flag: False}
