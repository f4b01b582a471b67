"""16-bit numbers that are compared for equality are the same wherever they are computed.

A result of 16 bits need not be rounded where it is computed with right away. The gradient of
``amax`` compares its operand with the maximum, and computes that operand once more: from numbers
that were rounded when they were stored, where the maximum may come from others that were not. Then
none is equal, and the gradient 0 / 0. So everything that such a comparison or maximum depends on is
rounded by each operation::

    %0 = exp(%x) : float16
    %1 = amax(%0, [0]) : float16

becomes::

    %0 = exp(convert_element_type(%x, float32)) : float32
    %1 = _to_copy(%0, dtype=float16)
    %2 = amax(%1, [0]) : float16
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from polyblocks_torch.importing.opmath import computes, is_narrow
from polyblocks_torch.rewrites.conversions import compute_again, converted

aten, prims = torch.ops.aten, torch.ops.prims

#: Overload packets.
_COMPARING = frozenset({aten.amax, aten.amin, aten.eq, aten.max, aten.min, aten.ne})


def round_what_is_compared(graph: fx.Graph) -> None:
    """Rewrite a graph in place; every node has ``meta["val"]``."""
    waiting = [
        operand
        for node in graph.nodes
        if getattr(node.target, "overloadpacket", None) in _COMPARING
        for operand in node.all_input_nodes
        if is_narrow(operand.meta.get("val"))
    ]
    found: dict[fx.Node, None] = {}
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += node.all_input_nodes
    for node in found:
        if node.op == "call_function" and is_narrow(node.meta.get("val")):
            _round(graph, node)


def _round(graph: fx.Graph, node: fx.Node) -> None:
    if node.target is prims.convert_element_type.default:
        node.target = aten._to_copy.default
        node.args, node.kwargs = node.args[:1], {"dtype": node.args[1]}
        return
    target: Any = node.target
    if torch.Tag.pointwise not in getattr(target, "tags", ()) or not computes(node):
        return
    with graph.inserting_before(node):
        for operand in node.all_input_nodes:
            if is_narrow(operand.meta.get("val")):
                node.replace_input_with(
                    operand, converted(operand, torch.float32, node, freely=True)
                )
    compute_again(node)
