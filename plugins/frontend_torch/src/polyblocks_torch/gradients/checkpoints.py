"""Operations that a checkpoint runs again in the backward graph, with the numbers drawn before.

PyTorch's partitioner wraps what may draw, so that the forward graph saves the generator's state and
the backward graph takes it up. Attention that drops nothing is wrapped, too: it is itself again.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import detect_fake_mode
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch.utils import _pytree as pytree

from polyblocks_torch.partitioning.node_rules import draws

aten = torch.ops.aten


def partition(joint: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    """PyTorch's partition into forward and backward, whose attention is as it was written."""
    forward, backward = min_cut_rematerialization_partition(joint, *args, **kwargs)
    for module in (forward, backward):
        for node in list(module.graph.nodes):
            if node.target is run_and_save_rng_state and not draws(*node.args, **node.kwargs):
                _unwrap(node, node.args, saves=True)
            elif node.target is run_with_rng_state and not draws(*node.args[1:], **node.kwargs):
                _unwrap(node, node.args[1:], saves=False)
        module.recompile()
    return forward, backward


def _unwrap(node: fx.Node, call: Any, *, saves: bool) -> None:
    """Replace an operation with a state by the plain one; the state becomes an empty tensor."""
    op, *args = call
    graph = node.graph
    with graph.inserting_before(node):
        made = graph.call_function(op, tuple(args), dict(node.kwargs))
    # Nodes that the partitioner has added have no values.
    values = fx.map_arg((made.args, made.kwargs), lambda n: n.meta["val"])
    mode = detect_fake_mode(pytree.tree_leaves(values))
    assert mode is not None, "values of a graph are fake"
    with mode:
        made.meta = {**node.meta, "val": op(*values[0], **values[1])}
    if not saves:
        node.replace_all_uses_with(made)
        graph.erase_node(node)
        return
    for user in list(node.users):
        assert user.target is operator.getitem, f"{user} reads a pair"
        if user.args[1] == 1:
            user.replace_all_uses_with(made)
        else:
            with graph.inserting_before(node):
                state = graph.call_function(
                    aten.full.default, ([0], 0), {"dtype": torch.uint8, "device": "cpu"}
                )
            with mode:
                state.meta = {"val": torch.empty(0, dtype=torch.uint8)}
            user.replace_all_uses_with(state)
        graph.erase_node(user)
    graph.erase_node(node)
