"""Gradients that a function takes itself, with ``torch.autograd.grad``: parts of its graph.

Dynamo traces them if the graph of autograd that they go through lies within the function. Where an
argument has come out of another computation it ends the graph, but guards nothing of that: a later
call may bring such an argument, through whose computation the gradient goes on. Each call asks.

A leaf that the function makes, as in ``places = places.detach().requires_grad_()``, is lost behind
the graph: AOTAutograd's results depend on arguments alone. So Dynamo ends the graph where a result
is computed from such a leaf. But the gradient of a leaf that is no result is unreachable, and
a result that needs gradients for an argument, or a weight, needs them behind the graph as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.output_graph import OutputGraph
from torch._dynamo.variables.tensor import TensorVariable

Call = Callable[..., Any]

_checked = OutputGraph._check_requires_grad_intermediate_outputs


def install(is_active: Callable[[], bool]) -> None:
    """Let graphs go on where a leaf is made inside, as said above, whenever ``is_active`` says."""

    def checked(self: OutputGraph, rv: list[Any], tx: Any) -> None:
        if not (is_active() and _loses_nothing(self, rv)):
            _checked(self, rv, tx)

    OutputGraph._check_requires_grad_intermediate_outputs = checked  # type: ignore[method-assign]


def _loses_nothing(graph: OutputGraph, results: Sequence[Any]) -> bool:
    with graph.restore_global_state():
        if not torch.is_grad_enabled():
            return False  # the results need gradients only inside of ``enable_grad``
    values = list(_values(results))
    kept = {id(leaf.untyped_storage()) for leaf in _values(graph.leaf_var_creation_order)}
    if any(id(value.untyped_storage()) in kept for value in values):
        return False
    given = {
        value.grad_fn or value
        for node in graph.graph.find_nodes(op="placeholder")
        if isinstance(value := node.meta.get("example_value"), torch.Tensor) and value.requires_grad
    }
    return all(_reaches(value.grad_fn, given) for value in values if value.requires_grad)


def _values(variables: Sequence[Any]) -> Iterator[torch.Tensor]:
    for variable in variables:
        if isinstance(variable, TensorVariable):
            yield variable.as_proxy().node.meta["example_value"]


def _reaches(function: Any, given: set[Any]) -> bool:
    """Whether a graph of autograd goes on to one of some leaves or functions."""
    seen, waiting = set(), [function]
    while waiting:
        function = waiting.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        if function in given or getattr(function, "variable", None) in given:
            return True
        waiting += [following for following, _ in function.next_functions]
    return False


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
