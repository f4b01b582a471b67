"""Outputs that share memory with arguments: whether compiled code makes them as eager mode does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.schemas import OutputType
from torch._guards import TracingContext

_FRESH = (OutputType.non_alias, OutputType.unsafe_view_alias)


def shares_alike(gm: fx.GraphModule, call: Callable[..., Any]) -> bool:
    """Whether AOTAutograd's wrapper adds nothing to what compiled code returns.

    It makes views of arguments anew of what the code returns, such as those of another type, and
    updates arguments.

    Args:
        gm: Dynamo's graph, which AOTAutograd has just traced.
        call: what it has made; its attribute ``of_arguments`` is that of
            :func:`polyblocks_torch.launch.launcher.make_call`.
    """
    context = TracingContext.try_get()
    plan: Any = None if context is None else context.fw_metadata
    made: frozenset[int] = getattr(call, "of_arguments", frozenset())
    if plan is None or plan.num_mutated_inp_runtime_indices:
        return False
    returned = _returned(gm)
    if len(returned) != len(plan.output_info):
        return False
    for number, (value, info) in enumerate(zip(returned, plan.output_info, strict=True)):
        if info.output_type in _FRESH:
            continue
        passed_on = info.output_type == OutputType.is_input
        # A detached tensor has the memory of its base and is no view of it.
        viewed = info.output_type == OutputType.alias_of_input and _is_view(value)
        if number not in made or not (passed_on or viewed):
            return False
    return True


def keep_wrappers(call: Any) -> None:
    """Let no one call the compiled code inside of the wrappers, whose attributes they have."""
    while hasattr(call, "__wrapped__"):
        call.native_call = None
        call = call.__wrapped__


def _returned(gm: fx.GraphModule) -> list[Any]:
    (output,) = (node for node in gm.graph.nodes if node.op == "output")
    values = output.args[0]
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _is_view(node: Any) -> bool:
    value = node.meta.get("example_value") if isinstance(node, fx.Node) else None
    return isinstance(value, torch.Tensor) and value._is_view()
