"""Scans of reversed arrays read and write backward, instead of copies that are reversed."""

from __future__ import annotations

import operator

import torch
from torch import fx

from polyblocks_torch.control_flow.operators import SCAN, ControlFlow, kind_of

_FLIP = torch.ops.aten.flip.default

#: Key of a scan's metadata: numbers of its operands, and of its results, that run backward.
BACKWARD = "polyblocks_backward"


def fold_reversals(graph: fx.Graph) -> None:
    """Take ``flip(x, [0])`` out of what scans read, and of their results, in place.

    ``scan(f, h, flip(x))`` reads ``x`` from its end; a stacked result of which nothing but
    ``flip(ys)`` is used is written from its end.
    """
    for node in list(graph.nodes):
        if kind_of(node) != SCAN:
            continue
        flow = ControlFlow.of(node)
        step, carried, scanned, others = node.args
        read = list(scanned)
        backward = {
            flow.carried + number for number, operand in enumerate(read) if _is_reversal(operand)
        }
        for number in backward:
            operand = read[number - flow.carried]
            read[number - flow.carried] = operand.args[0]
        node.args = (step, carried, read, others)
        written = set()
        for result in list(node.users):
            if result.target is not operator.getitem or result.args[1] < flow.carried:  # type: ignore
                continue
            if result.users and all(_is_reversal(user) for user in result.users):
                written.add(result.args[1])
                for user in list(result.users):
                    user.replace_all_uses_with(result)
                    graph.erase_node(user)
        node.meta[BACKWARD] = (frozenset(backward), frozenset(written))


def _is_reversal(value: object) -> bool:
    """Whether a node reverses the first dimension, and no other."""
    if not isinstance(value, fx.Node) or value.target is not _FLIP:
        return False
    (dim,) = value.args[1] if len(value.args[1]) == 1 else (None,)
    return dim is not None and dim % value.meta["val"].dim() == 0
