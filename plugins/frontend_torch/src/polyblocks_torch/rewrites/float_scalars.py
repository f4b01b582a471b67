"""Compare floating-point tensors with floating-point numbers.

torch-mlir folds the comparison of a constant tensor of floats with an integer number to something
that depends on uninitialized memory.
"""

from __future__ import annotations

import torch

aten = torch.ops.aten

_COMPARISONS = frozenset(
    {
        aten.eq.Scalar, aten.ne.Scalar, aten.lt.Scalar, aten.le.Scalar, aten.gt.Scalar,
        aten.ge.Scalar, aten.eq.Tensor, aten.ne.Tensor, aten.lt.Tensor, aten.le.Tensor,
        aten.gt.Tensor, aten.ge.Tensor,
    }
)  # fmt: skip


def compare_floats_with_floats(graph: torch.fx.Graph) -> None:
    """Make the number a float wherever the tensor holds floats, in place."""
    for node in graph.nodes:
        if node.op != "call_function" or node.target not in _COMPARISONS:
            continue
        tensor, number = node.args
        floating = isinstance(tensor, torch.fx.Node) and tensor.meta["val"].is_floating_point()
        if floating and isinstance(number, int):
            node.update_arg(1, float(number))
