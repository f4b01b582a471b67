"""Split a graph that cannot be compiled whole: which nodes the framework runs, and in which order.

The plan is data: which nodes (by index) stay with the framework and why. From it the order of
execution follows: every node gets a level, even for nodes that the framework runs, odd for compiled
ones, never lower than that of what it reads. All compiled nodes of one level form one part, so that
no part can depend on itself through the framework, and independent work is not split.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from polyblocks.frontends.partition import RANDOM, UNSUPPORTED, FallbackOp
from polyblocks_torch.capture import TorchCapture
from polyblocks_torch.graphs import graph_module
from polyblocks_torch.location import source_location
from polyblocks_torch.partitioning.node_rules import is_random, unsupported_reason
from polyblocks_torch.recording.canonical import capture_graph


@dataclass(frozen=True)
class Step:
    """One step of the execution: a compiled part, or one node run by the framework."""

    compiled: bool
    nodes: tuple[fx.Node, ...]


def obvious(graph: fx.Graph) -> dict[fx.Node, tuple[str, str]]:
    """Nodes that need no probe to know that they stay: (reason, kind) of each."""
    found = {}
    for node in graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
            # A value would depend on when it is read; only the given order is right.
            why = f"{op_name(node)} changes a tensor in place in the middle of the graph"
            return {n: (why, UNSUPPORTED) for n in graph.nodes if n.op.startswith("call_")}
        reason = unsupported_reason(node)
        if reason is not None:
            found[node] = (reason, RANDOM if is_random(node) else UNSUPPORTED)
    return found


def left_nodes(graph: fx.Graph, reasons: Mapping[fx.Node, tuple[str, str]]) -> list[FallbackOp]:
    """The JSON form of what stays with the framework."""
    return [
        FallbackOp(index, op_name(node), _one_line(reasons[node][0]), reasons[node][1])
        for index, node in enumerate(graph.nodes)
        if node in reasons
    ]


def _one_line(reason: str, width: int = 300) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def fallback_row(node: fx.Node, left: FallbackOp) -> dict[str, Any]:
    """One row of a report."""
    return {
        "op": left.op,
        "reason": left.reason,
        "cause": left.kind,
        "location": source_location(node) or "",
    }


def op_name(node: fx.Node) -> str:
    """``aten.add.Tensor``, or what else names the node's target."""
    return str(node.target) if node.op == "call_function" else f"{node.op} {node.target}"


def steps(graph: fx.Graph, left: set[fx.Node], cuts: Collection[fx.Node] = ()) -> list[Step]:
    """The order of execution; every operation of the graph is in exactly one step.

    Args:
        graph: a canonical graph.
        left: nodes that the framework runs.
        cuts: nodes that begin a new part, although nothing before them is left.
    """
    left = left | _allocations(graph, left)
    level: dict[fx.Node, int] = {}
    last_effect = floor = 0
    for node in graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            level[node] = 0
            continue
        if node in cuts:
            floor = max(level.values()) + 1
        depth = max((level[n] for n in node.all_input_nodes), default=0)
        depth = max(depth, floor)
        if node.target is operator.getitem and node not in left:
            # Follows its producer, whatever runs that.
            producer = node.args[0]
            assert isinstance(producer, fx.Node)
            level[node] = level[producer]
            continue
        parity = 0 if node in left else 1
        depth += (depth % 2) != parity
        if node in left and _has_effect(node):
            # Draws and updates keep their order among each other.
            depth = max(depth, last_effect)
            last_effect = depth
        level[node] = depth
    return list(_ordered_steps(graph, level))


def _allocations(graph: fx.Graph, left: set[fx.Node]) -> set[fx.Node]:
    """Nodes that read nothing and serve the framework alone: the memory that a draw fills."""
    return {
        node
        for node in graph.nodes
        if node.op == "call_function"
        and not node.all_input_nodes
        and node.users
        and all(user in left for user in node.users)
    }


def _ordered_steps(graph: fx.Graph, level: dict[fx.Node, int]) -> list[Step]:
    made: list[Step] = []
    for depth in range(max(level.values(), default=0) + 1):
        nodes = tuple(
            n
            for n in graph.nodes
            if level[n] == depth and n.op not in ("placeholder", "output", "get_attr")
        )
        if not nodes:
            continue
        if depth % 2:
            made.append(Step(True, nodes))
        else:
            made += [Step(False, (node,)) for node in nodes]
    return made


def part_capture(capture: TorchCapture, step: Step) -> TorchCapture:
    """The capture of one compiled step."""
    read, needed = boundary(step, capture.graph_module.graph)
    module = extract(capture.graph_module, step.nodes, read, needed)
    placeholders = [n for n in capture.graph_module.graph.nodes if n.op == "placeholder"]
    pairs = zip(placeholders, capture.arguments, strict=True)
    constant = {node for node, argument in pairs if argument.constant}
    weights = tuple(node in constant for node in read)
    return capture_graph(module, [n.meta.get("val") for n in read], capture.name, weights)


def _has_effect(node: fx.Node) -> bool:
    target = node.target
    return is_random(node) or (
        not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable
    )


def boundary(step: Step, graph: fx.Graph) -> tuple[list[fx.Node], list[fx.Node]]:
    """The inputs of a compiled part, and the results that other parts need."""
    inside = set(step.nodes)
    read: dict[fx.Node, None] = {}
    needed = []
    for node in step.nodes:
        for operand in node.all_input_nodes:
            if operand not in inside and operand.op != "get_attr":
                read[operand] = None
        if any(user not in inside for user in node.users) and isinstance(
            node.meta.get("val"), torch.Tensor
        ):
            needed.append(node)
    return list(read), needed


def extract(
    module: fx.GraphModule, nodes: tuple[fx.Node, ...], read: list[fx.Node], needed: list[fx.Node]
) -> fx.GraphModule:
    """A graph of its own for one part; metadata of all nodes is kept."""
    graph = fx.Graph()
    made: dict[fx.Node, fx.Node] = {}
    for node in read:
        made[node] = graph.placeholder(node.name)
        made[node].meta = dict(node.meta)
    copy: Callable[[fx.Node], fx.Node] = lambda n: made[n]  # noqa: E731
    for node in nodes:
        for operand in node.all_input_nodes:
            if operand.op == "get_attr" and operand not in made:
                made[operand] = graph.node_copy(operand, copy)
        made[node] = graph.node_copy(node, copy)
    graph.output(tuple(made[n] for n in needed))
    return graph_module(module, graph)
