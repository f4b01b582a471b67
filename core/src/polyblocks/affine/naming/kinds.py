"""Kinds of nests, from their structure."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.model import (
    For,
    GuardedStore,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Op,
    Store,
    walk,
)


def kind(nest: Nest) -> str:
    """The kind of a nest, from its structure."""
    nodes = list(walk(nest.body))
    classes = {type(n) for n in nodes}
    if IndirectStore in classes or GuardedStore in classes:
        return "scatter"
    if facts_of(nest).contraction is not None:
        return "contraction"
    if IndirectLoad in classes:
        return "gather"
    if any(isinstance(n, For) and n.inits and is_scan(n) for n in nodes):
        return "scan"
    if any(isinstance(n, For) and n.inits for n in nodes):
        return "reduction"
    if not any(isinstance(n, Op) and n.name != "arith.constant" for n in nodes):
        return "copy"
    places: dict[Any, set[Any]] = {}
    for n in nodes:
        if isinstance(n, Load):
            places.setdefault(n.buffer, set()).add(n.index)
    return "stencil" if any(len(p) > 1 for p in places.values()) else "pointwise"


def is_scan(loop: For) -> bool:
    """Whether a loop stores something for every value that it carries on."""
    return any(isinstance(n, Store) for n in loop.body)
