"""Buffers through which nests may be fused."""

from __future__ import annotations

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AnyLoad,
    Buffer,
    For,
    Nest,
    Node,
    Sequence,
    Store,
    Value,
    walk,
)


def candidate_buffers(sequence: Sequence) -> list[Buffer]:
    """Buffers in the order in which they are produced."""
    seen: dict[Buffer, None] = {}
    for nest in sequence.nests():
        written = nest.effects()[1]
        if len(written) > 1:
            # Of several, in order.
            stores = (n.buffer for n in walk(nest.body) if isinstance(n, Store))
            seen |= dict.fromkeys(b for b in stores if b.kind in ("alloc", "output"))
        else:
            seen |= dict.fromkeys(b for b in written if b.kind in ("alloc", "output"))
    based = sequence.viewed()
    return [b for b in seen if b not in based]


def distinct_reads(nodes: list[Node], buffer: Buffer, times: int, hoisted: bool = False) -> int:
    """Loads of a buffer when nodes run ``times`` times; each list loads an element once.

    Args:
        nodes: the code.
        buffer: what is loaded.
        times: how often the code runs.
        hoisted: whether what is the same in all iterations of inner loops is loaded before them.
    """
    return _distinct_reads(nodes, buffer, times, {}, hoisted)


def _distinct_reads(
    nodes: list[Node], buffer: Buffer, times: int, around: dict[Var, int], hoisted: bool
) -> int:
    """As :func:`distinct_reads`; ``around`` says how often the loops around start an iteration."""
    total = 0
    seen: set[tuple[Expr | Value, ...]] = set()
    runs = next(reversed(around.values()), times)
    for node in nodes:
        if isinstance(node, For):
            inner = {**around, node.var: runs * node.var.extent}
            total += _distinct_reads(node.body, buffer, times, inner, hoisted)
        elif (place := _place(node, buffer)) is not None and place not in seen:
            seen.add(place)
            total += _iterations(place, times, around) if hoisted else runs
    return total


def _iterations(place: tuple[Expr | Value, ...], times: int, around: dict[Var, int]) -> int:
    """Iterations of the loops around a load down to the last one that its place depends on."""
    last = times
    for var, runs in around.items():
        if any(not isinstance(e, Expr) or e.depends_on(var) for e in place):
            last = runs
    return last


def count_sites(nest: Nest, buffer: Buffer) -> int:
    """Places of a buffer that a nest loads from."""
    return len({_place(n, buffer) for n in nest.touching(buffer)} - {None})


def _place(node: Node, buffer: Buffer) -> tuple[Expr | Value, ...] | None:
    """Where a node loads an element of a buffer, if it does."""
    if isinstance(node, AnyLoad) and node.buffer is buffer:
        return tuple(node.index)
    return None


def count_nodes(nodes: list[Node]) -> int:
    """Nodes of these and of the loops among them."""
    return sum(1 for _ in walk(nodes))
