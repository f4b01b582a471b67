"""The two higher-order operators of flex attention, in graphs of AOTAutograd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import fx

from polyblocks_torch.control_flow.operators import kind_of

# By name: the operators themselves are registered when something that uses them is imported.
FORWARD, BACKWARD = "flex_attention", "flex_attention_backward"

#: The operand that is the block mask: tables of blocks, sizes of blocks and the function.
_BLOCK_MASK = {FORWARD: 4, BACKWARD: 9}


def is_flex_attention(node: fx.Node) -> bool:
    """Whether a node is one of the two operators."""
    return kind_of(node) in _BLOCK_MASK


def drop_block_tables(graph: fx.Graph) -> None:
    """Take the tables of blocks from the operands of the operators, in place.

    The mask's function alone decides, as in eager mode, which does not read them.
    """
    for node in graph.nodes:
        if is_flex_attention(node):
            place = _BLOCK_MASK[kind_of(node)]
            *tables, function = cast("tuple[Any, ...]", node.args[place])
            kept = (*(None if isinstance(t, fx.Node) else t for t in tables), function)
            node.update_arg(place, kept)


def functions_of(module: torch.nn.Module, node: fx.Node) -> Iterator[fx.GraphModule]:
    """The graphs of scores and masks that an operator of ``module`` is given."""
    for operand in node.all_input_nodes:
        if operand.op == "get_attr":
            value = module.get_submodule(str(operand.target))
            if isinstance(value, fx.GraphModule):
                yield value
