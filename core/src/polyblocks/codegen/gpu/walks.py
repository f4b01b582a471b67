"""Whether an access goes through memory as the iterations of collapsed loops are counted."""

from __future__ import annotations

from polyblocks.affine.access import strides
from polyblocks.affine.expr import Var
from polyblocks.affine.model import Load, Store


def in_step(node: Load | Store, order: list[Var]) -> bool:
    """Whether iteration ``n`` of the loops touches the element ``n`` times a stride further on.

    The index is then the same with 0 for all variables but the last one, and ``n`` for that.

    Args:
        node: the access; what it touches of a kernel's own buffers may lie elsewhere, so no.
        order: the variables of the loops, the one that changes fastest last.
    """
    if len(order) < 2 or node.buffer.kind == "local":
        return False
    steps = dict.fromkeys(order, 0)
    for expr, stride in zip(node.index, strides(node.buffer), strict=True):
        for atom, factor in expr.terms:
            if isinstance(atom, Var):
                if atom in steps:
                    steps[atom] += factor * stride
            elif steps.keys() & set(atom.dividend.variables()):
                return False
    step = steps[order[-1]]
    for var in reversed(order):
        if steps[var] != step:
            return False
        step *= var.extent
    return steps[order[-1]] != 0
