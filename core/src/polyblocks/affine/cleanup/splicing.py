"""Loops of one iteration or of none, as straight-line code."""

from __future__ import annotations

from polyblocks.affine.model import (
    For,
    Node,
    Value,
    replace_values,
)


def splice_loops(nodes: list[Node]) -> list[Node]:
    """The nodes, where a loop of one iteration is its body, and one of none is nothing."""
    mapping: dict[Value, Value] = {}
    nodes = _splice(nodes, mapping)
    if mapping:
        replace_values(nodes, mapping)
    return nodes


def _splice(nodes: list[Node], mapping: dict[Value, Value]) -> list[Node]:
    out: list[Node] = []
    for node in nodes:
        if not isinstance(node, For):
            out.append(node)
            continue
        if node.trips == 0:
            mapping.update(zip(node.results, node.inits, strict=True))
            continue
        node.body = _splice(node.body, mapping)
        if node.var.extent == 1 and not node.bounded:
            mapping.update(zip(node.arguments, node.inits, strict=True))
            mapping.update(zip(node.results, node.yields, strict=True))
            out.extend(node.body)
        else:
            out.append(node)
    return out
