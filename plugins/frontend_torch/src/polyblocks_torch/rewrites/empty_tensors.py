"""Take tensors without elements out of a graph.

torch-mlir divides by extents while it lowers views (SIGFPE), and its reductions assume one element
at least. Without elements nothing is computed, so results are known here: a result without elements
is an uninitialized tensor, and an op whose tensor operands are all without elements (the sum of
nothing) is a constant, evaluated by PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from polyblocks.errors import UnsupportedError

aten = torch.ops.aten


def fold_empty_tensors(graph: torch.fx.Graph) -> None:
    """Replace each node that makes or reads a tensor without elements.

    Raises:
        UnsupportedError: an op mixes operands with and without elements in a way not known here.
    """
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.numel() == 0:
            if node.target is not aten.empty.memory_format:
                _replace(graph, node, aten.empty.memory_format, (list(value.shape),))
            continue
        operands = [a for a in node.all_input_nodes if isinstance(a.meta.get("val"), torch.Tensor)]
        if any(a.meta["val"].numel() == 0 for a in operands) and isinstance(value, torch.Tensor):
            _fold(graph, node, operands)


def _fold(graph: torch.fx.Graph, node: torch.fx.Node, operands: list[torch.fx.Node]) -> None:
    """Replace a node with elements that reads a tensor without."""
    value = node.meta["val"]
    shape = list(value.shape)
    if node.target is aten.cat.default:
        parts = [a for a in node.args[0] if a.meta["val"].numel()]  # type: ignore[union-attr]
        node.update_arg(0, parts)
        return
    if node.target in (aten.mm.default, aten.bmm.default):
        _replace(graph, node, aten.full.default, (shape, 0))
        return
    if node.target is aten.addmm.default:
        # A product over no elements adds nothing: beta * input is left.
        bias, beta = node.args[0], node.kwargs.get("beta", 1)
        with graph.inserting_before(node):
            scaled = _call(graph, aten.mul.Tensor, (bias, beta), bias.meta["val"])  # type: ignore[union-attr]
            wide = _call(graph, aten.expand.default, (scaled, shape), value)
        node.replace_all_uses_with(wide)
        graph.erase_node(node)
        return
    if all(a.meta["val"].numel() == 0 for a in operands):
        constant = _evaluate(node)
        if constant is not None and constant.numel() == 1 or _uniform(constant):
            _replace(graph, node, aten.full.default, (shape, constant.flatten()[0].item()))  # type: ignore[union-attr]
            return
    first = operands[0]
    if first.meta["val"].shape == value.shape and node.target in _UPDATES:
        node.replace_all_uses_with(first)
        graph.erase_node(node)
        return
    raise UnsupportedError("mixes tensors with and without elements", op=str(node.target))


#: Ops that write another operand's elements into the first: without elements, nothing changes.
_UPDATES = frozenset(
    {
        aten.index_put.default, aten._unsafe_index_put.default, aten.index_add.default,
        aten.index_copy.default, aten.index_fill.int_Scalar, aten.masked_scatter.default,
        aten.scatter.src, aten.scatter.value, aten.scatter.reduce, aten.scatter.value_reduce,
        aten.scatter_add.default, aten.scatter_reduce.two, aten.slice_scatter.default,
    }
)  # fmt: skip


def _call(
    graph: torch.fx.Graph, target: Any, args: tuple[Any, ...], value: torch.Tensor
) -> torch.fx.Node:
    node = graph.call_function(target, args)
    node.meta["val"] = value.new_empty(value.shape)
    return node


def _evaluate(node: torch.fx.Node) -> torch.Tensor | None:
    """The node's value, computed by PyTorch on operands without elements."""

    def real(argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            value = argument.meta["val"]
            return torch.empty(value.shape, dtype=value.dtype)
        return argument

    args, kwargs = pytree.tree_map(real, (node.args, node.kwargs))
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily():
        try:
            result = node.target(*args, **kwargs)  # type: ignore[operator]
        except (RuntimeError, IndexError):
            return None
    return result if isinstance(result, torch.Tensor) else None


def _uniform(value: torch.Tensor | None) -> bool:
    if value is None or value.is_complex():
        return False
    first = value.flatten()[:1]
    return bool(((value == first) | (value.isnan() & first.isnan())).all())


def _replace(
    graph: torch.fx.Graph, node: torch.fx.Node, target: Any, args: tuple[Any, ...]
) -> None:
    value = node.meta["val"]
    with graph.inserting_before(node):
        new = graph.call_function(target, args, {"dtype": value.dtype})
    new.meta = {k: v for k, v in node.meta.items() if k in ("val", "stack_trace", "tensor_meta")}
    new.meta["val"] = value.new_empty(value.shape)
    node.replace_all_uses_with(new)
    graph.erase_node(node)
