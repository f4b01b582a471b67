"""Stores at masks whose values need a gradient.

PyTorch's gradient of the values of ``x[mask] = values`` is ``gradient[mask]``, whose shape depends
on data, so that AOTAutograd cannot trace it. There are as many places as values: a store that puts
each value at its place, and selects by the mask, has a gradient of a known shape.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor, fx

from polyblocks_torch.decomp.indexing import index_put


def masks_selected(gm: fx.GraphModule) -> None:
    """Let the stores at one mask of Dynamo's graph select; in place.

    Others stay as they are: at more than one mask, at masks and tensors of places, and of values of
    another dtype, which PyTorch refuses.
    """
    for module in gm.modules():
        if isinstance(module, fx.GraphModule):
            selected = [_select(node) for node in module.graph.nodes]
            if any(selected):
                module.recompile()


def _select(node: fx.Node) -> bool:
    """Whether a node was such a store."""
    whole: tuple[Any, ...] = ()
    if node.target is operator.setitem and len(node.args) == 3:
        x, key, values = node.args
        whole, indices = _of_key(x, key)
        more: list[Any] = []
    elif node.op == "call_method" and node.target == "index_put_" and len(node.args) >= 3:
        x, given, values, *more = node.args
        indices = list(given) if isinstance(given, list | tuple) else None
    else:
        return False
    if indices is None or node.kwargs.keys() - {"accumulate"} or not _can(x, indices, values):
        return False
    if any(item != slice(None) for item in whole):
        viewed = _value(x)[whole]
        with node.graph.inserting_before(node):
            x = node.graph.call_function(operator.getitem, (x, whole))
        x.meta["example_value"] = viewed
    node.op, node.target = "call_function", store_selected
    node.args = (x, indices, values, *more)
    return True


def _of_key(x: Any, key: Any) -> tuple[tuple[Any, ...], list[Any] | None]:
    """The view, and the indices of it, that a key of integers, slices and a tensor stores to.

    Returns:
        A key of integers and slices, and the indices; None for other keys.
    """
    items = list(key) if isinstance(key, tuple) else [key]
    if sum(isinstance(item, fx.Node) for item in items) != 1 or not isinstance(x, fx.Node):
        return (), None
    value, mask = _value(x), next(_value(i) for i in items if isinstance(i, fx.Node))
    if not (isinstance(value, Tensor) and isinstance(mask, Tensor)):
        return (), None
    if Ellipsis in items:
        place = items.index(Ellipsis)
        named = mask.dim() + len(items) - 2
        items[place : place + 1] = [slice(None)] * (value.dim() - named)
    whole: list[Any] = []
    indices: list[Any] = []
    for item in items:
        if isinstance(item, fx.Node):
            whole += [slice(None)] * mask.dim()
            indices.append(item)
        elif isinstance(item, slice) and _is_of_numbers(item):
            whole.append(item)
            indices.append(None)
        elif isinstance(item, int) and not isinstance(item, bool):
            whole.append(item)
        else:
            return (), None
    return tuple(whole), indices


def _is_of_numbers(item: slice) -> bool:
    return all(n is None or isinstance(n, int) for n in (item.start, item.stop, item.step))


def _can(x: Any, indices: list[Any], values: Any) -> bool:
    given = [_value(i) for i in indices if i is not None]
    target, source = _value(x), _value(values)
    if len(given) != 1 or not all(isinstance(v, Tensor) for v in (*given, target, source)):
        return False
    return (
        given[0].dtype in (torch.bool, torch.uint8)
        and given[0].dim() > 0
        and source.requires_grad
        and source.dtype == target.dtype
        and source.device == target.device
    )


def _value(node: Any) -> Any:
    return node.meta.get("example_value") if isinstance(node, fx.Node) else None


def store_selected(
    x: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """``x.index_put_(indices, values, accumulate)`` with one mask among the indices."""
    # As x[mask] = values does; x.index_put_ has refused them before.
    mask = next(i for i in indices if i is not None)
    while values.dim() > x.dim() - mask.dim() + 1 and values.shape[0] == 1:
        values = values.squeeze(0)
    stored = index_put(x, indices, values, accumulate)
    if not values.numel():
        # No values have a gradient, too.
        stored = torch.where(torch.ones_like(x, dtype=torch.bool), stored, values.sum())
    return x.copy_(stored)
