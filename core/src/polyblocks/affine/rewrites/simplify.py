"""Value numbering inside nests: the same load or operation is done once."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.analysis.dataflow import makers_of
from polyblocks.affine.model import (
    Buffer,
    For,
    Load,
    Node,
    Op,
    Pure,
    Value,
    replace_values,
    stored_bases,
    walk,
)
from polyblocks.attributes import FREE_ROUNDING_ATTRIBUTE


def eliminate_common(nodes: list[Node]) -> None:
    """Remove repeated loads, index expressions and pure operations, in place."""
    mapping: dict[Value, Value] = {}
    _block(nodes, {}, mapping)
    if mapping:
        replace_values(nodes, mapping)


def on_demand(nodes: list[Node]) -> list[Node]:
    """Straight-line code in which everything stands as late as the first store that needs it.

    Stores do not touch memory that is loaded here.
    """
    makers = makers_of(nodes)
    done: set[Node] = set()
    out: list[Node] = []

    def emit(node: Node) -> None:
        if node not in done:
            done.add(node)
            for value in node.uses:
                if value in makers:
                    emit(makers[value])
            out.append(node)

    for node in nodes:
        if not node.defines:
            emit(node)
    return out


def need_not_round(op: Op) -> bool:
    """Whether an operation rounds where that is not the program's wish: the frontend says so."""
    return op.name == "arith.truncf" and is_free(op)


def is_free(op: Op) -> bool:
    """Whether a conversion between floats is marked as one that the program did not ask for."""
    return FREE_ROUNDING_ATTRIBUTE in op.attributes


def drop_roundings(nodes: list[Node]) -> None:
    """Let what is rounded without need, and extended again without need, stay as it is.

    An extension without a mark is the program's, which asks for a rounded number.
    """
    rounded: dict[Value, Value] = {}
    mapping: dict[Value, Value] = {}
    for node in walk(nodes):
        if not isinstance(node, Op):
            continue
        if need_not_round(node):
            rounded[node.results[0]] = node.operands[0]
        elif node.name == "arith.extf" and node.operands[0] in rounded and is_free(node):
            wide = rounded[node.operands[0]]
            if wide.type == node.results[0].type:
                mapping[node.results[0]] = wide
    if mapping:
        replace_values(nodes, mapping)


def _block(nodes: list[Node], known: dict[Any, list[Value]], mapping: dict[Value, Value]) -> None:
    def use(value: Value) -> Value:
        while value in mapping:
            value = mapping[value]
        return value

    kept: list[Node] = []
    for node in nodes:
        key: Any = None
        results = node.defines
        if isinstance(node, Pure):
            uses = node.uses
            if mapping:
                uses = [use(v) for v in uses]
            key = (node.signature(), tuple(uses))
        elif isinstance(node, Load):
            key = ("load", node.buffer.base, node.buffer, node.index, node.where, node.padding)
        elif known and (node.writes or isinstance(node, For)):
            forget(known, stored_bases([node]))
        # A matrix unit's loops are one operation, and so is a copy.
        if isinstance(node, For) and not node.unit and not node.copy:
            _block(node.body, dict(known), mapping)
        if key is not None:
            if key in known:
                mapping.update(zip(results, known[key], strict=True))
                continue
            known[key] = results
        kept.append(node)
    nodes[:] = kept


def forget(known: dict[Any, list[Value]], buffers: set[Buffer]) -> None:
    """Drop what is known of these buffers."""
    for key in [k for k in known if k[0] == "load" and k[1] in buffers]:
        del known[key]
