"""Who computes a value: makers and backward slices of straight-line code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from polyblocks.affine.expr import Var
from polyblocks.affine.model import Node, Op, Value


def makers_of(nodes: Iterable[Node]) -> dict[Value, Node]:
    """The node that defines each value."""
    return {value: node for node in nodes for value in node.defines}


def ops_of(nodes: Iterable[Node]) -> dict[Value, Op]:
    """The operation that makes each value, where it is one."""
    return {value: node for node in nodes if isinstance(node, Op) for value in node.results}


def slice_of(values: Iterable[Value], makers: Mapping[Value, Node]) -> dict[Node, None]:
    """The nodes that values are computed by, each once; what has no maker comes from elsewhere."""
    found: dict[Node, None] = {}
    pending = list(values)
    while pending:
        maker = makers.get(pending.pop())
        if maker is not None and maker not in found:
            found[maker] = None
            pending.extend(maker.uses)
    return found


def variables_of(nodes: Iterable[Node]) -> set[Var]:
    """The variables in the expressions of the nodes themselves."""
    return {v for node in nodes for v in node.variables()}
