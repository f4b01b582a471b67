"""Apply a decomposition table to a captured graph, after AOTAutograd and not inside it.

Tracing costs time for every op that comes out. Doing it here, on a cache miss only, keeps the
graph of a warm start as short as PyTorch's own, and keeps the strides that eager mode would give
(those of the undecomposed ops) as the layout of the outputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch._guards import tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import _disable_current_modes

Decompositions = Mapping[Any, Callable[..., Any]]


def decompose(gm: fx.GraphModule, table: Decompositions) -> tuple[fx.GraphModule, list[Any]]:
    """Trace ``gm`` again with ``table``; returns the new graph and its (fake) example inputs.

    Tensors that the graph holds stay attributes of it, so that they can still be folded. Source
    locations (``stack_trace``) carry over.
    """
    if not any(_may_change(node, table) for node in gm.graph.nodes):
        graph = fx.Graph()
        graph.output(graph.graph_copy(gm.graph, {}))
        return fx.GraphModule(gm, graph), [
            node.meta["val"] for node in graph.nodes if node.op == "placeholder"
        ]
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    lifted, constants = _lift_constants(gm)
    # AOTAutograd compiles under modes of its own; none of them may see this.
    with _disable_current_modes(), tracing(None), fx_traceback.preserve_node_meta():
        inputs = [
            _fake(mode, node.meta["val"]) for node in lifted.graph.nodes if node.op == "placeholder"
        ]
        traced = _trace(lifted, inputs, table, functional=False)
        if _has_mutation(traced):
            # A decomposition wrote into what it had made; a second pass makes that functional
            # (in one pass the table would apply below the functionalization).
            traced = _trace(traced, inputs, table, functional=True)
    _sink_constants(traced, constants)
    return traced, inputs[: len(inputs) - len(constants)]


def _may_change(node: fx.Node, table: Decompositions) -> bool:
    """Whether tracing may put something else in the place of a node.

    Tracing costs a millisecond per node, so a graph of plain operations goes without.
    """
    if node.op in ("placeholder", "output"):
        return False
    if node.target is operator.getitem:
        return False
    if not isinstance(node.target, torch._ops.OpOverload):
        return True
    return (
        node.target in table
        or node.target._schema.is_mutable
        or torch._C._dispatch_has_kernel_for_dispatch_key(
            node.target.name(), "CompositeImplicitAutograd"
        )
    )


def _trace(
    gm: fx.GraphModule, inputs: list[Any], table: Decompositions, functional: bool
) -> fx.GraphModule:
    def run(*args: Any) -> Any:
        return fx.Interpreter(gm).run(*args)

    function = torch.func.functionalize(run, remove="mutations") if functional else run
    with torch.no_grad():
        return make_fx(function, decomposition_table=dict(table), tracing_mode="real")(*inputs)


def _fake(mode: FakeTensorMode, value: torch.Tensor) -> torch.Tensor:
    with mode:
        return torch.empty_strided(
            value.shape, value.stride(), dtype=value.dtype, device=value.device
        )


def _lift_constants(gm: fx.GraphModule) -> tuple[fx.GraphModule, list[torch.Tensor]]:
    graph = fx.Graph()
    constants: list[torch.Tensor] = []
    values: dict[fx.Node, fx.Node] = {}
    lifted: dict[fx.Node, torch.Tensor] = {}
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    for node in placeholders:
        values[node] = graph.node_copy(node, values.__getitem__)
    for node in gm.graph.nodes:
        if node.op == "get_attr" and isinstance(getattr(gm, str(node.target), None), torch.Tensor):
            constant = getattr(gm, str(node.target))
            values[node] = graph.placeholder(f"lifted_{len(constants)}")
            values[node].meta = dict(node.meta, val=constant)
            constants.append(constant)
            lifted[node] = constant
    for node in gm.graph.nodes:
        if node not in values:
            values[node] = graph.node_copy(node, values.__getitem__)
    return fx.GraphModule(gm, graph), constants


def _sink_constants(gm: fx.GraphModule, constants: list[torch.Tensor]) -> None:
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    for i, (node, constant) in enumerate(
        zip(placeholders[len(placeholders) - len(constants) :], constants, strict=True)
    ):
        name = f"constant{i}"
        gm.register_buffer(name, constant)
        with gm.graph.inserting_before(node):
            attribute = gm.graph.get_attr(name)
        attribute.meta = dict(node.meta)
        node.replace_all_uses_with(attribute)
        gm.graph.erase_node(node)
    gm.graph.eliminate_dead_code()
    gm.recompile()


def _has_mutation(gm: fx.GraphModule) -> bool:
    return any(
        isinstance(n.target, torch._ops.OpOverload) and n.target._schema.is_mutable
        for n in gm.graph.nodes
    )
