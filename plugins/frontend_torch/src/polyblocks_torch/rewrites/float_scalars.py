"""Numbers beside floating-point tensors are floating-point numbers of the tensors' type.

PyTorch rounds a number to the type of the tensors before it compares: a float32 tensor has elements
that equal 0.3. torch-mlir compares in float64 with the number as it is written, which none equals.
Also it folds the comparison of a constant tensor of floats with an integer number to something
that depends on uninitialized memory, and takes a number that stands before the tensor (``0.1 - x``)
for one of float32.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten

_COMPARISONS = frozenset(
    {
        aten.eq.Scalar, aten.ne.Scalar, aten.lt.Scalar, aten.le.Scalar, aten.gt.Scalar,
        aten.ge.Scalar, aten.eq.Tensor, aten.ne.Tensor, aten.lt.Tensor, aten.le.Tensor,
        aten.gt.Tensor, aten.ge.Tensor,
    }
)  # fmt: skip


def round_numbers(graph: torch.fx.Graph) -> None:
    """Round the numbers among the operands of element-wise operations, in place."""
    for node in graph.nodes:
        target = node.target
        # Most have none, which is quickly seen.
        if not any(isinstance(argument, (int, float)) for argument in node.args):
            continue
        if not isinstance(target, torch._ops.OpOverload) or torch.Tag.pointwise not in target.tags:
            continue
        dtypes = {n.meta["val"].dtype for n in node.all_input_nodes if _is_of_floats(n)}
        if len(dtypes) != 1:
            continue
        (dtype,) = dtypes
        first = node.args[0] if node.args else None
        if isinstance(first, (int, float)) and str(target._schema.arguments[0].type) == "Tensor":
            node.update_arg(0, _full(graph, node, float(first), dtype))
        kinds = (int, float) if target in _COMPARISONS else (float,)
        for index, number in enumerate(node.args):
            if isinstance(number, kinds):
                new = rounded(number, dtype)
                if type(number) is not float or new != number:
                    node.update_arg(index, new)


def _full(
    graph: torch.fx.Graph, before: torch.fx.Node, number: float, dtype: torch.dtype
) -> torch.fx.Node:
    like = next(n for n in before.all_input_nodes if _is_of_floats(n)).meta["val"]
    with graph.inserting_before(before):
        made = graph.call_function(
            aten.full.default, ([], number), {"dtype": dtype, "device": like.device}
        )
    made.meta = {k: v for k, v in before.meta.items() if k == "stack_trace"}
    made.meta["val"] = like.new_empty(())
    return made


def rounded(number: float, dtype: torch.dtype) -> float:
    """A number in a floating-point type."""
    if dtype is torch.float64:
        return float(number)
    if dtype is torch.float32:
        return ctypes.c_float(number).value
    with _disable_current_modes():
        return float(torch.tensor(number, dtype=torch.float64).to(dtype))


def _is_of_floats(node: Any) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point()
