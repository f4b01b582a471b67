"""How many registers the values of straight-line code and of loops take at once."""

from __future__ import annotations

from polyblocks.affine.gpu.plans.sizes import words_of
from polyblocks.affine.model import For, Node, Value


def live_registers(nodes: list[Node]) -> int:
    """The most 32-bit registers that values take at once while these nodes run."""
    return _peak(nodes, set())[0]


def _peak(nodes: list[Node], after: set[Value]) -> tuple[int, set[Value]]:
    """The most words of values that live at once, and the values that live before the nodes."""
    live = set(after)
    most = words_of(live)
    for node in reversed(nodes):
        live -= set(node.defines)
        if isinstance(node, For):
            inside, needed = _peak(node.body, live | set(node.yields))
            most = max(most, inside)
            live |= needed - set(node.arguments)
            live |= set(node.inits)
        else:
            live |= {v for v in node.uses if v.external is None}
        most = max(most, words_of(live))
    return most, live
