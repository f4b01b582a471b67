"""Gradients that a function takes itself, with ``torch.autograd.grad``: parts of its graph.

Dynamo traces them if the graph of autograd that they go through lies within the function. Where an
argument has come out of another computation it ends the graph, but guards nothing of that: a later
call may bring such an argument, through whose computation the gradient goes on. Each call asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

Call = Callable[..., Any]


def guarding_leaves(
    gm: fx.GraphModule, call: Call, example_inputs: Sequence[Any], left: Callable[[str], Call]
) -> Call:
    """``call``, for arguments that are computed from others only where the examples are.

    Args:
        gm: a graph of Dynamo.
        call: what was compiled of it.
        example_inputs: one value per placeholder.
        left: gives what PyTorch runs instead, and takes the reason.
    """
    if not any(node.target is torch.autograd.grad for node in gm.graph.nodes):
        return call
    nodes = [node for node in gm.graph.nodes if node.op == "placeholder"]
    leaves = [
        i
        for i, (node, value) in enumerate(zip(nodes, example_inputs, strict=True))
        if _is_leaf(getattr(node.meta.get("grapharg"), "example", value))
    ]

    def run(*args: Any) -> Any:
        if all(_is_leaf(args[i]) for i in leaves):
            return call(*args)
        return left(_COMPUTED)(*args)

    return run


_COMPUTED = (
    "it takes gradients, and an argument was computed from other tensors, which an earlier one was "
    "not; pass x.detach().requires_grad_(), or take the gradients outside"
)


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, torch.Tensor) or value.grad_fn is None
