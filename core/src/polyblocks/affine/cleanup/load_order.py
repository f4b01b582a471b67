"""Straight-line code in the order of what it loads."""

from __future__ import annotations

from polyblocks.affine.access import address
from polyblocks.affine.expr import Var
from polyblocks.affine.model import Load, Node, Pure, Store, Value


def in_order_of_loads(nodes: list[Node], lanes: Var) -> list[Node]:
    """Loads along ``lanes`` in the order of memory, and behind each all that can be computed then.

    Sums of neighbouring windows advance together: elements that they share are not kept until the
    last one needs them. Loads that are the same for all lanes, such as weights, stand where they
    are first needed. Stores come last, and do not touch memory that is loaded here.

    Args:
        nodes: in an order in which they can run.
        lanes: the variable of the loop that the lanes are iterations of.
    """
    if not all(isinstance(n, (Pure, Load, Store)) for n in nodes):
        return nodes
    makers = {v: n for n in nodes for v in n.defines}
    moving = {n for n in nodes if isinstance(n, Load) and lanes in n.variables()}
    late: set[Value] = {n.result for n in moving if isinstance(n, Load)}
    users: dict[Value, list[Node]] = {}
    for node in nodes:
        if not late.isdisjoint(node.uses):
            late.update(node.defines)
        for value in node.uses:
            users.setdefault(value, []).append(node)
    done: set[Node] = set()
    out: list[Node] = []

    def emit(node: Node) -> None:
        """Put a node behind all that it needs, unless it is there."""
        if node in done:
            return
        done.add(node)
        for value in node.uses:
            if value in makers:
                emit(makers[value])
        out.append(node)

    def is_ready(node: Node) -> bool:
        return all(makers[v] in done for v in node.uses if v in late)

    loads = [n for n in moving if isinstance(n, Load)]
    for load in sorted(loads, key=lambda n: (n.buffer.number, address(n.buffer, n.index).const)):
        emit(load)
        waiting: list[Node] = [load]
        while waiting:
            for user in (u for v in waiting.pop().defines for u in users.get(v, ())):
                if user not in done and not isinstance(user, Store) and is_ready(user):
                    emit(user)
                    waiting.append(user)
    for node in nodes:
        if isinstance(node, Store):
            emit(node)
    return out
