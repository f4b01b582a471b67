"""Conversions between types that rewrites add to a graph."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

aten, prims = torch.ops.aten, torch.ops.prims


def converted(
    operand: fx.Node, dtype: torch.dtype, origin: fx.Node, *, freely: bool = False
) -> fx.Node:
    """A node in another type, at the insertion point of its graph.

    Args:
        operand: with ``meta["val"]``.
        dtype: the type.
        origin: what the conversion is added for; its place in the source is taken.
        freely: whether the rounding of 16-bit numbers may be left out.
    """
    if freely:
        made = operand.graph.call_function(prims.convert_element_type.default, (operand, dtype))
    else:
        made = operand.graph.call_function(aten._to_copy.default, (operand,), {"dtype": dtype})
    made.meta = {k: v for k, v in origin.meta.items() if k == "stack_trace"}
    made.meta["val"] = operand.meta["val"].to(dtype)
    return made


def compute_again(node: fx.Node) -> None:
    """Find out what a node gives of its new operands, and convert that to what it gave before."""
    before: Any = node.meta["val"]
    target: Any = node.target
    args, kwargs = pytree.tree_map_only(fx.Node, lambda n: n.meta["val"], (node.args, node.kwargs))
    _give(node, target(*args, **kwargs))
    if isinstance(before, torch.Tensor):
        _convert_back(node, before)
        return
    for user in list(node.users):
        if user.target is operator.getitem:
            was = user.meta["val"]
            _give(user, node.meta["val"][user.args[1]])
            _convert_back(user, was)


def _give(node: fx.Node, value: Any) -> None:
    # The importer reads it first, and it is not true any more.
    node.meta.pop("tensor_meta", None)
    node.meta["val"] = value


def _convert_back(node: fx.Node, before: torch.Tensor) -> None:
    if node.meta["val"].dtype == before.dtype:
        return
    with node.graph.inserting_after(node):
        back = converted(node, before.dtype, node)
    node.replace_all_uses_with(back, delete_user_cb=lambda user: user is not back)
