"""Code of a loop that does not depend on the iteration."""

from __future__ import annotations

from polyblocks.affine.model import (
    Alloca,
    AnyStore,
    Buffer,
    Check,
    For,
    Index,
    IndirectLoad,
    Load,
    Node,
    Op,
    Value,
    walk,
)


def invariants(loop: For) -> tuple[list[Node], list[Node]]:
    """The nodes of a loop's body that do not depend on the iteration, and the others.

    The loop must run at least once, so that the moved code runs no more often than before; one
    whose bounds depend on outer loops may not, and is left alone.
    """
    if loop.bounded or loop.var.extent == 0:
        return [], loop.body
    varying: set[Value] = set(loop.arguments)
    written: set[Buffer] = {n.buffer.base for n in walk(loop.body) if isinstance(n, AnyStore)}
    local = {n.buffer for n in walk(loop.body) if isinstance(n, Alloca)}
    taken: list[Node] = []
    kept: list[Node] = []
    checked = True
    for node in loop.body:
        fixed = not any(v in varying for v in node.uses)
        if isinstance(node, (For, AnyStore, Alloca)):
            fixed = False
        elif isinstance(node, Index):
            fixed = loop.var not in set(node.expr.variables())
        elif isinstance(node, Load):
            fixed = all(loop.var not in set(e.variables()) for e in (*node.index, *node.where))
            fixed = fixed and node.buffer.base not in written and node.buffer not in local
        elif isinstance(node, IndirectLoad):
            # A check that stays inside may guard this index.
            fixed = fixed and checked and node.buffer.base not in written
        elif isinstance(node, Op):
            # A division may be behind a check as well.
            fixed = fixed and (checked or "div" not in node.name and "rem" not in node.name)
        if fixed:
            taken.append(node)
            continue
        if isinstance(node, Check):
            checked = False
        varying.update(node.defines)
        kept.append(node)
    return taken, kept
