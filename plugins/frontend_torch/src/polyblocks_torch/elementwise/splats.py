"""Constants whose elements are all one number."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from polyblocks_torch.elementwise.scalars import number_in

aten = torch.ops.aten


#: Operations that fill a tensor -> where their number stands, or the number itself.
_NUMBER_AT: dict[Any, int] = {
    aten.full.default: 1,
    aten.full_like.default: 1,
    aten.new_full.default: 2,
    aten.scalar_tensor.default: 0,
}
_NUMBERS: dict[Any, int] = {
    **dict.fromkeys((aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default), 0),
    **dict.fromkeys((aten.ones.default, aten.ones_like.default, aten.new_ones.default), 1),
}


def fill_of(node: fx.Node) -> bool | int | float | None:
    """The number that an operation fills a tensor with, as it is written; None for others."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.is_complex():
        return None
    place = _NUMBER_AT.get(node.target)
    number = node.args[place] if place is not None else _NUMBERS.get(node.target)
    return number if isinstance(number, (bool, int, float)) else None


def splat_of(node: fx.Node) -> bool | int | float | None:
    """The common value of all elements of a node's result, in its type, or None."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.is_complex():
        return None
    node = _viewed(node)
    if node.op == "get_attr":
        return splat_in(operator.attrgetter(str(node.target))(node.graph.owning_module))
    number = fill_of(node)
    return None if number is None else number_in(number, value.dtype)


def _viewed(node: fx.Node) -> fx.Node:
    """The node that this one views or copies in the same type; itself if it does neither."""
    while isinstance(node.target, torch._ops.OpOverload):
        moves = node.target.is_view or node.target is aten.clone.default
        if not moves or node.target is aten.view.dtype or len(node.all_input_nodes) != 1:
            break
        (node,) = node.all_input_nodes
    return node


def splat_in(constant: Any) -> bool | int | float | None:
    """The number that all elements of a tensor are; None if they differ."""
    if not isinstance(constant, torch.Tensor) or not constant.numel() or constant.is_complex():
        return None
    with unset_fake_temporarily():
        flat = constant.detach().reshape(-1)
        if flat.numel() > 1 and not bool((flat == flat[0]).all()):
            return None
        # Zeros are equal, whatever their signs.
        if flat[0] == 0 and not bool((torch.signbit(flat) == torch.signbit(flat[0])).all()):
            return None
        number: bool | int | float = flat[0].item()
    return number
