"""Strides of results that PyTorch's shape inference has otherwise than its kernels.

It infers some operations through Python code that computes the result in steps, and then the order
of strides may be another one than that of the kernel, which looks at all operands at once.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._prims_common import suggest_memory_format
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten

#: Element by element, in one loop over all operands that are tensors.
_ELEMENTWISE = frozenset(
    {
        aten.copysign.Tensor, aten.div.Tensor_mode, aten.floor_divide.default,
        aten.heaviside.default, aten.logaddexp.default, aten.logaddexp2.default,
        aten.logical_and.default, aten.logical_or.default, aten.logical_xor.default,
        aten.logit_backward.default, aten.native_dropout_backward.default, aten.pow.Tensor_Tensor,
        aten.special_xlog1py.default, aten.xlogy.Tensor,
    }
)  # fmt: skip

#: The channels are stored last if those of the operand are, else rows lie one after another.
_BY_CHANNELS = frozenset(
    {
        aten._native_batch_norm_legit.default, aten._native_batch_norm_legit.no_stats,
        aten._native_batch_norm_legit_functional.default,
        aten._native_batch_norm_legit_no_training.default, aten.native_batch_norm.default,
        aten._batch_norm_with_update_functional.default, aten._batch_norm_no_update.default,
    }
)  # fmt: skip

#: The channels are stored last if the strides of the operand are ordered so.
_AS_SUGGESTED = frozenset(
    {
        aten.channel_shuffle.default, aten.max_unpool2d.default, aten.reflection_pad3d.default,
        aten.replication_pad3d.default,
    }
)  # fmt: skip

#: Rows always lie one after another.
_CONTIGUOUS = frozenset(
    {
        aten.log_sigmoid_forward.default, aten.nll_loss2d_forward.default,
        aten.normal.Tensor_Tensor, aten.normal.float_Tensor, aten.pow.Scalar,
    }
)  # fmt: skip

#: As a clone of the operand, of whose elements some are then replaced.
_CLONED = frozenset({aten.index_fill.int_Scalar, aten.index_fill.int_Tensor})

_OTHERWISE = (
    _CLONED
    | _ELEMENTWISE
    | _BY_CHANNELS
    | _AS_SUGGESTED
    | _CONTIGUOUS
    | frozenset({aten.ldexp.Tensor})
)


def eager_strides(target: Any, args: Sequence[Any], shape: Sequence[int]) -> Any:
    """The strides of the (first) result of an operation; None where inference knows them.

    Args:
        target: an ATen operation.
        args: its operands.
        shape: of the result.
    """
    with torch._C._DisableTorchDispatch():
        return _strides(target, args, shape)


def _strides(target: Any, args: Sequence[Any], shape: Sequence[int]) -> Any:
    if target in _ELEMENTWISE:
        operands = [_meta(value).expand(shape) for value in args if _is_tensor(value)]
        made = operands[0] + operands[-1]
        for operand in operands[1:-1]:
            made = made + operand
        return made.stride()
    if target is aten.ldexp.Tensor:
        # A product with powers whose rows lie one after another.
        powers = torch.empty(args[1].shape, device="meta")
        return (_meta(args[0]) + powers).stride()
    if target in _CLONED:
        return torch.empty_like(_meta(args[0])).stride()
    if target in _CONTIGUOUS:
        return torch.empty(shape, device="meta").stride()
    if target in _AS_SUGGESTED:
        format_ = suggest_memory_format(args[0])
        return torch.empty(shape, device="meta", memory_format=format_).stride()
    if target in _BY_CHANNELS:
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        format_ = formats.get(len(shape), torch.contiguous_format)
        if not args[0].is_contiguous(memory_format=format_) or args[0].is_contiguous():
            format_ = torch.contiguous_format
        return torch.empty(shape, device="meta", memory_format=format_).stride()
    return None


def as_in_eager(target: Any, args: Sequence[Any], result: Any) -> Any:
    """A (fake) result, with the strides that its (first) tensor has in eager mode."""
    first = result[0] if isinstance(result, (tuple, list)) else result
    if not isinstance(first, FakeTensor) or first.dim() < 2:
        return result
    strides = eager_strides(target, args, first.shape)
    if strides is None or all(
        actual == stride or extent == 1
        for actual, stride, extent in zip(first.stride(), strides, first.shape, strict=True)
    ):
        return result
    with torch._C._DisableTorchDispatch():
        empty = torch.empty_strided(first.shape, strides, dtype=first.dtype, device="meta")
        made = FakeTensor(first.fake_mode, empty, first.device)
    return made if first is result else type(result)((made, *result[1:]))


def outputs_as_in_eager(graph: fx.Graph, returned: Sequence[Any]) -> None:
    """Give what a graph returns the strides of eager mode.

    Views of what is returned are changed with it, as they are of the same memory; where one of them
    cannot be made of memory that lies as in eager mode, nothing is changed of any.

    Args:
        graph: of ATen operations, without its output.
        returned: its nodes, and other values.
    """
    if not any(node.target in _OTHERWISE for node in graph.nodes):
        return
    changed: dict[fx.Node, Any] = {}
    for node in graph.nodes:
        if node.op == "call_function":
            value = _inferred(node, changed)
            if value is not node.meta.get("val"):
                changed[node] = value
    for root in dict.fromkeys(_root(n) for n in returned if isinstance(n, fx.Node)):
        family = [root, *_views(root)]
        if all(node in changed for node in family):
            for node in family:
                node.meta["val"] = changed[node]


def _inferred(node: fx.Node, changed: Mapping[fx.Node, Any]) -> Any:
    """A node's result with eager mode's strides, if its operands have those of ``changed``.

    Without changes it is the node's recorded result itself.
    """
    value = node.meta.get("val")
    read = [n for n in node.all_input_nodes if n in changed]
    if not read and node.target not in _OTHERWISE:
        return value
    given: Any = fx.map_arg((node.args, node.kwargs), lambda n: changed.get(n, n.meta.get("val")))
    operands, named = given
    if node.target is operator.getitem:
        return operands[0][operands[1]]
    if read:
        again = _again(node, operands, named)
        if again is None:
            return value
        if _is_view(node):
            return again
        assert isinstance(value, FakeTensor)
        if again.stride() != value.stride():
            value = again
    return as_in_eager(node.target, operands, value)


def _again(node: fx.Node, operands: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """An operation's result for other operands; None if unknown or refused."""
    value = node.meta.get("val")
    first = value[0] if isinstance(value, (tuple, list)) and value else value
    if not isinstance(node.target, torch._ops.OpOverload) or not isinstance(first, FakeTensor):
        return None
    if first is not value and not _is_view(node):
        return None
    try:
        with first.fake_mode:
            return node.target(*operands, **named)
    except Exception:  # whatever an operation says to operands that lie otherwise
        return None


def _is_view(node: fx.Node) -> bool:
    """Whether a node gives (a part of) the memory of an operand, or may."""
    if node.op != "call_function":
        return False
    target = node.target
    if target is operator.getitem:
        return isinstance(node.args[0], fx.Node) and _is_view(node.args[0])
    return not isinstance(target, torch._ops.OpOverload) or any(
        result.alias_info is not None for result in target._schema.returns
    )


def _root(node: fx.Node) -> fx.Node:
    """The node whose memory a node gives (a part of)."""
    while _is_view(node) and isinstance(node.args[0], fx.Node):
        node = node.args[0]
    return node


def _views(root: fx.Node) -> list[fx.Node]:
    """The views of a node, and of these."""
    found = [user for user in root.users if _is_view(user)]
    for view in found:
        found += [user for user in view.users if _is_view(user)]
    return found


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _meta(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(value.shape, value.stride(), device="meta")
