"""Code of a loop that does not depend on the iteration."""

from __future__ import annotations

from polyblocks.affine.model import (
    Access,
    Alloca,
    Check,
    For,
    IndirectAccess,
    Node,
    Op,
    Value,
    local_buffers,
    stored_bases,
)


def _may_fault(node: Node) -> bool:
    """Whether a node is an access at an index known only at run time, or a division."""
    if isinstance(node, Op):
        return "div" in node.name or "rem" in node.name
    return isinstance(node, IndirectAccess)


def invariants(loop: For) -> tuple[list[Node], list[Node]]:
    """The nodes of a loop's body that do not depend on the iteration, and the others.

    The loop must run at least once, so that the moved code runs no more often than before; one
    whose bounds depend on outer loops may not, and is left alone.
    """
    if loop.bounded or loop.var.extent == 0:
        return [], loop.body
    varying: set[Value] = set(loop.arguments)
    written = stored_bases(loop.body)
    local = local_buffers(loop.body)
    taken: list[Node] = []
    kept: list[Node] = []
    checked = True
    for node in loop.body:
        fixed = loop.var not in node.variables() and not any(v in varying for v in node.uses)
        if isinstance(node, (For, Alloca)) or node.writes:
            fixed = False
        elif isinstance(node, Access):
            fixed = fixed and node.buffer.base not in written and node.buffer not in local
        # A check that stays inside may guard it.
        fixed = fixed and (checked or not _may_fault(node))
        if fixed:
            taken.append(node)
            continue
        if isinstance(node, Check):
            checked = False
        varying.update(node.defines)
        kept.append(node)
    return taken, kept
