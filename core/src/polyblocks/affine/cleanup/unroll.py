"""Loops of constant bounds become straight-line code."""

from __future__ import annotations

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import For, Node, Value, clone, replace_values, walk


def unroll_loops(nodes: list[Node], max_nodes: int) -> list[Node]:
    """Unroll whole loops, with all loops in them, from the outside in.

    Loops in a loop are unrolled although their bounds depend on its variable. A loop that would
    become more than ``max_nodes`` nodes stays, and those in it are tried instead.

    Args:
        nodes: what to unroll in; loops that stay are changed in place.
        max_nodes: of the straight-line code that a loop becomes.
    """
    mapping: dict[Value, Value] = {}
    out = _unrolled(nodes, mapping, max_nodes)
    if mapping:
        replace_values(out, mapping)
    return out


def _unrolled(nodes: list[Node], mapping: dict[Value, Value], max_nodes: int) -> list[Node]:
    out: list[Node] = []
    for node in nodes:
        if isinstance(node, For):
            flat = _flat(node, mapping, max_nodes)
            if flat is not None:
                out += flat
                continue
            node.body = _unrolled(node.body, mapping, max_nodes)
        out.append(node)
    return out


def _flat(loop: For, mapping: dict[Value, Value], max_nodes: int) -> list[Node] | None:
    """The iterations of a loop one after the other; None if it is to stay."""
    if not all(e.is_constant for e in loop.bounds):
        return None
    begin = max([0, *(e.const for e in loop.lower)])
    end = min([loop.var.extent, *(e.const for e in loop.upper)])
    if (end - begin) * sum(not isinstance(n, For) for n in walk(loop.body)) > 4 * max_nodes:
        return None
    found: dict[Value, Value] = {}
    carried = list(loop.inits)
    out: list[Node] = []
    for k in range(begin, end):
        values = dict(zip(loop.arguments, carried, strict=True))
        for node in clone(loop.body, values, {loop.var: Expr(k)}):
            flat = _flat(node, found, max_nodes) if isinstance(node, For) else [node]
            if flat is None:
                return None
            out += flat
        if len(out) > max_nodes:
            return None
        carried = [values.get(value, value) for value in loop.yields]
    found.update(zip(loop.results, carried, strict=True))
    mapping.update(found)
    return out
