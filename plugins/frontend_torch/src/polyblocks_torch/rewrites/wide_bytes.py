"""Arithmetic on bytes in int32: torch-mlir often takes uint8 for signed, and fails on some int8."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

aten = torch.ops.aten

#: The types of 8 bits.
BYTES = frozenset({torch.uint8, torch.int8})

#: Element-wise ops that are lowered rightly where operands and result are bytes or booleans.
_RIGHT_ON_BYTES = {
    aten.add,
    aten.bitwise_and,
    aten.bitwise_not,
    aten.bitwise_or,
    aten.bitwise_xor,
    aten.clamp,
    aten.clamp_max,
    aten.clamp_min,
    aten.eq,
    aten.ge,
    aten.gt,
    aten.le,
    aten.logical_and,
    aten.logical_not,
    aten.logical_or,
    aten.logical_xor,
    aten.lt,
    aten.maximum,
    aten.minimum,
    aten.mul,
    aten.ne,
    aten.relu,
    aten.sub,
    aten.where,
}

#: Ops that move or convert elements; PyTorch counts some of them as element-wise.
_MOVES = {aten._to_copy, aten.alias, aten.clone, aten.copy, aten.fill}

_REDUCTIONS = {aten.cumprod, aten.cumsum, aten.mean, aten.prod, aten.sum}

#: Ops that torch-mlir refuses, or crashes on, for both types of 8 bits.
_NEVER_ON_BYTES = {
    aten.amax,
    aten.amin,
    aten.bmm,
    aten.convolution,
    aten.div,
    aten.max,
    aten.min,
    aten.mm,
}


def widen_bytes(gm: fx.GraphModule) -> None:
    """Rewrite ``div(x, y)`` of bytes to ``div(int32(x), int32(y))`` in place.

    A result that was of bytes is converted back, which wraps around as PyTorch does.
    """
    wide: dict[fx.Node, fx.Node] = {}
    for node in list(gm.graph.nodes):
        if _needs_widening(node):
            _widen(gm.graph, node, wide)
    if wide:
        gm.recompile()


def _is_byte(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in BYTES


def _needs_widening(node: fx.Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    result = node.meta.get("val")
    operands = [n.meta.get("val") for n in node.all_input_nodes]
    if not isinstance(result, torch.Tensor) or not any(map(_is_byte, operands)):
        return False
    packet = node.target.overloadpacket
    if packet in _NEVER_ON_BYTES:
        return True
    if not any(isinstance(v, torch.Tensor) and v.dtype == torch.uint8 for v in operands):
        return False
    computes = torch.Tag.pointwise in node.target.tags or packet in _REDUCTIONS
    if not computes or packet in _MOVES:
        return False
    if packet not in _RIGHT_ON_BYTES:
        return True
    small = (torch.uint8, torch.bool)
    tensors = [result, *(v for v in operands if isinstance(v, torch.Tensor))]
    numbers = [
        v for v in pytree.tree_leaves((node.args, node.kwargs)) if isinstance(v, int | float)
    ]
    # A number above 127 would be a negative byte.
    return any(t.dtype not in small for t in tensors) or any(
        isinstance(v, float) or not 0 <= v <= 127 for v in numbers
    )


def _widen(graph: fx.Graph, node: fx.Node, wide: dict[fx.Node, fx.Node]) -> None:
    for operand in node.all_input_nodes:
        if not _is_byte(operand.meta.get("val")):
            continue
        if operand not in wide:
            # Before its first use: among the placeholders it would be in the way.
            with graph.inserting_before(node):
                wide[operand] = _convert(graph, operand, torch.int32, node)
        node.replace_input_with(operand, wide[operand])
    before = node.meta["val"]
    values = pytree.tree_map_only(fx.Node, lambda n: n.meta["val"], (node.args, node.kwargs))
    # What it says of the result is not true any more, and the importer reads it first.
    node.meta.pop("tensor_meta", None)
    node.meta["val"] = node.target(*values[0], **values[1])  # type: ignore[operator]
    if node.meta["val"].dtype != before.dtype:
        with graph.inserting_after(node):
            back = _convert(graph, node, before.dtype, node)
        node.replace_all_uses_with(back, delete_user_cb=lambda user: user is not back)


def _convert(graph: fx.Graph, value: fx.Node, dtype: torch.dtype, origin: fx.Node) -> fx.Node:
    made = graph.call_function(aten._to_copy.default, (value,), {"dtype": dtype})
    made.meta = {k: v for k, v in origin.meta.items() if k == "stack_trace"}
    made.meta["val"] = value.meta["val"].to(dtype)
    return made
