"""Scans of reversed arrays read and write backward, instead of copies that are reversed."""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch import fx

from polyblocks_torch.control_flow.operators import SCAN, ControlFlow, kind_of
from polyblocks_torch.graphs import drop_unused

_FLIP = torch.ops.aten.flip.default

#: Key of a scan's metadata: numbers of its operands, and of its results, that run backward.
BACKWARD = "polyblocks_backward"


def fold_reversals(graph: fx.Graph) -> None:
    """Take ``flip(x, [0])`` out of what scans read, and of their results, in place.

    ``scan(f, h, flip(x))`` reads ``x`` from its end; a stacked result used only by
    ``flip(ys)`` is written from its end.
    """
    scans = [node for node in graph.nodes if kind_of(node) == SCAN]
    for node in scans:
        node.meta[BACKWARD] = _reads_backward(node), _writes_backward(node)
    if scans:
        drop_unused(graph)


def _reads_backward(node: fx.Node) -> frozenset[int]:
    """Let a scan read what its reversed operands are made of; their numbers."""
    step, carried, scanned, others = cast(Any, node.args)
    backward = {number for number, operand in enumerate(scanned) if _is_reversal(operand)}
    read = [o.args[0] if number in backward else o for number, o in enumerate(scanned)]
    node.args = (step, carried, read, others)
    return frozenset(len(carried) + number for number in backward)


def _writes_backward(node: fx.Node) -> frozenset[int]:
    """Let a scan write what its results are made into, where they are reversed; their numbers."""
    first = ControlFlow.of(node).carried
    written = set()
    for result in list(node.users):
        if result.target is not operator.getitem:
            continue
        number = cast(int, result.args[1])
        if number < first or not result.users or not all(map(_is_reversal, result.users)):
            continue
        written.add(number)
        for user in list(result.users):
            user.replace_all_uses_with(result)
            node.graph.erase_node(user)
    return frozenset(written)


def _is_reversal(node: fx.Node) -> bool:
    """Whether a node reverses the first dimension, and no other."""
    if node.target is not _FLIP:
        return False
    dims = cast("list[int]", node.args[1])
    return [dim % node.meta["val"].dim() for dim in dims] == [0]
