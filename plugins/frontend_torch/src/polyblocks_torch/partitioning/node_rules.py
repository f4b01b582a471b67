"""Reasons why one node cannot be compiled, known without trying."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from polyblocks_torch.arguments.overlaps import share_places
from polyblocks_torch.control_flow.operators import ControlFlow, graphs_of, is_control_flow
from polyblocks_torch.flex_attention.operators import functions_of, is_flex_attention
from polyblocks_torch.specs import problem_with

#: Higher-order operators that run an operation which draws, for a checkpoint. By name: which of
#: their arguments the operation is.
_WITH_STATES = {"run_and_save_rng_state": 0, "run_with_rng_state": 1}


def is_random(node: fx.Node) -> bool:
    """Whether the node draws from the framework's random generator."""
    target = node.target
    if isinstance(target, torch._ops.HigherOrderOperator) and target.name() in _WITH_STATES:
        return draws(*node.args[_WITH_STATES[target.name()] :], **node.kwargs)
    return draws(target, *node.args, **node.kwargs)


def draws(op: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether an operation draws from the framework's random generator.

    Attention carries the tag for its dropout, and draws nothing where that is off.
    """
    if not isinstance(op, torch._ops.OpOverload):
        return False
    if torch.Tag.nondeterministic_seeded not in op.tags:
        return False
    for index, argument in enumerate(op._schema.arguments):
        if argument.name == "dropout_p":
            given = args[index] if index < len(args) else None
            return kwargs.get("dropout_p", given) not in (None, 0, 0.0)
    return True


def fills_fresh_memory(node: fx.Node) -> bool:
    """Whether this is ``bernoulli(empty(...), p)``, which eager mode writes ``bernoulli_``.

    The functional form gives a contiguous result and draws in that order, whatever the layout of
    its operand is; the form in place draws in the order of the memory.
    """
    if node.target is not torch.ops.aten.bernoulli.p:
        return False
    operand = node.args[0]
    return (
        isinstance(operand, fx.Node)
        and operand.target is torch.ops.aten.empty_strided.default
        and len(operand.users) == 1
    )


def unsupported_reason(node: fx.Node) -> str | None:
    """Why a node can never be compiled, whatever the lowering knows; None if it may be."""
    if node.op in ("placeholder", "output", "get_attr") or node.target is operator.getitem:
        return None
    if is_control_flow(node):
        return _reason_within(node) or _problem_with_values(node)
    if is_flex_attention(node):
        return _reason_in_functions(node) or _problem_with_values(node)
    if is_random(node):
        return "draws from the framework's random generator"
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return f"{node.op} of {node.target}, which is not an ATen operation"
    if node.target._schema.is_mutable:
        return "changes its operand in place"
    size_and_strides: Any = node.args[2:4]
    scatters = node.target is torch.ops.aten.as_strided_scatter.default
    if scatters and share_places(*size_and_strides):
        return "stores overlapping elements, where PyTorch's kernel keeps the last one"
    return _problem_with_values(node)


def _reason_within(node: fx.Node) -> str | None:
    """Why control flow cannot be compiled: what its graphs hold, or are given."""
    flow = ControlFlow.of(node)
    if not all(isinstance(operand, fx.Node) for operand in flow.operands):
        return "an operand that is a number; pass a tensor of shape ()"
    if flow.scanned and any(n.meta["val"].shape[0] == 0 for n in flow.operands[flow.carried :][:1]):
        return "nothing to scan"
    module = node.graph.owning_module
    if module is None:
        return None
    for graph in graphs_of(module, node):
        for inner in graph.graph.nodes:
            reason = unsupported_reason(inner)
            if reason is not None:
                return f"{inner.target} in it: {reason}"
    return None


def _reason_in_functions(node: fx.Node) -> str | None:
    """Why attention cannot be compiled, by the operations of its functions."""
    module = node.graph.owning_module
    functions = functions_of(module, node) if module is not None else ()
    for inner in (inner for function in functions for inner in function.graph.nodes):
        reason = unsupported_reason(inner)
        if reason is not None:
            return f"{inner.target} in it: {reason}"
    return None


def _problem_with_values(node: fx.Node) -> str | None:
    graphs = ControlFlow.of(node).bodies if is_control_flow(node) else ()
    read = [n.meta.get("val") for n in node.all_input_nodes if n not in graphs]
    for item in pytree.tree_leaves([node.meta.get("val"), *read]):
        reason = None if item is None else problem_with(item)
        if reason is not None:
            return reason
    return None
